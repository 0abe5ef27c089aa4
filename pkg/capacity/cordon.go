package capacity

import (
	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// CheckCordon returns why a pod may not ask for this after it asked for that, or nil if it may: all that counts where grants are
// not enforced. What does not grow is free.
func CheckCordon(grant *offloadingv1beta1.QuotaSpec, old, now *corev1.PodSpec) *Refusal {
	more := PodRequests(now)
	subtract(more, PodRequests(old))
	if len(more) == 0 {
		return nil
	}
	return checkCordon(grant)
}

// checkCordon refuses what grows under a cordoned grant.
func checkCordon(grant *offloadingv1beta1.QuotaSpec) *Refusal {
	if grant.Cordoned == nil || !*grant.Cordoned {
		return nil
	}
	return refuse(offloadingv1beta1.ReasonCordoned, "the provider gives the pods of this slice nothing more: it is cordoned; ask the provider's administrator")
}
