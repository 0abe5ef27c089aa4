package offloading

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
	"liqo.io/liqo/test/integration/world"
)

// A Deployment of a namespace whose pods may run in both clusters comes to use a folder of its host, which no provider gives: its new
// pods stay at home, and the rollout is done.
func TestARolloutThatNoProviderTakesStaysAtHome(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	namespace := env.OffloadedAs(t, world.InStrategy(offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType, corev1.NodeSelector{}))
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
	if nodes := rolledOut("the Deployment to be available"); nodes[virtual] == 0 {
		t.Fatalf("no pod of it is on the virtual node, so this proves nothing: %v", nodes)
	}
	fixture.Must(t, "having it use a folder of its host", env.Rome.Client.Patch(t.Context(), web.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"volumes":[{"name":"h","hostPath":{"path":"/"}}]}}}}`))))
	if nodes := rolledOut("the rollout to be done"); nodes[virtual] != 0 {
		t.Errorf("pods that use their host's folder are on the virtual node: %v", nodes)
	}
}
