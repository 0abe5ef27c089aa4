package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Settled is the next offer, or the last one if they differ too little to be told: by no more than a hundredth of each resource, and by no
// whole device. With exclusive what becomes less is always told, because another one may have it by then, and what runs always is. By how
// much more runs than is offered is told alike, what runs, and what the nodes are.
func Settled(last, next Offer, exclusive bool) (settled Offer, changed bool) {
	for name := range Sum(last.Resources, next.Resources) {
		before, known := last.Resources[name]
		after, still := next.Resources[name]
		running := next.Running[name]
		if known != still || before.Cmp(running) < 0 || exclusive && after.Cmp(before) < 0 || differs(name, before, after) {
			return next, true
		}
	}
	if differ(last.Over, next.Over) {
		return next, true
	}
	runs := differ(last.Running, next.Running)
	last.Running = next.Running
	before, after := last.Nodes, next.Nodes
	if differ(before.LargestPod, after.LargestPod) || before.OperatingSystem != after.OperatingSystem || before.Architecture != after.Architecture {
		last.Nodes = next.Nodes // What is offered needs no crumbs for that.
		return last, true
	}
	return last, runs
}

func differ(before, after corev1.ResourceList) bool {
	for name := range Sum(before, after) {
		if differs(name, before[name], after[name]) {
			return true
		}
	}
	return false
}

// differs tells whether two quantities differ by more than a hundredth, or by a whole device.
func differs(name corev1.ResourceName, before, after resource.Quantity) bool {
	difference := after.DeepCopy()
	difference.Sub(before)
	if name != corev1.ResourcePods && Counted(name) {
		return !difference.IsZero()
	}
	if difference.Sign() < 0 {
		difference.Neg()
	}
	difference.Mul(100)
	return difference.Cmp(before) > 0
}
