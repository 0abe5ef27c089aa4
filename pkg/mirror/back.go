package mirror

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/writers"
	"liqo.io/liqo/pkg/reflection"
)

// bringBack writes what comes back from a remote object that is in step into the status of its local one, if the
// configuration of the kind wants it and nobody else at home says something there. decide says of no object that is not ours
// that it is in step. What came back goes again when its object is no longer reflected.
func (t *task) bringBack(ctx context.Context, live reflection.Object) error {
	if !t.comesBack() {
		return nil
	}
	if t.wanted == nil || live == nil {
		live = t.runner.twin.NewObject()
	}
	if t.kind().Back.Take(t.local, live) == nil {
		return nil
	}
	// It does not matter whether the same is written: what comes back is the provider's to choose.
	if wait := t.state.broughtBack.Wait(t.options().Clock.Now()); wait > 0 && t.wanted != nil {
		return reconcile.Wait(offloadingv1beta1.ReasonContended, fmt.Sprintf(
			"the status that comes back from %s/%s in cluster %q keeps changing there, or somebody here keeps undoing it; it is written again once a minute",
			t.twin, t.remoteName, t.options().Remote), wait)
	}
	now, err := t.localNow(ctx)
	if now == nil || err != nil {
		return err
	}
	updated := t.kind().Back.Take(now, live)
	if updated == nil {
		return nil
	}
	ours, other := t.speakers(now)
	switch {
	case t.wanted == nil && (!ours || other != ""):
		return nil
	case other != "":
		return reconcile.Terminate(offloadingv1beta1.ReasonStatusOfOthers, fmt.Errorf(
			"field %s of %s %s/%s is written by field manager %q here; what comes back from cluster %q is not written over it",
			strings.Join(t.kind().Back.Field, "."), t.kind().Name, t.namespace, t.name, other, t.options().Remote))
	}
	return t.writeBack(ctx, now, updated)
}

// comesBack tells whether the status of the object is to come back at all.
func (t *task) comesBack() bool {
	return t.kind().Back != nil && t.runner.config().StatusBack && t.local != nil && t.local.GetDeletionTimestamp() == nil
}

// localNow reads the local object: the cache may lag behind a write of our own, and does not know who wrote what. It returns
// nil if the object is not the one that the cache shows; the cache will say so.
func (t *task) localNow(ctx context.Context) (reflection.Object, error) {
	ctx, cancel := t.call(ctx)
	defer cancel()
	now := t.kind().NewObject()
	err := t.options().Local.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: t.name}, now)
	switch {
	case apierrors.IsNotFound(err), err == nil && now.GetUID() != t.local.GetUID():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s/%s, whose status comes back: %w", t.kind().Name, t.namespace, t.name, err)
	default:
		return now, nil
	}
}

// writeBack writes the status of the local object, if that is still what was read.
func (t *task) writeBack(ctx context.Context, now, updated reflection.Object) error {
	ctx, cancel := t.call(ctx)
	defer cancel()
	patch := client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{})
	err := t.options().Local.Status().Patch(ctx, updated, patch, client.FieldOwner(t.speaker()))
	if !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		// Whether a write whose answer is lost was made, nobody knows: it counts.
		t.state.broughtBack.Add(t.options().Clock.Now())
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s %s/%s that comes back from cluster %q: %w",
			t.kind().Name, t.namespace, t.name, t.options().Remote, err)
	}
	t.runner.engine.reporter.done(t.kind().Name, t.namespace, resultBroughtBack)
	return nil
}

// Speaker is the field manager of what comes back from a provider. Each provider has its own, so that none writes over what another
// one says.
func Speaker(provider string) string { return FieldManager + "/" + provider }

// SpokenFor is the provider from which a field manager brings back; false if it is none of ours.
func SpokenFor(manager string) (provider string, ours bool) {
	return strings.CutPrefix(manager, FieldManager+"/")
}

func (t *task) speaker() string { return Speaker(t.options().Remote) }

// speakers tells whether what comes back was written by us, and who else did, if anybody.
func (t *task) speakers(local reflection.Object) (ours bool, other string) {
	for _, writer := range writers.Of(local, t.kind().Back.Field) {
		if writer == t.speaker() {
			ours = true
		} else {
			other = writer
		}
	}
	return ours, other
}
