package mirror

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/jsonpatch"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// sighted brings an object in step whose remote side can be read; cached is what the view shows.
func (t *task) sighted(ctx context.Context, cached reflection.Object) error {
	now := t.options().Clock.Now()
	live, believed := t.state.newest(cached, now)
	d := t.compare(live)
	if d.action == leave {
		if believed > 0 {
			t.enqueueAfter(t.name, believed)
		}
		if t.local == nil && live == nil {
			t.forget(t.name)
			return nil
		}
		if believed > 0 {
			return nil
		}
		t.state.inStep = t.fingerprint
		return t.bringBack(ctx, live)
	}
	if d.action == remove {
		if wait := t.state.removedUntil.Sub(now); live.GetUID() == t.state.removed && wait > 0 {
			t.enqueueAfter(t.name, wait)
			return nil
		}
		if may, err := t.mayRemove(ctx, types.UID(reflection.OriginUID(live))); !may {
			return err
		}
	}
	c, err := t.client()
	if err != nil {
		return err
	}
	err = t.act(ctx, c, d, live, true)
	if t.relax(err, live) {
		return t.act(ctx, c, t.decide(live), live, true)
	}
	return err
}

func (t *task) decide(live reflection.Object) decision {
	return decide(t.kind(), t.options().Home, t.options().Remote, t.wanted, live)
}

// act does what was decided about the live object. look lets it look at the remote object if that turns out to be
// another than it seemed.
func (t *task) act(ctx context.Context, c client.WithWatch, d decision, live reflection.Object, look bool) error {
	switch d.action {
	case leave, await:
		return nil
	case conflict:
		return t.conflict()
	case remove:
		if err := t.confirm(ctx); err != nil {
			return err
		}
		if err := t.delete(ctx, c, live); err != nil {
			return err
		}
		t.state.removed, t.state.removedUntil = live.GetUID(), t.options().Clock.Now().Add(overlayLife)
		t.gone()
		return nil
	}
	if err := t.guard(ctx, d.why); err != nil {
		return err
	}
	switch d.action {
	case replace:
		if err := t.confirm(ctx); err != nil {
			return err
		}
		if d.immutable {
			if err := t.rehearse(ctx, c, live, d.why); err != nil {
				return err
			}
		}
		if err := t.delete(ctx, c, live); err != nil {
			return err
		}
		return t.create(ctx, c, false)
	case change:
		return t.change(ctx, c, d, live)
	default:
		return t.create(ctx, c, look)
	}
}

func (t *task) conflict() error {
	return reconcile.NotOursAt(t.options().Remote, offloadingv1beta1.ReasonNameConflict, t.runner.twin.GVK.Kind,
		client.ObjectKey{Namespace: t.twin, Name: t.remoteName})
}

// failed says what was being done.
func (t *task) failed(doing string, err error) error {
	t.runner.engine.throttle(err)
	return fmt.Errorf("%s %s %s/%s in cluster %q: %w", doing, t.runner.twin.GVK.Kind, t.twin, t.remoteName, t.options().Remote, err)
}

// create sends the object. If there is one of the name already, which the view may not show yet or never, it is looked at
// once, if look allows it.
func (t *task) create(ctx context.Context, c client.WithWatch, look bool) error {
	sent := t.wanted.DeepCopyObject().(reflection.Object)
	call, cancel := t.call(ctx)
	defer cancel()
	err := c.Create(call, sent, client.FieldOwner(FieldManager))
	switch {
	case err == nil:
		t.remember(sent)
		t.wrote(resultCreated)
		t.lacks(sent)
		return nil
	case apierrors.IsAlreadyExists(err) && look:
		live, err := t.read(ctx, c)
		if err != nil {
			return err
		}
		d := t.compare(live)
		if d.action == leave {
			// A create of ours whose answer was lost.
			t.remember(live)
		}
		return t.act(ctx, c, d, live, false)
	default:
		return t.failed("creating", err)
	}
}

// read reads the remote object.
func (t *task) read(ctx context.Context, c client.WithWatch) (reflection.Object, error) {
	call, cancel := t.call(ctx)
	defer cancel()
	live := t.runner.twin.NewObject()
	if err := c.Get(call, t.remoteKey(), live); err != nil {
		return nil, t.failed("reading", err)
	}
	return live, nil
}

func (t *task) remoteKey() client.ObjectKey {
	return client.ObjectKey{Namespace: t.twin, Name: t.remoteName}
}

// change patches the live object.
func (t *task) change(ctx context.Context, c client.WithWatch, d decision, live reflection.Object) error {
	if known, err := t.tryDropped(ctx, c, d, live); known || err != nil {
		return err
	}
	var manager string
	news := t.news()
	if news {
		manager = t.meddler(ctx, c, d.changes)
	}
	answer, err := t.patch(ctx, c, t.stepsTo(d, live))
	switch {
	case err == nil:
		held := t.remember(answer)
		t.wrote(resultUpdated)
		if reflection.RefusedPartOf(answer) != reflection.RefusedPartOf(live) {
			t.lacks(answer)
		}
		if news {
			t.putBack(d.changes, manager)
		}
		if !held {
			t.enqueue(t.name) // The provider's admission undid it in the same request, of which no watch tells.
		}
		return nil
	case apierrors.IsInvalid(err) || apierrors.IsNotFound(err):
		// Either the object is not what the view shows any more, or the provider really refuses it as it is.
		fresh, readErr := t.read(ctx, c)
		if readErr != nil {
			return readErr
		}
		if fresh.GetUID() != live.GetUID() || t.decide(fresh).action != change {
			return fmt.Errorf("%s %s/%s in cluster %q changed while it was written", t.runner.twin.GVK.Kind, t.twin, t.remoteName, t.options().Remote)
		}
		return t.failed("changing", err)
	default:
		return t.failed("changing", err)
	}
}

// patch sends steps and returns the object that came of them.
func (t *task) patch(ctx context.Context, c client.WithWatch, steps jsonpatch.Patch, options ...client.PatchOption) (reflection.Object, error) {
	patch, err := steps.Encode()
	if err != nil {
		return nil, err
	}
	call, cancel := t.call(ctx)
	defer cancel()
	object := t.runner.twin.NewObject()
	object.SetNamespace(t.twin)
	object.SetName(t.remoteName)
	err = c.Patch(call, object, client.RawPatch(types.JSONPatchType, patch), append(options, client.FieldOwner(FieldManager))...)
	return object, err
}

// delete removes exactly the object that was seen, in the state that was seen.
func (t *task) delete(ctx context.Context, c client.WithWatch, live reflection.Object) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	object := t.runner.twin.NewObject()
	object.SetNamespace(t.twin)
	object.SetName(t.remoteName)
	call, cancel := t.call(ctx)
	defer cancel()
	err := c.Delete(call, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if err != nil && !apierrors.IsNotFound(err) {
		return t.failed("deleting", err)
	}
	return nil
}

// remember takes note of the peer's answer to a write, until the view shows it. An answer that holds what is wanted counts as
// seen in step: whoever changes it at once does so before the view shows it. held tells whether it does.
func (t *task) remember(answer reflection.Object) (held bool) {
	held = t.decide(answer).action == leave
	if t.kind().WriteOnly() {
		t.impress(answer)
		return held
	}
	if held {
		t.state.inStep = t.fingerprint
	}
	answer.SetManagedFields(nil)
	t.state.remember(answer, t.options().Clock.Now())
	return held
}

// testOwner makes a patch fail, with 422, on objects that did not come from here.
func testOwner(o *Options) jsonpatch.Patch {
	return jsonpatch.Patch{
		jsonpatch.Test(o.Home, "metadata", "labels", offloadingv1beta1.OriginLabel),
		jsonpatch.Test(o.Remote, "metadata", "labels", offloadingv1beta1.DestinationLabel),
	}
}

// testOrigin makes a patch fail on objects that stand for another local object than wanted does.
func testOrigin(wanted reflection.Object) any {
	return jsonpatch.Test(reflection.OriginUID(wanted), "metadata", "annotations", corev1beta1.OriginUIDAnnotation)
}

// steps are the patch's steps for changes. Of an object that cannot be read nobody knows whether a field is there to be
// removed; setting it to null does the same.
func steps(changes []reflection.Change, readable bool) (patch jsonpatch.Patch) {
	for _, c := range changes {
		if c.Value == nil && readable {
			patch = append(patch, jsonpatch.Remove(c.Path...))
			continue
		}
		patch = append(patch, jsonpatch.Add(c.Value, c.Path...))
	}
	return patch
}
