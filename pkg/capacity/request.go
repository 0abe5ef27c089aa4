package capacity

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	upstream "k8s.io/component-helpers/resource"
)

// PodRequests returns what a pod takes of its user's grant.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	requests := upstream.PodRequests(&corev1.Pod{Spec: *spec}, upstream.PodResourcesOptions{})
	taken := corev1.ResourceList{}
	for name, quantity := range requests {
		if quantity.Sign() > 0 {
			taken[name] = quantity
		}
	}
	taken[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return taken
}

// UserLabel returns the label value that stands for a user. User names hold characters that label values cannot; a digest of
// fixed length always can, and cannot be chosen.
func UserLabel(user string) string {
	sum := sha256.Sum256([]byte(user))
	return "user-" + hex.EncodeToString(sum[:20])
}

// add adds what into to.
func add(to, what corev1.ResourceList) {
	for name, quantity := range what {
		sum := to[name].DeepCopy()
		sum.Add(quantity)
		to[name] = sum
	}
}

// subtract takes what out of from and forgets resources of which nothing is left.
func subtract(from, what corev1.ResourceList) {
	for name, quantity := range what {
		rest := from[name].DeepCopy()
		rest.Sub(quantity)
		if rest.Sign() <= 0 {
			delete(from, name)
			continue
		}
		from[name] = rest
	}
}
