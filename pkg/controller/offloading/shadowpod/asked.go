package shadowpod

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// remember writes on a Pod what was asked for it last, so that what the provider makes of it afterwards stays. A write of its
// own: the API server takes no annotations from a resize.
func (r *reconciler) remember(ctx context.Context, pod *corev1.Pod, digest string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{offloadingv1beta1.ResourcesAskedAnnotation: digest},
	}})
	if err != nil {
		return fmt.Errorf("encoding what Pod %s/%s was resized to: %w", pod.Namespace, pod.Name, err)
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := r.Patch(ctx, target, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting what Pod %s/%s was resized to: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
