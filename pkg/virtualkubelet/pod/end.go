package pod

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// end shows how a terminating pod ended, as a kubelet does before it removes one for good, and tells whether that is shown: until then
// somebody waits for it who counts exit codes. A restart comes back here; what was not seen before it is shown as not known.
func (r *Reconciler) end(ctx context.Context, local *corev1.Pod) (bool, error) {
	if reflection.Terminal(local.Status.Phase) {
		return true, nil
	}
	known, doubts := decide(&r.options, local, r.look(keyOf(local), local.UID)).status()
	ended := reflection.TerminatedStatus(local, known, r.options.Clock.Now())
	reflection.Observe(local, &ended, local.Generation)
	r.tellDoubts(local, doubts)
	err := r.patchStatus(ctx, local, &ended, 0)
	if class := reconcile.Classify(err); err != nil && (class == reconcile.Refused || class == reconcile.Terminal) {
		return true, nil // a status that this cluster does not take keeps no pod
	}
	if err != nil {
		return false, err
	}
	// What was written, by us or by who shows the status of pods, is an event.
	return false, reconcile.Wait("EndPending", "waiting for the end of the pod to be shown", time.Second)
}
