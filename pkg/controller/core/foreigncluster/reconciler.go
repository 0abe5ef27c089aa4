package foreigncluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=core.liqo.io,resources=foreignclusters,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=core.liqo.io,resources=foreignclusters/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=tenants;identities;resourceslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes;namespacemaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations;gatewayservers;gatewayclients;connections;internalnodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes;namespaces,verbs=get;list;watch

// Prober knows whether the API servers of providers answer. It is the holder of the one connection to each peer.
type Prober interface {
	// State of a provider's API server. known is false as long as there is no connection to speak of. reason is one of the
	// core group's reasons, message says what happened; both are empty while connected.
	State(clusterID string) (connected bool, reason, message string, known bool)
	// AnsweredSince tells whether the provider answered something that it was asked after a time. If not, it has it asked at once.
	AnsweredSince(clusterID string, since time.Time) bool
}

// Options configure the reconciler.
type Options struct {
	// Networking says whether the network module runs.
	Networking bool
	// ClusterID is the local cluster's ID, which is never a peer.
	ClusterID string
	// Prober tells whether providers answer; required.
	Prober Prober
	// Changed receives an event whose object has a provider's ID as its name whenever the Prober's state of it changes.
	Changed <-chan event.GenericEvent
	// Events records what becomes of peers; the manager's recorder if nil.
	Events events.EventRecorder
	// Clock gives conditions their times; the real one if nil.
	Clock clock.PassiveClock
}

type reconciler struct {
	client.Client
	Options
	// marks are when ForeignClusters were first seen to be marked as dead, by their UIDs. One worker uses it.
	marks map[types.UID]time.Time
}

// Register adds the reconciler to a manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Prober == nil {
		return fmt.Errorf("registering the ForeignCluster controller: Options.Prober is required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Events == nil {
		o.Events = mgr.GetEventRecorder("liqo-foreign-cluster")
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o, marks: map[types.UID]time.Time{}}
	ofPeer := watch.One(ofObject)
	b := ctrl.NewControllerManagedBy(mgr).Named("foreigncluster").
		For(&corev1beta1.ForeignCluster{}).
		Watches(&authv1beta1.Tenant{}, ofPeer).
		Watches(&authv1beta1.Identity{}, ofPeer).
		Watches(&authv1beta1.ResourceSlice{}, ofPeer).
		Watches(&offloadingv1beta1.VirtualNode{}, ofPeer).
		Watches(&offloadingv1beta1.NamespaceMap{}, ofPeer).
		Watches(&corev1.Node{}, ofPeer).
		Watches(&corev1.Namespace{}, ofPeer).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: reconcile.RateLimiter()})
	if o.Networking {
		for _, kind := range []client.Object{
			&networkingv1beta1.Configuration{}, &networkingv1beta1.GatewayServer{}, &networkingv1beta1.GatewayClient{}, &networkingv1beta1.Connection{},
		} {
			b = b.Watches(kind, ofPeer)
		}
		b = b.Watches(&networkingv1beta1.InternalNode{}, handler.EnqueueRequestsFromMapFunc(ofNode), builder.WithPredicates(silenceChanged)).
			Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine), builder.WithPredicates(readinessChanged))
	}
	if o.Changed != nil {
		b = b.WatchesRawSource(source.Channel(o.Changed, watch.One(func(o client.Object) client.ObjectKey { return client.ObjectKey{Name: o.GetName()} })))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("registering the ForeignCluster controller: %w", err)
	}
	return nil
}

// Reconcile creates, updates or removes the ForeignCluster of one peer.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if req.Name == r.ClusterID {
		return ctrl.Result{}, nil
	}
	facts, err := r.gather(ctx, corev1beta1.ClusterID(req.Name))
	if err != nil {
		return reconcile.Result(err)
	}
	var fc corev1beta1.ForeignCluster
	err = r.Get(ctx, req.NamespacedName, &fc)
	switch {
	case apierrors.IsNotFound(err) && facts.Any():
		return reconcile.Result(r.create(ctx, req.Name))
	case err != nil:
		return reconcile.Result(client.IgnoreNotFound(err))
	case !fc.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	case !facts.Any() && keep.Managed(&fc):
		return reconcile.Result(keep.Delete(ctx, r.Client, &fc, client.Preconditions{UID: ptr.To(fc.UID), ResourceVersion: ptr.To(fc.ResourceVersion)}))
	}
	// The mark goes before the status says that the peer answers: nobody ever sees it marked, and then silent once more.
	again, err := r.unmark(ctx, &fc, facts)
	if err != nil {
		return reconcile.Result(err)
	}
	facts.CutOff = fc.Revoked(corev1beta1.ClusterID(r.ClusterID), facts.revoked())
	changed := fc.DeepCopy()
	changed.Status = Observe(fc.Status, fc.Generation, *facts, r.Clock.Now())
	if equality.Semantic.DeepEqual(fc.Status, changed.Status) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	// A cache that is behind would have what was told before told again; the newer version is an event.
	err = r.Status().Patch(ctx, changed, client.MergeFromWithOptions(&fc, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: again}, nil
	case err != nil:
		// Nobody else can tell of it: it is not quiet even if rules forbid it.
		return reconcile.Result(reconcile.Retry(fmt.Errorf("writing the status of ForeignCluster %s: %w", fc.Name, err)))
	}
	r.tell(ctx, &fc, changed)
	return ctrl.Result{RequeueAfter: again}, nil
}

// create makes the ForeignCluster; its own event brings the status.
func (r *reconciler) create(ctx context.Context, id string) error {
	if err := identity.ValidateClusterID(id); err != nil {
		return reconcile.Terminate(string(identity.ReasonClusterID), err)
	}
	return keep.Make(ctx, r.Client, &corev1beta1.ForeignCluster{
		ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: id, corev1beta1.ManagedLabel: "true"}},
		Spec:       corev1beta1.ForeignClusterSpec{ClusterID: corev1beta1.ClusterID(id)},
	})
}
