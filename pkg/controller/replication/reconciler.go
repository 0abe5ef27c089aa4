package replication

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/peer"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=identities,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices;renews,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices/status;renews/status,verbs=update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps/status,verbs=update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=core.liqo.io,resources=foreignclusters,verbs=get;list;watch

// teardownPoll is how often an Identity that is being deleted looks whether everything is gone.
const teardownPoll = time.Second

// Options of the controller.
type Options struct {
	// ClusterID of this cluster, the consumer.
	ClusterID string
	// Kube watches the kubeconfig Secrets, one by one.
	Kube kubernetes.Interface
	// Endpoints says where a provider's API server may be.
	Endpoints identity.EndpointPolicy
	// Workers per peer; default 2.
	Workers int
	// ProbeInterval, ProbeTimeout and RequestTimeout of the connections; zero means pkg/peer's defaults.
	ProbeInterval, ProbeTimeout, RequestTimeout time.Duration
	// OnState, if set, is told each change of a connection; it must not block.
	OnState func(clusterID string, state peer.State)
	// OnPeer, if set, is given each new connection, before its first state; it must not block.
	OnPeer func(clusterID string, connection *peer.Peer)
	// Meter shows the connections as metrics; nil shows nothing.
	Meter *peer.Meter
	// Clock times the probes.
	Clock clock.WithTicker
}

// Reconciler keeps one reflector per control plane Identity.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	mgr     ctrl.Manager
	options Options
	events  events.EventRecorder

	mu         sync.Mutex
	ctx        context.Context
	reflectors map[types.NamespacedName]*reflector
	group      sync.WaitGroup
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the replication controller: %w", err)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	r := &Reconciler{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), mgr: mgr, options: o,
		events: mgr.GetEventRecorder("liqo-replication"), reflectors: map[types.NamespacedName]*reflector{},
	}
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("registering the replication controller: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("replication").
		For(&authv1beta1.Identity{}, builder.WithPredicates(watch.Where(ofControlPlane))).
		Watches(&corev1beta1.ForeignCluster{}, watch.Each(r.client, &authv1beta1.IdentityList{}, identitiesOf)).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// Start implements manager.Runnable: reflectors live until ctx ends.
func (r *Reconciler) Start(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	r.mu.Unlock()
	<-ctx.Done()
	r.group.Wait()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *Reconciler) NeedLeaderElection() bool { return true }

func ofControlPlane(i *authv1beta1.Identity) bool {
	return i.Spec.Type == authv1beta1.ControlPlaneIdentityType
}

func identitiesOf(cluster client.Object) []client.ListOption {
	return []client.ListOption{client.InNamespace(corev1beta1.TenantNamespacePrefix + cluster.GetName()), watch.If(ofControlPlane)}
}

// Reconcile starts, restarts or stops the reflector of one Identity.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &authv1beta1.Identity{}
	err := r.client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		r.stop(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return reconcile.Result(fmt.Errorf("reading Identity %s: %w", request, err))
	}
	if !ofControlPlane(object) {
		return ctrl.Result{}, nil
	}
	gone, cutOff, err := r.peerGone(ctx, string(object.Spec.ClusterID))
	if err != nil {
		return reconcile.Result(err)
	}
	if object.DeletionTimestamp.IsZero() {
		err = r.run(ctx, object, gone, cutOff)
	} else {
		err = r.finish(ctx, object, gone, cutOff)
	}
	return reconcile.Result(err)
}

// peerGone tells whether the user said that the peer will not come back, or is not to be talked to any more.
func (r *Reconciler) peerGone(ctx context.Context, id string) (gone, cutOff bool, err error) {
	cluster := &corev1beta1.ForeignCluster{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: id}, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return false, false, nil
		}
		return false, false, fmt.Errorf("reading ForeignCluster %s: %w", id, err)
	}
	return cluster.IsDead(), cluster.IsCutOff(), nil
}

// run holds the Identity and runs its reflector, once its kubeconfig is there.
func (r *Reconciler) run(ctx context.Context, object *authv1beta1.Identity, gone, cutOff bool) error {
	if object.Status.KubeconfigSecretRef == nil {
		return nil // the Identity's status change brings us back
	}
	if !controllerutil.ContainsFinalizer(object, authv1beta1.ReplicatorFinalizer) {
		updated := object.DeepCopy()
		controllerutil.AddFinalizer(updated, authv1beta1.ReplicatorFinalizer)
		if err := r.client.Update(ctx, updated); err != nil {
			return fmt.Errorf("adding the finalizer of Identity %s/%s: %w", object.Namespace, object.Name, err)
		}
	}
	return r.ensure(object, gone, cutOff)
}

// target is what a reflector connects to.
type target struct {
	clusterID, namespace, secret, remoteNamespace string
	// peering is that of the certificate; empty if it names none.
	peering string
	// cutOff says that the peer is not to be talked to.
	cutOff bool
}

func (r *Reconciler) targetOf(object *authv1beta1.Identity) (target, error) {
	remote := ptr.Deref(object.Spec.Namespace, "")
	if remote == "" {
		remote = corev1beta1.TenantNamespacePrefix + r.options.ClusterID
	}
	if len(content.IsDNS1123Label(remote)) != 0 {
		return target{}, reconcile.Terminate(authv1beta1.ReasonInvalidNamespace,
			fmt.Errorf("the namespace of Identity %s/%s is not a namespace's name", object.Namespace, object.Name))
	}
	return target{
		clusterID: string(object.Spec.ClusterID), namespace: object.Namespace,
		secret: object.Status.KubeconfigSecretRef.Name, remoteNamespace: remote,
		peering: identity.CertificatePeering(object.Spec.AuthParams.SignedCRT),
	}, nil
}

// ensure has the reflector of an Identity run with the present target.
func (r *Reconciler) ensure(object *authv1beta1.Identity, gone, cutOff bool) error {
	key := client.ObjectKeyFromObject(object)
	to, err := r.targetOf(object)
	if err != nil {
		return err
	}
	to.cutOff = cutOff
	r.mu.Lock()
	running, ctx := r.reflectors[key], r.ctx
	r.mu.Unlock()
	if ctx == nil {
		return reconcile.Wait(authv1beta1.ReasonDeletionPending, "waiting for the manager to start", teardownPoll)
	}
	if running != nil && running.target == to {
		running.setGone(gone)
		return nil
	}
	r.stop(key)
	started, err := newReflector(r, to, gone)
	if err != nil {
		return err
	}
	runCtx, cancel := context.WithCancel(ctx)
	started.cancel, started.ended = cancel, make(chan struct{})
	r.mu.Lock()
	r.reflectors[key] = started
	r.mu.Unlock()
	r.group.Go(func() {
		defer close(started.ended)
		started.run(runCtx)
	})
	return nil
}

// stop ends the reflector of an Identity and waits until it writes no more.
func (r *Reconciler) stop(key types.NamespacedName) {
	r.mu.Lock()
	running := r.reflectors[key]
	delete(r.reflectors, key)
	r.mu.Unlock()
	if running != nil {
		running.cancel()
		<-running.ended
	}
}

// finish lets an Identity go once nothing is replicated through it any more.
func (r *Reconciler) finish(ctx context.Context, object *authv1beta1.Identity, gone, cutOff bool) error {
	if !controllerutil.ContainsFinalizer(object, authv1beta1.ReplicatorFinalizer) {
		r.stop(client.ObjectKeyFromObject(object))
		return nil
	}
	key, peerID := client.ObjectKeyFromObject(object), string(object.Spec.ClusterID)
	left, err := leftovers(ctx, r.client, object.Namespace, peerID)
	if err == nil && left == "" {
		// A Renew may be made anew, and get our finalizer, while the Identity goes: nobody could take that off any more. So no reflector puts one
		// on from here, and the cache is not believed.
		r.stop(key)
		left, err = leftovers(ctx, r.live, object.Namespace, peerID)
	}
	if err != nil {
		return err
	}
	if left != "" {
		if object.Status.KubeconfigSecretRef != nil {
			if err := r.ensure(object, gone, cutOff); err != nil {
				return err
			}
		}
		r.events.Eventf(object, nil, corev1.EventTypeNormal, authv1beta1.ReasonDeletionPending, "Delete", "Waiting for %s to be deleted first", left)
		return reconcile.Wait(authv1beta1.ReasonDeletionPending, "waiting for "+left+" to be deleted", teardownPoll)
	}
	updated := object.DeepCopy()
	controllerutil.RemoveFinalizer(updated, authv1beta1.ReplicatorFinalizer)
	if err := r.client.Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of Identity %s/%s: %w", object.Namespace, object.Name, err)
	}
	return nil
}

// leftovers names an object that still is replicated to a peer, empty if there is none.
func leftovers(ctx context.Context, reader client.Reader, namespace, peerID string) (string, error) {
	for _, k := range kinds() {
		objects, err := listObjects(ctx, reader, k, namespace)
		if err != nil {
			return "", err
		}
		for _, object := range objects {
			if hasFinalizer(object) && object.GetLabels()[corev1beta1.RemoteIDLabel] == peerID {
				return k.gvk.Kind + " " + object.GetName(), nil
			}
		}
	}
	return "", nil
}
