package reflection

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// WhyResizePending is the reason of condition PodResizePending for a size that the provider refused for a reason of the offloading
// group and in these words: deferred if there may be room later or a cordon ends, else infeasible.
func WhyResizePending(reason, message string) string {
	if reason == offloadingv1beta1.ReasonQuotaExceeded || strings.Contains(strings.ToLower(message), "quota") ||
		strings.Contains(message, offloadingv1beta1.ReasonCordoned+": ") {
		return corev1.PodReasonDeferred
	}
	return corev1.PodReasonInfeasible
}

// ResizePendingOf is the condition of the local pod for a size that the provider took and its controller then refused; nil if that
// did not happen.
func ResizePendingOf(shadow *offloadingv1beta1.ShadowPod, remote string) *corev1.PodCondition {
	said := saidOf(shadow, string(corev1.PodResizePending))
	if said == nil {
		return nil
	}
	reason := corev1.PodReasonDeferred
	if said.Reason == corev1.PodReasonInfeasible {
		reason = said.Reason
	}
	return &corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason, Message: wordsOf(said, remote)}
}

// changeReasons are why a provider's controller does not make a change: of a container of kubectl debug, because somebody keeps undoing
// it, of anything else. What else a provider may say stands for the last of them.
var changeReasons = []string{offloadingv1beta1.ReasonDebugFailed, offloadingv1beta1.ReasonContended, offloadingv1beta1.ReasonFailedReflection}

// ChangeRefusedOf is the condition of the local pod for another change, such as a container of kubectl debug, that the provider took
// and its controller then refused; nil if that did not happen.
func ChangeRefusedOf(shadow *offloadingv1beta1.ShadowPod, remote string) *corev1.PodCondition {
	said := saidOf(shadow, offloadingv1beta1.ChangeRefusedCondition)
	if said == nil {
		return nil
	}
	reason := offloadingv1beta1.ReasonFailedReflection
	if slices.Contains(changeReasons, said.Reason) {
		reason = said.Reason
	}
	return &corev1.PodCondition{Type: offloadingv1beta1.ChangeRefusedCondition, Status: corev1.ConditionTrue, Reason: reason, Message: wordsOf(said, remote)}
}

// saidOf is what the provider says of a refused change; nil if it says nothing.
func saidOf(shadow *offloadingv1beta1.ShadowPod, conditionType string) *metav1.Condition {
	for i := range shadow.Status.Conditions {
		if c := &shadow.Status.Conditions[i]; c.Type == conditionType && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

func wordsOf(said *metav1.Condition, remote string) string {
	if said.Reason == offloadingv1beta1.ReasonContended {
		return bounded(fmt.Sprintf("cluster %q: %s", remote, bounded(said.Message)))
	}
	return bounded(fmt.Sprintf("cluster %q refused it: %s", remote, bounded(said.Message)))
}
