package offloading

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// V14: a consumer reads the logs of the pods that its ShadowPods became, once it asked for them, and of no others.
func TestLogsOfForeignPods(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	namespace := env.Offloaded(t)
	own := world.Pod(namespace, "own")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), own))
	fixture.Await(t, 2*fixture.Patience, "the pod to run", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(own), own)
		return err == nil && own.Status.Phase == corev1.PodRunning, fmt.Sprint(own.Status, err)
	})
	// The provider's own pod in the twin claims to be a ShadowPod's.
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "providers", Namespace: namespace, Labels: map[string]string{
		offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
	fixture.Must(t, "creating the provider's pod", env.Milan.Client.Create(t.Context(), foreign))

	slice := env.Milan.Slice(t, "rome", virtual)
	forbidden := func(ctx context.Context, name string) (bool, error) {
		_, err := slice.Kube.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{Container: "a"}).DoRaw(ctx)
		return apierrors.IsForbidden(err), err
	}
	for _, name := range []string{"own", "providers"} {
		if refused, err := forbidden(t.Context(), name); !refused {
			t.Errorf("logs of pod %s that nobody asked for: %v, want 403", name, err)
		}
	}
	shadow := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}}
	ask := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+offloadingv1beta1.LogsRequestedAnnotation+`":"true"}}}`))
	fixture.Must(t, "asking for logs", slice.Patch(t.Context(), shadow, ask))
	fixture.Await(t, fixture.Patience, "the logs of the consumer's pod to be permitted", func(ctx context.Context) (bool, string) {
		refused, err := forbidden(ctx, "own") // a simulated node may have none
		return !refused, fmt.Sprint(err)
	})
	if refused, err := forbidden(t.Context(), "providers"); !refused {
		t.Errorf("logs of the provider's pod: %v, want 403", err)
	}
	remote := &corev1.Pod{}
	fixture.Must(t, "reading the remote pod", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(shadow), remote))
	if _, there := remote.Annotations[offloadingv1beta1.LogsRequestedAnnotation]; there {
		t.Error("the request was written into the pod, too")
	}
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), own))
	fixture.Await(t, 2*fixture.Patience, "the permission to go with the ShadowPod", func(ctx context.Context) (bool, string) {
		refused, err := forbidden(ctx, "own")
		return refused, fmt.Sprint(err)
	})
}
