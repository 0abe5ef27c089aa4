package shadowpod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// whyImmutable returns why one specification may not follow another, or nothing if it may: as in a Pod, only images, a
// shorter or new activeDeadlineSeconds, and additional tolerations and ephemeral containers.
func whyImmutable(old, now *corev1.PodSpec) string {
	if len(old.Containers) != len(now.Containers) || len(old.InitContainers) != len(now.InitContainers) {
		return "containers cannot be added or removed"
	}
	if a, b := old.ActiveDeadlineSeconds, now.ActiveDeadlineSeconds; a != nil && (b == nil || *b > *a) {
		return "activeDeadlineSeconds can only be set or lowered"
	}
	if len(now.Tolerations) < len(old.Tolerations) {
		return "tolerations can only be added"
	}
	for i := range old.Tolerations {
		if !equality.Semantic.DeepEqual(old.Tolerations[i], now.Tolerations[i]) {
			return "tolerations can only be added"
		}
	}
	if len(now.EphemeralContainers) < len(old.EphemeralContainers) || !equality.Semantic.DeepEqual(old.EphemeralContainers, now.EphemeralContainers[:len(old.EphemeralContainers)]) {
		return "ephemeral containers can only be added"
	}
	for i := range now.EphemeralContainers {
		if r := now.EphemeralContainers[i].Resources; len(r.Requests) > 0 || len(r.Limits) > 0 {
			return "ephemeral containers have no resources of their own"
		}
	}
	rest := now.DeepCopy()
	for i := range rest.Containers {
		rest.Containers[i].Image = old.Containers[i].Image
	}
	for i := range rest.InitContainers {
		rest.InitContainers[i].Image = old.InitContainers[i].Image
	}
	rest.ActiveDeadlineSeconds, rest.Tolerations = old.ActiveDeadlineSeconds, old.Tolerations
	rest.EphemeralContainers = old.EphemeralContainers
	if !equality.Semantic.DeepEqual(old, rest) {
		return fmt.Sprintf("the specification of a pod cannot be changed, but for %s; delete the ShadowPod and create it again",
			"images, activeDeadlineSeconds and additional tolerations and ephemeral containers")
	}
	return ""
}
