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

// debug gives the Pod the ephemeral containers that the ShadowPod got since, one by one: what the provider's rules refuse is told
// by an Event, is not tried again until something changes, and keeps no other one away. The pod itself is in order.
func (r *reconciler) debug(ctx context.Context, s *scope) error {
	for _, wanted := range s.shadow.Spec.Pod.EphemeralContainers {
		if slices.ContainsFunc(s.pod.Spec.EphemeralContainers, func(has corev1.EphemeralContainer) bool { return has.Name == wanted.Name }) {
			continue
		}
		if problems := r.Check(&s.shadow.Spec.Pod); len(problems) > 0 {
			return nil // admission said so already
		}
		changed := s.pod.DeepCopy()
		changed.Spec.EphemeralContainers = append(changed.Spec.EphemeralContainers, wanted)
		err := r.SubResource("ephemeralcontainers").Patch(ctx, changed, client.StrategicMergeFrom(s.pod, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			s.pod = changed
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
			r.Events.Eventf(s.shadow, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonDebugFailed, "AddEphemeralContainer", "%v", err)
		case apierrors.IsNotFound(err):
			return nil
		default:
			return fmt.Errorf("adding ephemeral container %s to Pod %s/%s: %w", wanted.Name, s.pod.Namespace, s.pod.Name, err)
		}
	}
	return nil
}
