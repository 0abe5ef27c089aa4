package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// Ceiling is the most that one tenant gets, of all its grants together.
type Ceiling struct {
	// Set by the provider's administrator, who means it: grants shrink to it.
	Set corev1.ResourceList
	// Nodes of the provider have this much. It is the ceiling of what is not set, and takes nothing away when a node goes: grants stay.
	Nodes corev1.ResourceList
}

// Of returns the ceiling of a resource, and whether it was set. What no node has is not to be had.
func (c Ceiling) Of(name corev1.ResourceName) (limit resource.Quantity, set bool) {
	if limit, set = c.Set[name]; set {
		return limit, true
	}
	return c.Nodes[name], false
}

// Possible is what can be had of what is asked for, whatever other grants hold.
func (c Ceiling) Possible(asked corev1.ResourceList) corev1.ResourceList {
	possible := maps.Clone(asked)
	for name, want := range possible {
		if limit, _ := c.Of(name); want.Cmp(limit) > 0 {
			possible[name] = limit
		}
	}
	return possible
}

// Bound returns what is granted of what is wanted, given what other grants of the same tenant hold and what this one held before. The
// number of pods is always part of it, if there is a ceiling for it: a grant that does not name it would not bound it. What is counted is
// granted in whole pieces.
func (c Ceiling) Bound(wanted, held, others corev1.ResourceList) corev1.ResourceList {
	granted := maps.Clone(wanted)
	if granted == nil {
		granted = corev1.ResourceList{}
	}
	if limit, set := c.Of(corev1.ResourcePods); set || !limit.IsZero() {
		if _, named := granted[corev1.ResourcePods]; !named {
			granted[corev1.ResourcePods] = limit
		}
	}
	for name, want := range granted {
		room, set := c.Of(name)
		room = room.DeepCopy()
		room.Sub(others[name])
		if had := held[name]; !set && had.Cmp(room) > 0 {
			room = had
		}
		if room.Sign() < 0 {
			room.Set(0)
		}
		if want.Cmp(room) > 0 {
			granted[name] = room.DeepCopy()
		}
	}
	WholePieces(granted)
	return granted
}

// Less are the names of the resources of which less is granted than wanted, in order.
func Less(granted, wanted corev1.ResourceList) []corev1.ResourceName {
	var less []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if has := granted[name]; has.Cmp(wanted[name]) < 0 {
			less = append(less, name)
		}
	}
	return less
}

// NodesHave returns what those nodes of a cluster have that take consumers' pods and have the labels. One that reports what cannot be has
// nothing.
func NodesHave(nodes []corev1.Node, tolerated Tolerated, having labels.Set) corev1.ResourceList {
	have, selector := corev1.ResourceList{}, having.AsSelectorPreValidated()
	for i := range nodes {
		if !tolerated.TakesPods(&nodes[i]) || !selector.Matches(labels.Set(nodes[i].Labels)) {
			continue
		}
		believed, err := measure(nodes[i].Status.Allocatable, false)
		if err != nil {
			continue
		}
		for _, one := range believed {
			if _, known := have[one.name]; known || len(have) < maxPoolResources {
				add(have, corev1.ResourceList{one.name: amountOf(one.name, one.value)})
			}
		}
	}
	return have
}

// Tolerated tells whether consumers' pods may tolerate the taints of a key; nil that they tolerate none but those that Kubernetes sees to.
type Tolerated func(key string) bool

// TakesPods tells whether a node takes consumers' pods: it is ready, is no other cluster, and has no taint that keeps them off. A taint
// that is called like a device of the node keeps off only who does not ask for the device: API servers add a toleration for who does.
func (t Tolerated) TakesPods(node *corev1.Node) bool {
	if node.Spec.Unschedulable || node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType {
		return false
	}
	for _, taint := range node.Spec.Taints {
		_, device := node.Status.Allocatable[corev1.ResourceName(taint.Key)]
		soft := taint.Effect == corev1.TaintEffectPreferNoSchedule
		// Pods that request something tolerate that the node is short of memory.
		if !soft && !device && taint.Key != corev1.TaintNodeMemoryPressure && (t == nil || !t(taint.Key)) {
			return false
		}
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
