package shadowpod

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// In twin namespaces, bound there: pods/ephemeralcontainers patch.

// debug gives the Pod the ephemeral containers that the ShadowPod got since. What the provider's rules refuse is told by an
// Event and not tried again until something changes: the pod itself is in order.
func (r *reconciler) debug(ctx context.Context, s *scope) error {
	changed := s.pod.DeepCopy()
	for _, wanted := range s.shadow.Spec.Pod.EphemeralContainers {
		if !slices.ContainsFunc(s.pod.Spec.EphemeralContainers, func(has corev1.EphemeralContainer) bool { return has.Name == wanted.Name }) {
			changed.Spec.EphemeralContainers = append(changed.Spec.EphemeralContainers, wanted)
		}
	}
	if len(changed.Spec.EphemeralContainers) == len(s.pod.Spec.EphemeralContainers) {
		return nil
	}
	if problems := r.Check(&s.shadow.Spec.Pod); len(problems) > 0 {
		return nil // admission said so already
	}
	err := r.SubResource("ephemeralcontainers").Patch(ctx, changed, client.StrategicMergeFrom(s.pod, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonDebugFailed, "AddEphemeralContainer", "%v", err)
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("adding ephemeral containers to Pod %s/%s: %w", s.pod.Namespace, s.pod.Name, err)
	}
	return nil
}
