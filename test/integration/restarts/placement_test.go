package restarts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// While no controller manager runs, applications of offloaded namespaces scale and heal: their pods are admitted at once, and run
// where the namespace says.
func TestPodsArePlacedWithoutTheControllerManager(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	fixture.Must(t, "stopping the controller manager", w.Rome.Stop())
	// What is for cleaning up begins when the test's context has ended.
	defer w.Rome.Start(t)
	created := world.Pod(namespace, "healed")
	// The name of the node is taken by the scheduler; a pod that has one already is nobody's to place.
	named := world.Pod(namespace, "named")
	named.Spec.NodeName = w.Node
	for _, p := range []*corev1.Pod{created, named} {
		fixture.Must(t, "creating pod "+p.Name, env.Rome.Client.Create(t.Context(), p))
	}
	world.AwaitPods(t, env.Rome, namespace, 2)
	world.AwaitPods(t, env.Milan, namespace, 2)
	fixture.Must(t, "reading the pod", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(created), created))
	if created.Spec.NodeName != w.Node {
		t.Errorf("the pod of a namespace with strategy Remote runs on node %s, want %s", created.Spec.NodeName, w.Node)
	}
}
