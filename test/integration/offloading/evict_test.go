package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A namespace whose pods run at a provider comes home: with --evict each is evicted, as far as a PodDisruptionBudget lets it, and its
// Deployment makes it anew at home. What has ended stays.
func TestAStricterStrategyEvictsWhatViolatesIt(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	namespace := env.Offloaded(t)
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}}}
	// Nothing may leave while it asks for all of them.
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: ptr.To(intstr.FromInt32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels}}}
	for _, object := range []client.Object{budget, web} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	before := world.AwaitPods(t, env.Rome, namespace, 3)
	fixture.Await(t, fixture.Patience, "the budget to count the pods", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(budget), budget)
		return err == nil && budget.Status.CurrentHealthy == 3 && budget.Status.ObservedGeneration == budget.Generation, fmt.Sprint(budget.Status, err)
	})
	rome, err := target.FromKubeconfig(env.Rome.Kubeconfig, "")
	fixture.Must(t, "opening the kubeconfig of rome", err)
	home := func(ctx context.Context) error {
		_, err := offload.Namespace(ctx, offload.Options{Cluster: rome, Namespaces: []string{namespace}, Evict: true, Timeout: fixture.Patience,
			Spec: offloadingv1beta1.NamespaceOffloadingSpec{NamespaceMappingStrategy: offloadingv1beta1.EnforceSameNameMappingStrategyType,
				PodOffloadingStrategy: offloadingv1beta1.LocalPodOffloadingStrategyType}})
		return err
	}
	err = home(t.Context())
	if failure.CodeOf(err) != failure.Timeout || !strings.Contains(err.Error(), "a PodDisruptionBudget holds 3 pods") {
		t.Fatalf("evicting what a budget holds ends with %v", err)
	}
	for name, uid := range world.AwaitPods(t, env.Rome, namespace, 3) {
		if before[name] != uid {
			t.Errorf("pod %s left although the budget holds it", name)
		}
	}

	budget.Spec.MinAvailable = ptr.To(intstr.FromInt32(2))
	fixture.Must(t, "letting one leave at a time", env.Rome.Client.Update(t.Context(), budget))
	fixture.Must(t, "bringing the pods home", home(t.Context()))
	fixture.Await(t, 2*fixture.Patience, "three pods to run at home", func(ctx context.Context) (bool, string) {
		pods, at := &corev1.PodList{}, map[string]int{}
		err := env.Rome.Client.List(ctx, pods, client.InNamespace(namespace))
		for i := range pods.Items {
			at[pods.Items[i].Spec.NodeName]++
		}
		return err == nil && len(pods.Items) == 3 && at[virtual] == 0 && at[""] == 0, fmt.Sprint(at, err)
	})
}
