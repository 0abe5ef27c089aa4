package pod

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// showsAny tells whether the pod shows a condition of a type.
func showsAny(local *corev1.Pod, conditionType corev1.PodConditionType) bool {
	return slices.ContainsFunc(local.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == conditionType })
}

// shows tells whether the pod shows a refusal already, from before a restart.
func shows(local *corev1.Pod, why refusal) bool {
	shown := why.pending()
	if shown == nil {
		shown = why.condition()
	}
	return !why.resize && local.Status.Reason == why.reason || slices.ContainsFunc(local.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == shown.Type && c.Message == shown.Message
	})
}

// refuse remembers why the pod cannot run, shows it, and tells it once.
func (r *Reconciler) refuse(local *corev1.Pod, why refusal) {
	r.errors.WithLabelValues(local.Namespace, "pod", why.reason).Inc()
	if !r.show(local, why) {
		return
	}
	if r.options.Recorder != nil && !shows(local, why) {
		event := offloadingv1beta1.ReasonFailedReflection
		if why.rejects {
			event = why.reason // as a kubelet tells it
		}
		r.options.Recorder.Event(local, corev1.EventTypeWarning, event, why.message)
	}
}

// show remembers why the pod cannot run, and shows it; it tells whether that is news.
func (r *Reconciler) show(local *corev1.Pod, why refusal) (news bool) {
	r.mu.Lock()
	news = r.memory.refuse(local.UID, why)
	r.mu.Unlock()
	if news {
		r.status.Add(keyOf(local))
	}
	return news
}

// refusalOf tells the user what the provider said.
func refusalOf(err error, cluster string) refusal {
	message := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		message = status.Status().Message
	}
	reason := offloadingv1beta1.ReasonPodRefused
	switch {
	case strings.Contains(message, offloadingv1beta1.ReasonTooManyEndedPods):
		reason = offloadingv1beta1.ReasonTooManyEndedPods
	case strings.Contains(strings.ToLower(message), "quota"):
		reason = offloadingv1beta1.ReasonQuotaExceeded
	}
	return refusal{reason: reason, message: fmt.Sprintf("cluster %q refused the pod: %s", cluster, message)}
}

// whyRefused puts the provider's refusal of a pod into words, with the way out.
func (r *Reconciler) whyRefused(local *corev1.Pod, err error) refusal {
	why := refusalOf(err, r.options.Remote)
	if why.reason != offloadingv1beta1.ReasonPodRefused {
		return why
	}
	why.message = reflection.NeverOffloadedMessage(local, why.message)
	if message := reflection.StrayDaemonMessage(local, r.options.Remote, why.message); message != "" {
		return refusal{reason: offloadingv1beta1.ReasonOffloadingBackOff, message: message}
	}
	return why
}

// accept forgets every refusal.
func (r *Reconciler) accept(local *corev1.Pod) {
	r.mu.Lock()
	delete(r.memory.refused, local.UID)
	news := !r.memory.taken[local.UID]
	r.memory.taken[local.UID] = true
	r.mu.Unlock()
	if news && showsAny(local, offloadingv1beta1.ChangeRefusedCondition) {
		r.status.Add(keyOf(local))
	}
	r.acceptSize(local)
}

// acceptSize forgets that another size was refused.
func (r *Reconciler) acceptSize(local *corev1.Pod) {
	r.mu.Lock()
	_, was := r.memory.resizes[local.UID]
	delete(r.memory.resizes, local.UID)
	news := !r.memory.sized[local.UID]
	r.memory.sized[local.UID] = true
	r.mu.Unlock()
	if was || news && showsAny(local, corev1.PodResizePending) {
		r.status.Add(keyOf(local))
	}
}
