package podcache

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/reflection"
)

// Phases are those that a Census counts.
var Phases = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown}

// Census is what the pods of a node are, and take.
type Census struct {
	// Phases counts the pods in each phase.
	Phases map[corev1.PodPhase]int
	// Requests are those of the pods that have not ended, of the resources that capacity.Measured lists.
	Requests corev1.ResourceList
}

// counted is what a Census takes of one pod: its phase, and what it requests in the order of capacity.Measured.
type counted struct {
	phase    corev1.PodPhase
	requests [len(capacity.Measured)]int64
}

// countedOf looks at a pod. CPU is in thousandths.
func countedOf(pod *corev1.Pod) counted {
	c := counted{phase: corev1.PodPending}
	for _, phase := range Phases {
		if pod.Status.Phase == phase {
			c.phase = phase // not the pod's own text, which lies in memory for each pod
		}
	}
	if reflection.Terminal(pod.Status.Phase) {
		return c
	}
	requests := capacity.PodRequests(&pod.Spec)
	for i, name := range capacity.Measured {
		quantity := requests[name]
		c.requests[i] = quantity.Value()
		if name == corev1.ResourceCPU {
			c.requests[i] = quantity.MilliValue()
		}
	}
	return c
}

// Census counts the node's pods as the cache shows them.
func (c *Cache) Census() Census {
	census := Census{Phases: map[corev1.PodPhase]int{}, Requests: corev1.ResourceList{}}
	var sums [len(capacity.Measured)]int64
	for _, held := range c.All("") {
		census.Phases[held.phase]++
		for i, amount := range held.requests {
			sums[i] += amount
		}
	}
	for i, name := range capacity.Measured {
		census.Requests[name] = *resource.NewQuantity(sums[i], resource.DecimalSI)
		if name == corev1.ResourceCPU {
			census.Requests[name] = *resource.NewMilliQuantity(sums[i], resource.DecimalSI)
		}
	}
	return census
}
