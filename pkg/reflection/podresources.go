package reflection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// resources are what a container is shown to have. Without them Kubernetes refuses to resize a running pod. They count for the
// scheduler and for quotas of this cluster, so the provider tells only how far a resize came: what is shown lies between
// what was shown before and what the container is to have.
func (t *translation) resources(container string, before, now *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if now == nil && before == nil {
		return nil
	}
	wanted := t.wanted(container)
	if before == nil {
		before = &corev1.ResourceRequirements{}
	}
	if now == nil {
		now = &corev1.ResourceRequirements{}
	}
	return &corev1.ResourceRequirements{
		Requests: between(before.Requests, wanted.Requests, now.Requests), Limits: between(before.Limits, wanted.Limits, now.Limits),
	}
}

// allocated is what its node keeps for a container.
func (t *translation) allocated(container string, before, now corev1.ResourceList) corev1.ResourceList {
	if len(before) == 0 && len(now) == 0 {
		return nil
	}
	return between(before, t.wanted(container).Requests, now)
}

// wanted is what a container of the local pod is to have.
func (t *translation) wanted(container string) corev1.ResourceRequirements {
	for _, c := range slices.Concat(t.local.Spec.InitContainers, t.local.Spec.Containers) {
		if c.Name == container {
			return c.Resources
		}
	}
	return corev1.ResourceRequirements{}
}

// between returns the amounts of the wanted resources that are there now, held between those before and those wanted. Of what
// the provider does not tell, it is as much as was shown before, or as is wanted.
func between(before, wanted, now corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	for name, want := range wanted {
		has, there := now[name]
		if !there {
			has = want
			if shown, ok := before[name]; ok {
				has = shown
			}
		}
		low, high := want, want
		if shown, ok := before[name]; ok && shown.Cmp(low) < 0 {
			low = shown
		} else if ok && shown.Cmp(high) > 0 {
			high = shown
		}
		switch {
		case has.Cmp(low) < 0:
			has = low
		case has.Cmp(high) > 0:
			has = high
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = has.DeepCopy()
	}
	return out
}
