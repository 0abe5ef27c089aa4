package shadowpod

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// asked returns a digest of how much cpu and memory the containers of a specification, and all of them together, ask for, the value
// of ResourcesAskedAnnotation. Amounts that are written in different ways have the same one.
func asked(spec *corev1.PodSpec) string {
	digest := sha256.New()
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			// Writing to a digest never fails.
			_, _ = fmt.Fprintf(digest, "%q", containers[i].Name)
			writeAmounts(digest, containers[i].Resources.Requests)
			writeAmounts(digest, containers[i].Resources.Limits)
		}
	}
	if spec.Resources != nil {
		writeAmounts(digest, spec.Resources.Requests)
		writeAmounts(digest, spec.Resources.Limits)
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

func writeAmounts(to io.Writer, list corev1.ResourceList) {
	cpu, memory := "-", "-"
	if quantity, found := list[corev1.ResourceCPU]; found {
		cpu = fmt.Sprint(quantity.MilliValue())
	}
	if quantity, found := list[corev1.ResourceMemory]; found {
		memory = fmt.Sprint(quantity.Value())
	}
	_, _ = fmt.Fprintf(to, " %s %s\n", cpu, memory)
}

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
