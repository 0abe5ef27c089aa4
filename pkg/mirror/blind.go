package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/jsonpatch"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// errForeign says that there is an object of the name which did not come from here.
var errForeign = errors.New("the remote object did not come from here")

// blind brings an object in step whose remote side can be written, but not read: the provider's ledger stands in for it.
func (t *task) blind(ctx context.Context, l ledger) error {
	if t.wanted == nil {
		return t.blindRemove(ctx, l)
	}
	want := &entry{originUID: reflection.OriginUID(t.wanted), hash: t.kind().Hash(t.wanted)}
	if l.shows(t.remoteName, want) {
		t.state.confirmed()
		t.confirmImprint()
		t.state.inStep = t.fingerprint
		return nil
	}
	if !l.published && t.state.inStep == t.fingerprint {
		return nil // A ledger that vanished says nothing about what was in step.
	}
	now := t.options().Clock.Now()
	pending, wait := t.state.pending(want, t.remoteName, l, now)
	if wait > 0 {
		t.enqueueAfter(t.name, wait)
		return nil
	}
	c, err := t.client()
	if err != nil {
		return err
	}
	if pending {
		if inStep, err := t.unseen(ctx, c); inStep || err != nil {
			return err
		}
	}
	if err := t.guard(ctx, "the content"); err != nil {
		return err
	}
	return t.blindWrite(ctx, c, want, l)
}

// blindWrite writes what the ledger does not show, and tells if that puts back what somebody changed.
func (t *task) blindWrite(ctx context.Context, c client.WithWatch, want *entry, l ledger) error {
	exists := t.state.exists(t.remoteName, l)
	news := exists && t.news()
	var reverted []reflection.Change
	var manager string
	if news {
		reverted, manager = t.unseenMeddler(ctx, c)
	}
	undone, err := t.overwrite(ctx, c, exists)
	switch {
	case err != nil:
		return err
	case undone:
		t.enqueue(t.name) // The provider's admission undid it in the same request, of which no ledger tells.
		return nil
	}
	if news {
		t.putBack(reverted, manager)
	}
	t.state.sent(want, l, t.options().Clock.Now())
	t.enqueueAfter(t.name, ledgerLate)
	return nil
}

// unseen looks at an object itself when the ledger is not rewritten after a write: what was undone before the provider looked
// leaves no trace in the ledger. It tells whether nothing has to be done for now.
func (t *task) unseen(ctx context.Context, c client.WithWatch) (inStep bool, err error) {
	if wait := t.state.lookAt.Sub(t.options().Clock.Now()); wait > 0 {
		t.enqueueAfter(t.name, wait)
		return true, nil
	}
	live, err := t.probe(ctx, c)
	switch {
	case errors.Is(err, errForeign):
		return false, t.conflict()
	case apierrors.IsNotFound(err):
		t.state.entry = nil
		return false, nil
	case err != nil:
		return false, err
	case t.decide(live).action != leave:
		return false, nil
	}
	t.enqueueAfter(t.name, t.state.looked(t.options().Clock.Now()))
	return true, nil
}

// overwrite makes the remote object the wanted one; undone tells that the answer shows another one. Whether it tries to change or
// to create it first depends on whether it seems to exist.
func (t *task) overwrite(ctx context.Context, c client.WithWatch, exists bool) (undone bool, err error) {
	if !exists {
		err := t.create(ctx, c, false)
		if !apierrors.IsAlreadyExists(err) {
			return false, err
		}
	}
	answer, err := t.patchUnseen(ctx, c)
	switch {
	case err == nil:
		t.wrote(resultUpdated)
		return t.tidy(ctx, c, answer)
	case apierrors.IsNotFound(err) && exists:
		return false, t.create(ctx, c, false)
	case !apierrors.IsInvalid(err):
		return false, t.failed("changing", err)
	}
	live, probeErr := t.probe(ctx, c)
	switch {
	case errors.Is(probeErr, errForeign):
		return false, t.conflict()
	case probeErr != nil && !reconcile.PatchTestFailed(err) && reconcile.Classify(probeErr) == reconcile.Refused:
		return false, t.failed("changing", err)
	case probeErr != nil:
		return false, probeErr
	}
	d := t.decide(live)
	switch d.action {
	case change, leave:
		return false, t.failed("changing", err) // It is as it seemed: the provider refuses the content.
	case await:
		return false, fmt.Errorf("%s %s/%s in cluster %q is still being deleted", t.runner.twin.GVK.Kind, t.twin, t.remoteName, t.options().Remote)
	}
	return false, t.act(ctx, c, d, live, false)
}

// patchUnseen writes everything that is wanted, whatever stands there.
func (t *task) patchUnseen(ctx context.Context, c client.WithWatch) (answer reflection.Object, err error) {
	renewal := t.renewal()
	answer, err = t.patch(ctx, c, t.unseenSteps(renewal))
	if len(renewal) > 0 && reconcile.PatchTestFailed(err) {
		// Somebody changed the record of the keys, or the object is another.
		t.state.imprint = nil
		return t.patch(ctx, c, t.unseenSteps(nil))
	}
	return answer, err
}

// unseenSteps are the steps of a patch that writes everything that is wanted, whatever stands there, and renews the record of the
// keys that are ours.
func (t *task) unseenSteps(renewal jsonpatch.Patch) jsonpatch.Patch {
	patch := append(testOwner(t.options()), testOrigin(t.wanted))
	patch = append(patch, steps(t.kind().Differences(nil, t.wanted), false)...)
	return append(patch, renewal...)
}

// tidy takes away the labels and annotations that went at home, and renews the record of those that are ours, if the write itself did
// not: which there are only its answer showed.
func (t *task) tidy(ctx context.Context, c client.WithWatch, live reflection.Object) (undone bool, err error) {
	d := t.decide(live)
	if d.action == change && slices.ContainsFunc(d.changes, reflection.ChangesKeys) {
		if live, err = t.patch(ctx, c, t.stepsTo(d, live)); err != nil {
			return false, t.failed("changing", err)
		}
		t.state.wrote(t.fingerprint, t.options().Clock.Now())
		d = t.decide(live)
	}
	t.remember(live)
	return d.action != leave, nil
}

// probe finds out what stands behind a name without the right to read it: a patch that only tests the owner and is a dry
// run changes nothing, does not apply to objects of others, and answers with ours. The provider's admission may refuse it, which
// says nothing about whose the object is.
func (t *task) probe(ctx context.Context, c client.WithWatch) (reflection.Object, error) {
	live, err := t.patch(ctx, c, testOwner(t.options()), client.DryRunAll)
	switch {
	case err == nil:
		return live, nil
	case reconcile.PatchTestFailed(err):
		return nil, errForeign
	default:
		return nil, t.failed("looking at", err)
	}
}

// blindRemove removes a remote object that the ledger lists, or that was written and not listed yet.
func (t *task) blindRemove(ctx context.Context, l ledger) error {
	now := t.options().Clock.Now()
	unlisted := !l.published || l.partial
	if !l.lists(t.remoteName) && t.state.entry == nil && (t.local != nil || !unlisted) {
		if t.local == nil {
			t.forget(t.name)
		}
		return nil
	}
	if pending, wait := t.state.pending(nil, t.remoteName, l, now); pending {
		if wait > 0 {
			t.enqueueAfter(t.name, wait)
		}
		return nil
	}
	c, err := t.client()
	if err != nil {
		return err
	}
	if may, err := t.mayRemove(ctx, l.origin(t.remoteName)); !may {
		return err
	}
	if err := t.confirm(ctx); err != nil {
		return err
	}
	return t.blindDelete(ctx, c, l)
}

// blindDelete deletes a remote object, after a look at it unless it is known what stands there.
func (t *task) blindDelete(ctx context.Context, c client.WithWatch, l ledger) error {
	if done, err := t.deleteSeen(ctx, c); done || err != nil {
		if done {
			t.state.sent(nil, l, t.options().Clock.Now())
			t.gone()
		}
		return err
	}
	live, err := t.probe(ctx, c)
	switch {
	case errors.Is(err, errForeign), apierrors.IsNotFound(err):
		t.state.sent(nil, l, t.options().Clock.Now())
		return nil
	case err != nil:
		return fmt.Errorf("its copy is still there: %w", err)
	}
	if t.decide(live).action != remove {
		return nil
	}
	if err := t.delete(ctx, c, live); err != nil {
		return err
	}
	t.state.sent(nil, l, t.options().Clock.Now())
	t.gone()
	return nil
}
