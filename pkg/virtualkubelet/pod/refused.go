package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// refusals gathers which changes of a pod that runs are refused. First comes what we were answered when we asked for them; of what the
// provider took then, its controller says in the ShadowPod what it refused nevertheless. Until we asked, which a restart begins with,
// what the pod shows stays.
func (r *Reconciler) refusals(local *corev1.Pod, v view, in *reflection.StatusInput) {
	in.ResizePending, in.SizeUnknown = v.resize.pending(), !v.sized
	if in.ResizePending == nil && (v.sized || !showsAny(local, corev1.PodResizePending)) {
		in.ResizePending = reflection.ResizePendingOf(v.shadow, r.options.Remote)
	}
	in.ChangeRefused, in.ChangesTaken = v.refused.condition(), v.taken
	if in.ChangeRefused == nil && (v.taken || !showsAny(local, offloadingv1beta1.ChangeRefusedCondition)) {
		in.ChangeRefused = reflection.ChangeRefusedOf(v.shadow, r.options.Remote)
	}
}

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
