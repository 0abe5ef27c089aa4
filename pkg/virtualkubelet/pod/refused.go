package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
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
