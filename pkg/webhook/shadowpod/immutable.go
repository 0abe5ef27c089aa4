package shadowpod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// whyImmutable returns why one specification may not follow another, or nothing if it may: as in a Pod, only images, a
// shorter or new activeDeadlineSeconds, additional tolerations and ephemeral containers, how long tolerations last, and how much cpu
// and memory containers and the pod as a whole have, may change.
func whyImmutable(old, now *corev1.PodSpec) string {
	if len(old.Containers) != len(now.Containers) || len(old.InitContainers) != len(now.InitContainers) {
		return "containers cannot be added or removed"
	}
	if a, b := old.ActiveDeadlineSeconds, now.ActiveDeadlineSeconds; a != nil && (b == nil || *b > *a) {
		return "activeDeadlineSeconds can only be set or lowered"
	}
	if why := whyNotAdded(old, now); why != "" {
		return why
	}
	rest, none := now.DeepCopy(), corev1.ResourceRequirements{}
	for _, pair := range [][2][]corev1.Container{{old.Containers, rest.Containers}, {old.InitContainers, rest.InitContainers}} {
		for i := range pair[1] {
			whose := fmt.Sprintf("container %q", pair[0][i].Name)
			if why := whyNotResized(whose, pair[0][i].Resources, pair[1][i].Resources); why != "" {
				return why
			}
			pair[1][i].Image, pair[1][i].Resources = pair[0][i].Image, pair[0][i].Resources
		}
	}
	if why := whyNotResized("the pod", ptr.Deref(old.Resources, none), ptr.Deref(now.Resources, none)); why != "" {
		return why
	}
	rest.Resources = old.Resources
	rest.ActiveDeadlineSeconds, rest.Tolerations = old.ActiveDeadlineSeconds, old.Tolerations
	rest.EphemeralContainers = old.EphemeralContainers
	if !equality.Semantic.DeepEqual(old, rest) {
		return fmt.Sprintf("the specification of a pod cannot be changed, but for %s; delete the ShadowPod and create it again",
			"images, activeDeadlineSeconds, cpu and memory, and additional tolerations and ephemeral containers")
	}
	return ""
}

// maxEphemeralContainers is how many ephemeral containers a pod has at most: the controller adds each by a request of its own.
const maxEphemeralContainers = 64

// whyTooMany returns what a specification has too much of, beyond what it had before.
func whyTooMany(old, now *corev1.PodSpec) string {
	if n := len(now.EphemeralContainers); n > maxEphemeralContainers && n > len(old.EphemeralContainers) {
		return fmt.Sprintf("a pod has at most %d ephemeral containers", maxEphemeralContainers)
	}
	return ""
}

// whyNotAdded returns what is wrong with the lists that only grow.
func whyNotAdded(old, now *corev1.PodSpec) string {
	lasting := func(a, b corev1.Toleration) bool { return a.MatchToleration(&b) }
	if len(now.Tolerations) < len(old.Tolerations) || !slices.EqualFunc(old.Tolerations, now.Tolerations[:len(old.Tolerations)], lasting) {
		return "tolerations can only be added, or last another time"
	}
	if len(now.EphemeralContainers) < len(old.EphemeralContainers) ||
		!equality.Semantic.DeepEqual(old.EphemeralContainers, now.EphemeralContainers[:len(old.EphemeralContainers)]) {
		return "ephemeral containers can only be added"
	}
	if why := whyTooMany(old, now); why != "" {
		return why
	}
	for i := range now.EphemeralContainers {
		if r := now.EphemeralContainers[i].Resources; len(r.Requests) > 0 || len(r.Limits) > 0 {
			return "ephemeral containers have no resources of their own"
		}
	}
	return ""
}

// whyNotResized returns why a container, or the pod, may not have these resources after those: as in a Pod that is resized in
// place, only cpu and memory change, and none is taken away.
func whyNotResized(whose string, old, now corev1.ResourceRequirements) string {
	if !equality.Semantic.DeepEqual(old.Claims, now.Claims) {
		return fmt.Sprintf("the resource claims of %s cannot be changed", whose)
	}
	for _, pair := range [][2]corev1.ResourceList{{old.Requests, now.Requests}, {old.Limits, now.Limits}} {
		for name := range pair[0] {
			if _, there := pair[1][name]; !there {
				return fmt.Sprintf("requests and limits of %s cannot be removed", whose)
			}
		}
		for name, after := range pair[1] {
			before, there := pair[0][name]
			switch same := there && after.Cmp(before) == 0; {
			case !same && name != corev1.ResourceCPU && name != corev1.ResourceMemory:
				return fmt.Sprintf("of the resources of %s only cpu and memory can be changed", whose)
			case after.Sign() < 0:
				return fmt.Sprintf("the %s of %s is negative", name, whose)
			}
		}
	}
	return ""
}
