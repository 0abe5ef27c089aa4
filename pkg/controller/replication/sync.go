package replication

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/peer"
)

const (
	minBackOff = 100 * time.Millisecond
	// patience is how many failures in a row pass before the user is told: most are over at once.
	patience = 3
	soon     = 2 * time.Second
	// grace is how long a new or lost connection is given before objects say so: a restart changes no status.
	grace = 20 * time.Second
)

// pass is one look at one object.
type pass struct {
	kind
	at            item
	local, remote client.Object
	clients       peer.Clients
	// wanted is the copy as it should be, made from remote.
	wanted client.Object
	// quiet keeps a wait that is expected to be over at once out of the object's status.
	quiet bool
}

func (f *reflector) work(ctx context.Context) {
	for {
		at, shutdown := f.queue.Get()
		if shutdown {
			return
		}
		f.handle(ctx, at)
		f.queue.Done(at)
	}
}

// handle looks at one object and decides when to look again.
func (f *reflector) handle(ctx context.Context, at item) {
	if ctx.Err() != nil {
		return
	}
	p := &pass{kind: f.kinds[at.kind], at: at}
	err := f.sync(ctx, p)
	if err == nil {
		f.queue.Forget(at)
		return
	}
	if ctx.Err() != nil {
		return
	}
	class := reconcile.Classify(err)
	failures := f.queue.NumRequeues(at)
	if !p.quiet && (class != reconcile.Transient || failures >= patience) {
		if reportErr := f.report(ctx, p, err); reportErr != nil {
			ctrl.LoggerFrom(ctx).Error(reportErr, "Cannot report why an object is not replicated", "kind", p.gvk.Kind, "name", at.name)
		}
	}
	result, retry := reconcile.Result(err)
	switch {
	case result.RequeueAfter > 0:
		f.queue.AddAfter(at, result.RequeueAfter)
	case class == reconcile.Terminal:
		f.queue.Forget(at)
	default:
		ctrl.LoggerFrom(ctx).V(1).Info("Replicating an object failed and is retried", "kind", p.gvk.Kind, "name", at.name, "error", retry.Error())
		f.queue.AddRateLimited(at)
	}
}

// sync does one step for one object.
func (f *reflector) sync(ctx context.Context, p *pass) error {
	what, err := f.look(ctx, p)
	if err != nil {
		return err
	}
	switch what {
	case nothing:
		return nil
	case pull:
		if err := f.forgetConfirmed(ctx, p); err != nil {
			return err
		}
		return f.pullStatus(ctx, p)
	case addFinalizer:
		return f.setFinalizer(ctx, p, true)
	case removeFinalizer:
		return f.setFinalizer(ctx, p, false)
	case await:
		return f.awaited(p)
	case conflict:
		return f.conflict(p)
	}
	if p.clients, err = f.peer.Clients(); err != nil {
		return reconcile.Wait(authv1beta1.ReasonPeerUnreachable, err.Error(), 0)
	}
	switch what {
	case create:
		return f.create(ctx, p)
	case update:
		return f.update(ctx, p)
	case removeOrphan:
		return f.removeOrphan(ctx, p)
	case replace:
		if err := f.deleteCopy(ctx, p, p.remote); err != nil {
			return err
		}
		return reconcile.Wait(authv1beta1.ReasonReplacing, "waiting for the copy of an earlier object of this name to go", soon)
	default:
		return f.removeCopy(ctx, p)
	}
}

// look gathers what is known and decides.
func (f *reflector) look(ctx context.Context, p *pass) (action, error) {
	local := p.object()
	err := f.home.client.Get(ctx, types.NamespacedName{Namespace: f.namespace, Name: p.at.name}, local)
	switch {
	case err == nil:
		p.local = local
	case !apierrors.IsNotFound(err):
		return nothing, fmt.Errorf("reading %s %s/%s: %w", p.gvk.Kind, f.namespace, p.at.name, err)
	}
	remote, synced := f.copyOf(p.at)
	state := f.peer.State()
	v := view{
		home: f.home.options.ClusterID, peer: f.clusterID, connected: state.Connected, synced: synced,
		gone: f.gone.Load() && !state.Connected, local: p.local, remote: remote, twins: holdsTwins(remote),
	}
	p.remote = remote
	if p.local != nil && remote != nil {
		p.wanted, _ = remote.DeepCopyObject().(client.Object)
		v.differs = p.shape(p.wanted, p.local, f.origin())
	}
	return decide(v), nil
}

func (f *reflector) origin() origin { return origin{f.home.options.ClusterID, f.peering} }

// awaited names what is waited for.
func (f *reflector) awaited(p *pass) error {
	state := f.peer.State()
	if err := f.flooded(); err != nil && state.Connected {
		return err
	}
	if f.home.options.Clock.Since(state.Since) < grace {
		p.quiet = true
		return reconcile.Wait(authv1beta1.ReasonPeerUnreachable, state.Message, grace)
	}
	if !state.Connected {
		message := state.Message
		if !p.local.GetDeletionTimestamp().IsZero() {
			message = "the copy at the provider cannot be removed: " + message + "; if it will not come back, use 'liqoctl force unpeer'"
		}
		reason := authv1beta1.ReasonPeerUnreachable
		if state.Reason == peer.ReasonUnauthorized {
			reason = authv1beta1.ReasonUnauthorized
		}
		return reconcile.Wait(reason, message, 0)
	}
	if p.remote != nil {
		return reconcile.Wait(authv1beta1.ReasonReplacing, "waiting for a copy that is being deleted to go", soon)
	}
	return reconcile.Wait(authv1beta1.ReasonNotReplicated,
		"waiting for the list of copies at the provider; if this lasts, the provider took our rights away", soon)
}

func (f *reflector) conflict(p *pass) error {
	return reconcile.NotOursAt(f.clusterID, authv1beta1.ReasonNameConflict, p.gvk.Kind, client.ObjectKey{Namespace: f.remoteNamespace, Name: p.at.name})
}

func (f *reflector) create(ctx context.Context, p *pass) error {
	object := p.fresh(p.local, f.remoteNamespace, f.origin())
	err := p.clients.Client.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		return f.explain(ctx, p, "create", err)
	}
	// Either our own create whose answer was lost, or somebody else's object, which our watch does not show.
	live, err := f.liveCopy(ctx, p)
	if err != nil {
		return f.explain(ctx, p, "get", err)
	}
	if live != nil && isOurs(live, f.home.options.ClusterID) {
		return reconcile.Wait(authv1beta1.ReasonNotReplicated, "waiting for the copy to be seen", soon)
	}
	return f.conflict(p)
}

func (f *reflector) update(ctx context.Context, p *pass) error {
	patch := client.MergeFromWithOptions(p.remote, client.MergeFromWithOptimisticLock{})
	if err := f.explain(ctx, p, "patch", p.clients.Client.Patch(ctx, p.wanted, patch)); err != nil {
		return err
	}
	if p.wanted.GetResourceVersion() != p.remote.GetResourceVersion() {
		return nil // what became of it is an event
	}
	// Nothing changed: a peer of an earlier release drops the fields that it does not know. All else is as wanted, and its answer counts.
	return f.pullStatus(ctx, p)
}

// liveCopy asks the peer itself, nil if there is no such object.
func (f *reflector) liveCopy(ctx context.Context, p *pass) (client.Object, error) {
	live := p.object()
	err := p.clients.Client.Get(ctx, types.NamespacedName{Namespace: f.remoteNamespace, Name: p.at.name}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, nil
}

func (f *reflector) deleteCopy(ctx context.Context, p *pass, live client.Object) error {
	uid := live.GetUID()
	err := p.clients.Client.Delete(ctx, live, client.Preconditions{UID: &uid})
	return f.explain(ctx, p, "delete", client.IgnoreNotFound(err))
}

// removeOrphan removes a copy whose original is gone, after asking our own API server once more.
func (f *reflector) removeOrphan(ctx context.Context, p *pass) error {
	err := f.home.live.Get(ctx, types.NamespacedName{Namespace: f.namespace, Name: p.at.name}, p.object())
	if err == nil {
		return reconcile.Wait(authv1beta1.ReasonNotReplicated, "waiting for the cache to show the object", soon)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading %s %s/%s: %w", p.gvk.Kind, f.namespace, p.at.name, err)
	}
	return f.deleteCopy(ctx, p, p.remote)
}

// removeCopy removes the copy of an object that is going, then lets the object go.
func (f *reflector) removeCopy(ctx context.Context, p *pass) error {
	blocker, err := f.blocker(ctx, p)
	if err != nil {
		return err
	}
	if blocker != "" {
		return reconcile.Wait(authv1beta1.ReasonDeletionPending, "waiting for VirtualNode "+blocker+" to be drained and removed", soon)
	}
	live, err := f.liveCopy(ctx, p)
	if err == nil && live != nil && isOurs(live, f.home.options.ClusterID) {
		if live.GetDeletionTimestamp().IsZero() {
			err = f.deleteCopy(ctx, p, live)
		}
		if err == nil {
			return reconcile.Wait(authv1beta1.ReasonDeletionPending, "waiting for the copy at the provider to go", soon)
		}
	}
	if err != nil && !f.lostRights(err) {
		if err = f.explain(ctx, p, "get", err); !f.lostRights(err) {
			return err
		}
	}
	if !hasFinalizer(p.local) {
		return nil
	}
	return f.setFinalizer(ctx, p, false)
}

// errRights says that the peer took our rights away, which it confirmed itself.
var errRights = errors.New("the provider took away our rights in its tenant namespace")

func (f *reflector) lostRights(err error) bool { return errors.Is(err, errRights) }

// blocker names the VirtualNode that has to go before a slice's copy.
func (f *reflector) blocker(ctx context.Context, p *pass) (string, error) {
	if _, isSlice := p.local.(*authv1beta1.ResourceSlice); !isSlice {
		return "", nil
	}
	list := &offloadingv1beta1.VirtualNodeList{}
	if err := f.home.client.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
		return "", fmt.Errorf("listing VirtualNodes in Namespace %s: %w", f.namespace, err)
	}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], p.local) {
			return list.Items[i].Name, nil
		}
	}
	return "", nil
}

// explain gives an error of the peer its reason. A 403 may mean that our rights are gone, or only that the peer's rules do not
// take this object: the peer is asked which.
func (f *reflector) explain(ctx context.Context, p *pass, verb string, err error) error {
	switch {
	case err == nil || errors.Is(err, errRights):
		return err
	case apierrors.IsForbidden(err) && reconcile.Classify(err) != reconcile.Transient: // it has not counted yet what we may have
		allowed, reviewErr := f.allowed(ctx, p, verb)
		if reviewErr != nil {
			return reviewErr
		}
		if !allowed {
			return reconcile.Refuse(authv1beta1.ReasonUnauthorized, errRights)
		}
		return reconcile.Refuse(authv1beta1.ReasonRefusedByProvider, fmt.Errorf("the provider's rules refuse the object: %w", err))
	case apierrors.IsNotFound(err) && verb == "create":
		return reconcile.Refuse(authv1beta1.ReasonRemoteNamespaceMissing,
			fmt.Errorf("the provider has no namespace %s: peer again: %w", f.remoteNamespace, err))
	case apierrors.IsUnauthorized(err):
		return reconcile.Refuse(authv1beta1.ReasonUnauthorized, fmt.Errorf("the provider does not accept our certificate: %w", err))
	}
	return fmt.Errorf("%s of %s %s at cluster %s: %w", verb, p.gvk.Kind, p.at.name, f.clusterID, err)
}

// allowed asks the peer whether we have a right.
func (f *reflector) allowed(ctx context.Context, p *pass, verb string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: f.remoteNamespace, Verb: verb, Group: p.gvk.Group, Resource: p.resource, Name: p.at.name,
		},
	}}
	answer, err := p.clients.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking cluster %s for our rights: %w", f.clusterID, err)
	}
	return answer.Status.Allowed, nil
}

func (f *reflector) setFinalizer(ctx context.Context, p *pass, present bool) error {
	updated, _ := p.local.DeepCopyObject().(client.Object)
	changed := false
	if present {
		changed = controllerutil.AddFinalizer(updated, authv1beta1.ReplicationFinalizer)
	} else {
		changed = controllerutil.RemoveFinalizer(updated, authv1beta1.ReplicationFinalizer)
	}
	if !changed {
		return nil
	}
	patch := client.MergeFromWithOptions(p.local, client.MergeFromWithOptimisticLock{})
	if err := f.home.client.Patch(ctx, updated, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the finalizer of %s %s/%s: %w", p.gvk.Kind, f.namespace, p.at.name, err)
	}
	return nil
}

func (f *reflector) pullStatus(ctx context.Context, p *pass) error {
	updated, _ := p.local.DeepCopyObject().(client.Object)
	p.pull(updated, p.remote, f.home.options.Clock.Now())
	return f.writeStatus(ctx, p, updated)
}

// report says on the object why it is not replicated. The last known answer of the provider stays.
func (f *reflector) report(ctx context.Context, p *pass, err error) error {
	if p.local == nil {
		return nil
	}
	reason, message := reconcile.ReasonOf(err), reconcile.MessageOf(err)
	switch state := f.peer.State(); {
	case reconcile.Classify(err) == reconcile.Transient && !state.Connected:
		reason, message = authv1beta1.ReasonPeerUnreachable, state.Message
	case apierrors.IsTooManyRequests(err):
		reason = authv1beta1.ReasonRemoteThrottled
	case reconcile.Classify(err) == reconcile.Transient:
		reason = authv1beta1.ReasonNotReplicated
	}
	updated, _ := p.local.DeepCopyObject().(client.Object)
	p.unsent(updated, reason, message, f.home.options.Clock.Now())
	return f.writeStatus(ctx, p, updated)
}

func (f *reflector) writeStatus(ctx context.Context, p *pass, updated client.Object) error {
	if equality.Semantic.DeepEqual(p.local, updated) {
		return nil
	}
	patch := client.MergeFromWithOptions(p.local, client.MergeFromWithOptimisticLock{})
	if err := f.home.client.Status().Patch(ctx, updated, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", p.gvk.Kind, f.namespace, p.at.name, err)
	}
	return nil
}
