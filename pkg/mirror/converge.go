package mirror

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// errUnready says that the remote view is not in step yet; all objects are queued again when it is.
var errUnready = errors.New("the remote view is not in step yet")

// task is one object to be brought in step.
type task struct {
	*pair
	state *state
	// name is the local name, remoteName that at the provider.
	name, remoteName string
	// local is the local object; nil if it is gone.
	local reflection.Object
	// wanted is the remote object; nil if there must be none.
	wanted reflection.Object
	// parent is the local object that decides about it; nil if there is none.
	parent reflection.Object
	// orphaned says that the parent's kind is off: nobody knows what the parent would say.
	orphaned bool
	// skip is why a local object has no remote one.
	skip *reflection.Skip
	// fingerprint identifies what is wanted, to notice when the same is written again and again.
	fingerprint string
}

// converge brings one object in step.
func (p *pair) converge(ctx context.Context, name string) error {
	t := &task{pair: p, name: name, remoteName: p.kind().Remote(p.options().Home, name)}
	if p.kind().Local(p.options().Home, t.remoteName) != name {
		return reserved(p, name)
	}
	t.state = p.state(name)
	t.local = p.objects.Of(name)
	if t.local != nil {
		p.options().Removals.Settle(p.kind().Name, p.namespace, name)
	}
	if err := t.translate(ctx); err != nil {
		return err
	}
	if t.skip != nil && t.orphaned {
		return nil
	}
	t.recall()
	if t.wanted != nil {
		p.open()
		if err := whyNotNamed(t); err != nil {
			return err
		}
	}
	if t.skip != nil && t.skip.Keep {
		return reconcile.Terminate(t.skip.Reason, errors.New(t.skip.Message))
	}
	view := p.ready()
	switch {
	case view == nil && t.wanted == nil && !p.isOpen():
		return t.bringBack(ctx, nil) // What came back before a restart may still be there.
	case view == nil:
		return p.unready()
	case p.kind().WriteOnly():
		return t.blind(ctx, ledgerOf(view, p.kind().Ledger))
	default:
		return t.sighted(ctx, view.Of(t.remoteName))
	}
}

// reserved refuses a local object whose remote name another local object owns.
func reserved(p *pair, name string) error {
	if p.objects.Of(name) == nil {
		return nil
	}
	return reconcile.Terminate(offloadingv1beta1.ReasonNotReflectable,
		fmt.Errorf("the name %q is reserved in the remote namespace; rename the object to have it reflected", name))
}

func (p *pair) isOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view != nil
}

// translate fills in what is wanted.
func (t *task) translate(ctx context.Context) error {
	t.wanted, t.skip = nil, nil
	if t.local == nil {
		return nil
	}
	annotations, _, err := t.runner.engine.namespaces.Annotations(ctx, t.namespace, 0)
	if err != nil {
		return err
	}
	now := t.runner.engine.inForce.Load()
	in := reflection.Input{
		Local: t.local, NamespaceAnnotations: annotations, Home: t.options().Home, Remote: t.options().Remote,
		RemoteNamespace: t.twin, Policy: now.config(t.kind()).Type, NotReflected: now.NotReflected, Provider: now.Provider,
	}
	if err := t.findParent(&in); err != nil {
		return err
	}
	if t.kind().SelectsTwins {
		if in.Twins, err = t.runner.engine.namespaces.Twins(ctx, now.Mapping); err != nil {
			return err
		}
	}
	result, known := t.decideUse(ctx, &in)
	if !known {
		return errUnready
	}
	t.wanted, t.skip = result.Apply, result.Skip
	if result.Apply == nil && result.Skip == nil {
		t.skip = &reflection.Skip{Reason: offloadingv1beta1.ReasonNotReflectable, Message: "the kind says neither what to reflect nor why not", Keep: true}
	}
	t.fingerprint = fmt.Sprintf("%s/%s/%d/%t/%s", t.local.GetUID(), t.local.GetResourceVersion(), now.generation, in.Referenced, t.options().Peer.Version())
	if t.kind().SelectsTwins {
		t.fingerprint += fmt.Sprintf("/%x", sha256.Sum256(fmt.Append(nil, in.Twins)))
	}
	if t.parent != nil {
		t.fingerprint += fmt.Sprintf("/%s/%s", t.parent.GetUID(), t.parent.GetResourceVersion())
	}
	return nil
}

// guard is asked before anything is sent: whether the namespace still lets it, and whether it was not sent too often
// already. why names the reason for the write.
func (t *task) guard(ctx context.Context, why string) error {
	if wait := t.state.times.Wait(t.options().Clock.Now()); t.state.written == t.fingerprint && wait > 0 {
		return reconcile.Wait(offloadingv1beta1.ReasonContended, fmt.Sprintf(
			"somebody in cluster %q keeps undoing what is reflected (%s of %s/%s); it is set right again once a minute",
			t.options().Remote, why, t.twin, t.remoteName), wait)
	}
	_, changed, err := t.runner.engine.namespaces.Annotations(ctx, t.namespace, namespaceFresh)
	if err != nil {
		return err
	}
	if changed {
		t.runner.engine.namespaceChanged(t.namespace)
		return errUnready
	}
	return nil
}

// wrote takes note of a successful write.
func (t *task) wrote(what string) {
	t.state.wrote(t.fingerprint, t.options().Clock.Now())
	t.runner.engine.reporter.done(t.kind().Name, t.namespace, what)
}

// confirm reads the local object live before something is deleted because of it: a cache may lag, or may even have gone
// back in time. It returns an error if the live object is not what the cache says.
func (t *task) confirm(ctx context.Context) error {
	live, err := readLocal(ctx, t.pair, t.kind(), t.name)
	switch {
	case err != nil:
		return err
	case live == nil && t.wanted == nil:
		return nil // It is gone, whatever the cache says of it.
	case live != nil && t.local != nil && t.wanted == nil && live.GetResourceVersion() == t.local.GetResourceVersion():
		return t.confirmParent(ctx) // The policy decided, on the object as it is.
	case live != nil && t.local != nil && t.wanted != nil && live.GetUID() == t.local.GetUID():
		return nil // It takes the place of another one.
	default:
		return lags(t.kind(), t.namespace, t.name)
	}
}

// readLocal reads a local object because of which a remote one is to be deleted; nil if it is gone.
func readLocal(ctx context.Context, p *pair, kind *reflection.Kind, name string) (reflection.Object, error) {
	ctx, cancel := p.call(ctx)
	defer cancel()
	live := kind.NewObject()
	err := p.options().Local.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: name}, live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %s %s/%s, because of which a remote object is to be deleted: %w", kind.Name, p.namespace, name, err)
	}
	return live, nil
}

func lags(kind *reflection.Kind, namespace, name string) error {
	return fmt.Errorf("the cache of this cluster lags behind %s %s/%s; nothing is deleted because of it", kind.Name, namespace, name)
}

// gone tells that a remote object was removed because the user's policy turned, and forgets objects that are gone on both
// sides.
func (t *task) gone() {
	t.runner.engine.reporter.done(t.kind().Name, t.namespace, resultDeleted)
	if t.local != nil && t.skip != nil && !t.skip.Routine {
		t.runner.engine.reporter.event(t.local, corev1.EventTypeNormal, t.skip.Reason,
			fmt.Sprintf("Removed from cluster %q: %s", t.options().Remote, t.skip.Message))
	}
}

// warn tells a failure where the user looks, unless it was told lately. Of an object that is gone at home it can only be that its
// copy is not.
func (p *pair) warn(name string, problem Problem) {
	if name == "" || !p.state(name).warned.again(problem.Reason, p.options().Clock.Now()) {
		return
	}
	object, what := p.objects.Of(name), "reflected to"
	if object == nil {
		object, what = p.kind().NewObject(), "removed from"
		object.SetNamespace(p.namespace)
		object.SetName(name)
	}
	reason := offloadingv1beta1.ReasonFailedReflection
	if problem.Reason == offloadingv1beta1.ReasonNameConflict || problem.Reason == offloadingv1beta1.ReasonContended ||
		problem.Reason == offloadingv1beta1.ReasonTooLarge || problem.Reason == offloadingv1beta1.ReasonStatusOfOthers {
		reason = problem.Reason
	}
	p.runner.engine.reporter.event(object, corev1.EventTypeWarning, reason,
		fmt.Sprintf("Not %s cluster %q: %s", what, p.options().Remote, problem.Message))
}

// action is what has to be done with a remote object.
type action int

const (
	// leave: nothing has to be done.
	leave action = iota
	// create it.
	create
	// change some fields.
	change
	// replace it: remove it, then create it.
	replace
	// remove it.
	remove
	// await its end, which is under way.
	await
	// conflict: it is not ours.
	conflict
)

// decision is what to do, and why.
type decision struct {
	action  action
	changes []reflection.Change
	why     string
	// immutable says that it is to be replaced only because a field cannot be changed: it stands for the object that is there now.
	immutable bool
}

// decide says what makes the live object the wanted one; nil stands for none on either side.
func decide(kind *reflection.Kind, home, remote string, wanted, live reflection.Object) decision {
	switch {
	case live == nil && wanted == nil:
		return decision{action: leave}
	case live == nil:
		return decision{action: create, why: "it is missing"}
	case !reflection.IsOurs(live, home, remote) && wanted == nil:
		return decision{action: leave, why: "it is not ours"}
	case !reflection.IsOurs(live, home, remote):
		return decision{action: conflict, why: "it is not ours"}
	case live.GetDeletionTimestamp() != nil:
		return decision{action: await, why: "it is being deleted"}
	case wanted == nil:
		return decision{action: remove, why: "its origin is gone or stays at home"}
	case reflection.OriginUID(live) != reflection.OriginUID(wanted):
		return decision{action: replace, why: "its origin was replaced by another of the same name"}
	}
	if field := kind.Immutable(live, wanted); field != "" {
		return decision{action: replace, why: fmt.Sprintf("field %s", field), immutable: true}
	}
	changes := kind.Differences(live, wanted)
	if len(changes) == 0 {
		return decision{action: leave}
	}
	return decision{action: change, changes: changes, why: "field " + strings.Join(changes[0].Path, ".")}
}
