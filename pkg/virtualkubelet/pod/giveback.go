package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

const (
	// giveBackPause is the least time between two rounds of giving back: what the first one gave back has to show up at the provider.
	giveBackPause = 2 * time.Second
	// giveBackAtMost is how many pods are given back in a round: each is a request.
	giveBackAtMost = 100
)

// room has the provider make room for a pod that it refused because it keeps too many that ended, as a kubelet removes dead containers.
// It returns nil if nothing can be done about the refusal, and else when the pod is tried again.
func (r *Reconciler) room(ctx context.Context, refusal error) error {
	if !strings.Contains(refusal.Error(), offloadingv1beta1.ReasonTooManyEndedPods) {
		return nil
	}
	again := reconcile.Wait(offloadingv1beta1.ReasonTooManyEndedPods, "waiting for the provider to remove pods that ended", giveBackPause)
	now := r.options.Clock.Now()
	r.mu.Lock()
	lately := now.Sub(r.memory.gaveBack) < giveBackPause
	if !lately {
		r.memory.gaveBack = now
	}
	r.mu.Unlock()
	if lately {
		return again
	}
	given, err := r.giveBack(ctx)
	if err != nil {
		return err
	}
	if given == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("The provider removes pods that ended, so that it has room for new ones", "pods", given)
	return again
}

// giveBack removes the ShadowPods of half of the pods that ended, those that ended first. The pods stay here with all that is known of how they ended; only
// their logs are gone.
func (r *Reconciler) giveBack(ctx context.Context) (given int, err error) {
	type candidate struct {
		view
		at time.Time
	}
	var all []candidate
	for _, object := range r.locals.GetStore().List() {
		held, ok := object.(*packed)
		if !ok || held.leaving || !reflection.Terminal(held.counted.phase) {
			continue
		}
		v := r.look(key{Namespace: held.namespace, Name: held.name}, held.uid)
		if local := held.pod(); local != nil && v.givesBack(local) {
			all = append(all, candidate{v, endOf(local)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.shadow.Name, b.shadow.Name)) })
	var errs []error
	for _, c := range all[:min((len(all)+1)/2, giveBackAtMost)] {
		if err := r.deleteShadow(ctx, c.view); err != nil {
			errs = append(errs, err)
			continue
		}
		given++
	}
	if given == 0 && len(errs) > 0 {
		return 0, fmt.Errorf("making room for a pod: %w", errors.Join(errs...))
	}
	return given, nil
}

// givesBack tells whether a pod that ended here ended at the provider, too, and is still kept there.
func (v view) givesBack(local *corev1.Pod) bool {
	return v.ready && v.shadow != nil && standsFor(v.shadow, local) && v.shadow.DeletionTimestamp == nil && reflection.Terminal(v.shadow.Status.Phase) &&
		(v.remote == nil || reflection.Terminal(v.remote.Status.Phase))
}

// endOf is when the last container of a pod ended, or when the pod was made if none tells.
func endOf(pod *corev1.Pod) time.Time {
	at := pod.CreationTimestamp.Time
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil && ended.FinishedAt.After(at) {
			at = ended.FinishedAt.Time
		}
	}
	return at
}
