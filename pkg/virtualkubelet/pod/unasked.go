package pod

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/reflection"
)

// A pod that is deleted while the provider does not answer may go at once only if the provider was never asked for it: a creation whose
// answer was lost may have been made, and then its successor would run beside it. That it was never asked is known of pods that came
// while this process watched, because no other one works for this node meanwhile, and is written down for the next process before this
// one can end: in the pod's status, whenever the pod has to wait. What is written is taken back before the provider is asked.

// knowUnasked takes note of a pod that comes to the node. Of those that a first list showed an earlier process may have asked for.
func (r *Reconciler) knowUnasked(pod *corev1.Pod, listed bool) {
	if listed && !reflection.NotRequested(&pod.Status) || everRemote(pod) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.unasked[pod.UID] = true
}

// writeUnasked writes down that the provider was never asked for a pod that has to wait. It is the work of those who ask, of whom there
// is one at a time for each pod.
func (r *Reconciler) writeUnasked(ctx context.Context, local *corev1.Pod, v view) error {
	if !v.unasked || reflection.NotRequested(&local.Status) || reflection.Terminal(local.Status.Phase) {
		return nil
	}
	wanted := reflection.WithRequest(&local.Status, false, r.options.Clock.Now())
	if _, err := r.writeStatus(ctx, local, &wanted); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing down that nothing was asked for pod %s/%s: %w", local.Namespace, local.Name, err)
	}
	return nil
}

// asking takes back that the provider was never asked for a pod, and tells whether that was so.
func (r *Reconciler) asking(ctx context.Context, local *corev1.Pod) (first bool, err error) {
	r.mu.Lock()
	first = r.memory.unasked[local.UID]
	delete(r.memory.unasked, local.UID)
	r.mu.Unlock()
	if !reflection.NotRequested(&local.Status) {
		return first, nil
	}
	wanted := reflection.WithRequest(&local.Status, true, r.options.Clock.Now())
	if _, err := r.writeStatus(ctx, local, &wanted); err != nil {
		if first {
			r.unasked(local.UID)
		}
		return false, fmt.Errorf("writing down that pod %s/%s is asked for: %w", local.Namespace, local.Name, err)
	}
	return first, nil
}

// unasked takes note that nothing came of asking the provider for a pod.
func (r *Reconciler) unasked(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.unasked[uid] = true
}

// declined tells whether an error is the answer of a server that did not do what it was asked.
func declined(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusConflict && code != http.StatusRequestTimeout
}
