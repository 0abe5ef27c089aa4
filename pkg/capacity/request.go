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

// Taken returns what the Pod that runs for a specification takes of its user's grant: of each request that the specification
// has, what the Pod has, or still has while it is being resized. What the Pod was given besides is not its user's matter.
func Taken(asked *corev1.PodSpec, pod *corev1.Pod) corev1.ResourceList {
	taken := asked.DeepCopy()
	for i := range taken.Containers {
		takenBy(&taken.Containers[i], pod.Spec.Containers, pod.Status.ContainerStatuses)
	}
	for i := range taken.InitContainers {
		takenBy(&taken.InitContainers[i], pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	}
	return PodRequests(taken)
}

// takenBy sets the requests of a container to what it has.
func takenBy(container *corev1.Container, specs []corev1.Container, statuses []corev1.ContainerStatus) {
	has := corev1.ResourceList{}
	for i := range specs {
		if specs[i].Name == container.Name {
			has = Larger(has, specs[i].Resources.Requests)
		}
	}
	for i := range statuses {
		if statuses[i].Name != container.Name {
			continue
		}
		has = Larger(has, statuses[i].AllocatedResources)
		if statuses[i].Resources != nil {
			has = Larger(has, statuses[i].Resources.Requests)
		}
	}
	for name := range container.Resources.Requests {
		if quantity, found := has[name]; found {
			container.Resources.Requests[name] = quantity
		} else {
			delete(container.Resources.Requests, name)
		}
	}
}

// Larger returns the larger amount of each resource.
func Larger(a, b corev1.ResourceList) corev1.ResourceList {
	larger := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{a, b} {
		for name, quantity := range list {
			if has, found := larger[name]; !found || quantity.Cmp(has) > 0 {
				larger[name] = quantity.DeepCopy()
			}
		}
	}
	return larger
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
