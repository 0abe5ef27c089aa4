package restarts

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// The same of twins, here while milan's controller manager does not run: pods that may finish carry a finalizer, and our right to change
// pods there goes with the twin. Kubernetes takes it once the pods have gone (from 1.33 on).
func TestATwinDeletedAtTheProviderGoesWithItsJobs(t *testing.T) {
	w := env.Peered(t)
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "100", "memory", "100Gi", "pods", "50"))
	twin := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	const jobs = 3
	for i := range jobs {
		spec := world.Container(func(one *corev1.Container) { one.Resources.Requests = world.Quantities("cpu", "1", "memory", "1Gi") })
		spec.RestartPolicy = corev1.RestartPolicyNever
		fixture.Must(t, "creating a ShadowPod", user.Create(t.Context(), c.Shadow(twin, fmt.Sprintf("job-%d", i), spec)))
	}
	world.AwaitPods(t, env.Milan, twin, jobs)
	pods := &corev1.PodList{}
	fixture.Must(t, "listing the pods", env.Milan.Client.List(t.Context(), pods, client.InNamespace(twin)))
	for i := range pods.Items {
		if !slices.Contains(pods.Items[i].Finalizers, offloadingv1beta1.ShadowPodRecordFinalizer) {
			t.Fatalf("pod %s has no finalizer: %v", pods.Items[i].Name, pods.Items[i].Finalizers)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: twin}}
	fixture.Must(t, "reading the twin", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	uid := namespace.UID
	fixture.Must(t, "stopping the controller manager of milan", w.Milan.Stop())
	fixture.Must(t, "deleting the twin at milan", env.Milan.Client.Delete(t.Context(), namespace.DeepCopy()))
	fixture.Await(t, fixture.Patience, "Kubernetes to delete the pods", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.List(ctx, pods, client.InNamespace(twin))
		return err == nil && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil }), fmt.Sprint(len(pods.Items), err)
	})
	w.Milan.Start(t)
	fixture.Await(t, 2*fixture.Patience, "the twin to go", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		return client.IgnoreNotFound(err) == nil && (err != nil || namespace.UID != uid), fmt.Sprint(namespace.Status.Conditions, err)
	})
}
