package mirror

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// bringBack writes what comes back from a remote object that is in step into the status of its local one, if the
// configuration of the kind wants it. decide says of no object that is not ours that it is in step.
func (t *task) bringBack(ctx context.Context, live reflection.Object) error {
	if t.kind().Back == nil || !t.runner.statusBack() || t.local == nil || t.wanted == nil || live == nil ||
		t.local.GetDeletionTimestamp() != nil || t.kind().Back(t.local, live) == nil {
		return nil
	}
	if wait := t.state.mayBringBack(t.options().Clock.Now()); wait > 0 {
		return reconcile.Wait(offloadingv1beta1.ReasonContended, fmt.Sprintf(
			"the status that comes back from %s/%s in cluster %q keeps changing there, or somebody here keeps undoing it; it is written again once a minute",
			t.twin, t.remoteName, t.options().Remote), wait)
	}
	// The cache may lag behind a write of our own: what is written depends on the object as it is.
	call, cancel := t.call(ctx)
	defer cancel()
	now := t.kind().NewObject()
	if err := t.options().Local.Get(call, client.ObjectKey{Namespace: t.namespace, Name: t.name}, now); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // The cache will say so.
		}
		return fmt.Errorf("reading %s %s/%s, whose status comes back: %w", t.kind().Name, t.namespace, t.name, err)
	}
	updated := t.kind().Back(now, live)
	if updated == nil || now.GetUID() != t.local.GetUID() {
		return nil
	}
	// Counted before it is sent: whether a write whose answer is lost was made, nobody knows.
	t.state.bringsBack(t.options().Clock.Now())
	patch := client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{})
	if err := t.options().Local.Status().Patch(call, updated, patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("writing the status of %s %s/%s that comes back from cluster %q: %w",
			t.kind().Name, t.namespace, t.name, t.options().Remote, err)
	}
	t.runner.engine.reporter.done(t.kind().Name, t.namespace, resultBroughtBack)
	return nil
}

// statusBack tells whether the status of remote objects comes back.
func (r *runner) statusBack() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.StatusBack
}

// mayBringBack tells how long to wait before the local status may be written again; zero lets it be written now. Unlike at
// the provider it does not matter whether the same is written: what comes back is the provider's to choose.
func (s *state) mayBringBack(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.broughtBack) > 0 && now.Sub(s.broughtBack[0]) >= sameWrites {
		s.broughtBack = s.broughtBack[1:]
	}
	if len(s.broughtBack) < maxSameWrites {
		return 0
	}
	return s.broughtBack[0].Add(sameWrites).Sub(now)
}

// bringsBack takes note of a write of the local status.
func (s *state) bringsBack(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broughtBack = append(s.broughtBack, now)
}
