package system

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
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

// A Deployment of a namespace whose pods may run in both clusters comes to use a folder of its host, which no provider gives: its new
// pods stay at home, and the rollout is done.
func TestARolloutThatNoProviderTakesStaysAtHome(t *testing.T) {
	w := peered(t)
	namespace := offloadedWith(t, offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType, corev1.NodeSelector{})
	nodes := &corev1.NodeList{}
	fixture.Must(t, "listing the nodes", env.Rome.Client.List(t.Context(), nodes))
	replicas := int32(len(nodes.Items)) // one on each, at first
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "a", Image: "b"}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}},
		}}}}
	rolledOut := func(what string) (nodes map[string]int) {
		t.Helper()
		fixture.Await(t, 2*fixture.Patience, what, func(ctx context.Context) (bool, string) {
			err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(web), web)
			s := web.Status
			return err == nil && s.ObservedGeneration == web.Generation && s.Replicas == replicas && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas,
				fmt.Sprintf("%+v %v", s, err)
		})
		pods := &corev1.PodList{}
		fixture.Must(t, "listing the pods", env.Rome.Client.List(t.Context(), pods, client.InNamespace(namespace)))
		nodes = map[string]int{}
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp == nil {
				nodes[pods.Items[i].Spec.NodeName]++
			}
		}
		return nodes
	}
	fixture.Must(t, "creating a Deployment", env.Rome.Client.Create(t.Context(), web))
	if nodes := rolledOut("the Deployment to be available"); nodes[w.node] == 0 {
		t.Fatalf("no pod of it is on the virtual node, so this proves nothing: %v", nodes)
	}
	fixture.Must(t, "having it use a folder of its host", env.Rome.Client.Patch(t.Context(), web.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"volumes":[{"name":"h","hostPath":{"path":"/"}}]}}}}`))))
	if nodes := rolledOut("the rollout to be done"); nodes[w.node] != 0 {
		t.Errorf("pods that use their host's folder are on the virtual node: %v", nodes)
	}
}
