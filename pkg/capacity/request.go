package capacity

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	upstream "k8s.io/component-helpers/resource"
)

// PodRequests returns what a pod takes of its user's grant: what the API server makes of its specification.
func PodRequests(spec *corev1.PodSpec) corev1.ResourceList {
	return sum(defaulted(spec))
}

// Small is the most that a small pod requests, of which the webhook for bindings is not asked unless a virtual node is Crowded: a call for each pod
// of a burst costs more than all policies. Most stateless services request less. Policy liqo-placement says to API servers what may be larger.
func Small() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("1"),
	}
}

// Crowded tells whether some small pod may be larger than the largest that there is room for.
func Crowded(largest corev1.ResourceList) bool {
	for name, small := range Small() {
		if most, known := largest[name]; known && most.Cmp(small) < 0 {
			return true
		}
	}
	return false
}

// WhyLarger says what a pod requests more of than one pod can have, empty if nothing. What is not known to be limited passes, and so does what
// is larger by no more than a hundredth, because so much changes without being told.
func WhyLarger(spec *corev1.PodSpec, largest corev1.ResourceList) string {
	requests := PodRequests(spec)
	for _, name := range InOrder(requests) {
		most, known := largest[name]
		if asked := requests[name]; known && asked.Cmp(most) > 0 && differs(name, most, asked) {
			return fmt.Sprintf("it requests %s %s, of which no more than %s is left", name, asked.String(), most.String())
		}
	}
	return ""
}

// sum adds up requests. Those of the pod as a whole count only if they are larger: an API server that does not know them drops
// them, and others want them to be.
func sum(spec *corev1.PodSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *spec}
	requests := Larger(upstream.PodRequests(pod, upstream.PodResourcesOptions{}),
		upstream.PodRequests(pod, upstream.PodResourcesOptions{SkipPodLevelResources: true}))
	taken := corev1.ResourceList{}
	for name, quantity := range requests {
		if quantity.Sign() > 0 {
			taken[name] = quantity
		}
	}
	taken[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return taken
}

// defaulted returns of a specification what its requests depend on, with requests as the API server defaults them in a Pod: a
// limit without a request is a request as well, and no quantity is finer than a thousandth.
func defaulted(spec *corev1.PodSpec) *corev1.PodSpec {
	out := &corev1.PodSpec{Overhead: spec.Overhead, Containers: requesting(spec.Containers), InitContainers: requesting(spec.InitContainers)}
	if spec.Resources == nil {
		return out
	}
	pod := requested(*spec.Resources)
	apart := upstream.AggregateContainerRequests(&corev1.Pod{Spec: *out}, upstream.PodResourcesOptions{})
	for name := range pod {
		_, declared := spec.Resources.Requests[name]
		_, named := apart[name]
		// What containers request is the default of the pod, before its limit is; but not of huge pages.
		if !declared && named && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			delete(pod, name)
		}
	}
	out.Resources = &corev1.ResourceRequirements{Requests: pod}
	return out
}

// requesting returns containers with nothing but their requests.
func requesting(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, 0, len(containers))
	for i := range containers {
		c := &containers[i]
		out = append(out, corev1.Container{Name: c.Name, RestartPolicy: c.RestartPolicy,
			Resources: corev1.ResourceRequirements{Requests: requested(c.Resources)}})
	}
	return out
}

// requested returns requests, and limits where there is no request.
func requested(r corev1.ResourceRequirements) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name, quantity := range list {
			rounded := quantity.DeepCopy()
			rounded.RoundUp(resource.Milli)
			out[name] = rounded
		}
	}
	return out
}

// Taken returns what the Pod that runs for a specification takes of its user's grant: of each request that the specification
// has or gets by default, what the Pod has, or still has while it is being resized. What the Pod was given besides is not its
// user's matter.
func Taken(asked *corev1.PodSpec, pod *corev1.Pod) corev1.ResourceList {
	taken := defaulted(asked)
	for i := range taken.Containers {
		takenBy(&taken.Containers[i], pod.Spec.Containers, pod.Status.ContainerStatuses)
	}
	for i := range taken.InitContainers {
		takenBy(&taken.InitContainers[i], pod.Spec.InitContainers, pod.Status.InitContainerStatuses)
	}
	if taken.Resources != nil {
		takenTogether(taken, pod)
	}
	return sum(taken)
}

// takenTogether sets the requests of a pod as a whole to what it has: of what was asked for, and of what the API server made of the
// containers' first size, which it fixed.
func takenTogether(taken *corev1.PodSpec, pod *corev1.Pod) {
	ours, has := sum(taken), corev1.ResourceList{}
	if pod.Spec.Resources != nil {
		has = requested(corev1.ResourceRequirements{Requests: pod.Spec.Resources.Requests})
	}
	allocated := pod.Status.AllocatedResources.DeepCopy()
	subtract(allocated, pod.Spec.Overhead)
	still := Larger(nil, allocated)
	resizing := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizeInProgress })
	if resizing && pod.Status.Resources != nil {
		// At rest it is what was allocated, but for rounding.
		still = Larger(still, pod.Status.Resources.Requests)
	}
	for name, quantity := range has {
		if _, asked := ours[name]; !asked {
			delete(has, name)
		} else if more, found := still[name]; found && more.Cmp(quantity) > 0 {
			has[name] = more
		}
	}
	taken.Resources.Requests = has
}

// takenBy sets the requests of a container to what it has.
func takenBy(container *corev1.Container, specs []corev1.Container, statuses []corev1.ContainerStatus) {
	has := corev1.ResourceList{}
	for i := range specs {
		if specs[i].Name == container.Name {
			has = Larger(has, requested(specs[i].Resources))
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

// Sum returns two amounts together.
func Sum(a, b corev1.ResourceList) corev1.ResourceList {
	sum := Larger(nil, a)
	add(sum, b)
	return sum
}

// Text says a list in words, such as "cpu 2, memory 1Gi".
func Text(list corev1.ResourceList) string {
	parts := make([]string, 0, len(list))
	for _, name := range names(list) {
		quantity := list[name]
		parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	return strings.Join(parts, ", ")
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

// Measured are the resources of which metrics tell how much of a grant is taken. It is a closed list: the names of others are the
// peers' choice, and each would be a series of its own.
var Measured = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods}
