package system

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// While no controller manager runs, applications of offloaded namespaces scale and heal: their pods are admitted at once, and run
// where the namespace says.
func TestPodsArePlacedWithoutTheControllerManager(t *testing.T) {
	w := peered(t)
	namespace := offloaded(t)
	fixture.Must(t, "stopping the controller manager", w.rome.Stop())
	// What is for cleaning up begins when the test's context has ended.
	defer w.rome.Start(t)
	created := pod(namespace, "healed")
	// The name of the node is taken by the scheduler; a pod that has one already is nobody's to place.
	named := pod(namespace, "named")
	named.Spec.NodeName = w.node
	for _, p := range []*corev1.Pod{created, named} {
		fixture.Must(t, "creating pod "+p.Name, env.Rome.Client.Create(t.Context(), p))
	}
	awaitPods(t, env.Rome, namespace, 2)
	awaitPods(t, env.Milan, namespace, 2)
	fixture.Must(t, "reading the pod", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(created), created))
	if created.Spec.NodeName != w.node {
		t.Errorf("the pod of a namespace with strategy Remote runs on node %s, want %s", created.Spec.NodeName, w.node)
	}
}
