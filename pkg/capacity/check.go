package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Refusal is why a pod is not admitted.
type Refusal struct {
	// Reason is one of the reasons of the offloading group.
	Reason string
	// Message tells the user what to do.
	Message string
}

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

func refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Check returns why a pod may not be created under a grant of which used is taken, or nil if it may.
func Check(grant *offloadingv1beta1.QuotaSpec, spec *corev1.PodSpec, used corev1.ResourceList) *Refusal {
	if grant.Cordoned != nil && *grant.Cordoned {
		return refuse(offloadingv1beta1.ReasonCordoned, "the provider takes no new pods of this slice: it is cordoned; ask the provider's administrator")
	}
	if refusal := checkSigns(spec); refusal != nil {
		return refusal
	}
	if refusal := checkDeclared(grant, spec); refusal != nil {
		return refusal
	}
	return fits(grant.Resources, used, PodRequests(spec))
}

// checkKept returns why no more pods are kept, or nil if they are: twice as many as may run at a time, those that ended among them.
func checkKept(grant *offloadingv1beta1.QuotaSpec, used corev1.ResourceList) *Refusal {
	most, granted := grant.Resources[corev1.ResourcePods]
	if !granted {
		return nil
	}
	most = most.DeepCopy()
	most.Add(most)
	if has := used[objects]; has.Cmp(most) >= 0 {
		return refuse(offloadingv1beta1.ReasonTooManyEndedPods,
			"the provider keeps %s pods of this slice, those that ended included, which is twice as many as may run: delete pods that ended", has.String())
	}
	return nil
}

// CheckGrowth returns why no pod may get more under a grant, or nil if it may, as far as there is room.
func CheckGrowth(grant *offloadingv1beta1.QuotaSpec) *Refusal {
	if grant.Cordoned != nil && *grant.Cordoned {
		return refuse(offloadingv1beta1.ReasonCordoned, "the provider lets no pod of this slice grow: it is cordoned; ask the provider's administrator")
	}
	return nil
}

// checkSigns refuses negative quantities: the API server finds them only in Pods, and here they would pay for other containers.
func checkSigns(spec *corev1.PodSpec) *Refusal {
	lists := []corev1.ResourceList{spec.Overhead, podLevel(spec).Requests, podLevel(spec).Limits}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			lists = append(lists, containers[i].Resources.Requests, containers[i].Resources.Limits)
		}
	}
	for _, list := range lists {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if quantity := list[name]; quantity.Sign() < 0 {
				return refuse(offloadingv1beta1.ReasonPodRefused, "the quantity %s of %s is negative", quantity.String(), name)
			}
		}
	}
	return nil
}

// checkDeclared checks that a pod declares what the grant's enforcement wants declared.
func checkDeclared(grant *offloadingv1beta1.QuotaSpec, spec *corev1.PodSpec) *Refusal {
	if grant.LimitsEnforcement != offloadingv1beta1.SoftLimitsEnforcement && grant.LimitsEnforcement != offloadingv1beta1.HardLimitsEnforcement {
		return nil
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if refusal := checkContainer(grant, &containers[i], podLevel(spec)); refusal != nil {
				return refusal
			}
		}
	}
	if grant.LimitsEnforcement == offloadingv1beta1.HardLimitsEnforcement {
		return checkLimits("the pod", podLevel(spec), "spec.resources")
	}
	return nil
}

func podLevel(spec *corev1.PodSpec) corev1.ResourceRequirements {
	if spec.Resources == nil {
		return corev1.ResourceRequirements{}
	}
	return *spec.Resources
}

// wanted are the resources that containers have to request. What of a node's disk a pod takes, its emptyDirs included, is bounded by a limit alone; where
// none is granted, none can be asked for.
func wanted(grant *offloadingv1beta1.QuotaSpec) []string {
	names := []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory)}
	if _, granted := grant.Resources[corev1.ResourceEphemeralStorage]; granted && grant.LimitsEnforcement == offloadingv1beta1.HardLimitsEnforcement {
		names = append(names, string(corev1.ResourceEphemeralStorage))
	}
	return names
}

func checkContainer(grant *offloadingv1beta1.QuotaSpec, c *corev1.Container, pod corev1.ResourceRequirements) *Refusal {
	names := wanted(grant)
	for _, name := range names {
		_, declared := c.Resources.Requests[corev1.ResourceName(name)]
		_, together := pod.Requests[corev1.ResourceName(name)]
		if !declared && !together {
			return refuse(offloadingv1beta1.ReasonQuotaExceeded,
				"container %q has no %s request: the provider wants requests for %s (limits enforcement %s); set resources.requests", c.Name, name,
				strings.Join(names, " and "), grant.LimitsEnforcement)
		}
	}
	if grant.LimitsEnforcement != offloadingv1beta1.HardLimitsEnforcement {
		return nil
	}
	return checkLimits(fmt.Sprintf("container %q", c.Name), c.Resources, "resources")
}

// checkLimits refuses requests without a limit as large; field is where the resources are.
func checkLimits(whose string, r corev1.ResourceRequirements, field string) *Refusal {
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request := r.Requests[name]
		limit, limited := r.Limits[name]
		if !limited || limit.Cmp(request) != 0 {
			return refuse(offloadingv1beta1.ReasonQuotaExceeded,
				"%s must have a %s limit equal to its request %s (limits enforcement Hard); set %s.limits", whose, name, request.String(), field)
		}
	}
	return nil
}

// fits compares what a pod takes with what is left of a grant.
func fits(granted, used, wanted corev1.ResourceList) *Refusal {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		limit, known := granted[name]
		if !known && name == corev1.ResourcePods {
			continue
		}
		if !known {
			return refuse(offloadingv1beta1.ReasonQuotaExceeded,
				"the provider granted no %s: limit not found for this resource; ask for it in the ResourceSlice, or do not request it", name)
		}
		taken, want := used[name].DeepCopy(), wanted[name]
		total := taken.DeepCopy()
		total.Add(want)
		if total.Cmp(limit) > 0 {
			return refuse(offloadingv1beta1.ReasonQuotaExceeded,
				"the provider's grant of %s is used up: requested %s, used %s of %s; delete pods, or ask for more in the ResourceSlice",
				name, want.String(), taken.String(), limit.String())
		}
	}
	return nil
}
