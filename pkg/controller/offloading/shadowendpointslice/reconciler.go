package shadowendpointslice

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowendpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowendpointslices/finalizers,verbs=update
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=core.liqo.io,resources=foreignclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations;connections,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes;pods;services,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// lag is how long to wait for the cache to show what was just written, if no event does it.
const lag = 2 * time.Second

// Options configure the reconciler.
type Options struct {
	// Own are the ranges of this cluster's pods and Services, which no consumer may announce.
	Own []netip.Prefix
	// Networking has addresses of consumers with a Configuration translated by it.
	Networking bool
	// DenyDirect has what consumers say of other clusters be ignored.
	DenyDirect bool
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
	// Events receives what goes wrong; the manager's recorder if nil.
	Events events.EventRecorder
	// Clock tells when an EndpointSlice that somebody keeps changing is put back; the real one if nil.
	Clock clock.PassiveClock
	// Workers is how many ShadowEndpointSlices are reconciled at a time; 10 if 0.
	Workers int
}

type reconciler struct {
	client.Client
	Options
	// told is, by name, what was last said about a ShadowEndpointSlice.
	told sync.Map
	// contests are, by name, what is remembered of the writes of EndpointSlices.
	contests sync.Map
	// naming are, by name, hashes of the names of the pods of this cluster that a ShadowEndpointSlice names.
	naming sync.Map
}

// Register adds the reconciler to a manager. The manager's cache may hold just the EndpointSlices with the label
// liqo.io/managed-by=shadowendpointslice, and holds metadata alone of those and of ShadowEndpointSlices.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	if o.Events == nil {
		o.Events = mgr.GetEventRecorder("liqo-shadowendpointslice")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = 10
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o}
	each := func(of func(client.Object) []client.ListOption) handler.EventHandler {
		return watch.Each(r.Client, known(), of)
	}
	ofPeer := each(func(o client.Object) []client.ListOption {
		return ofNetwork(o.GetLabels()[corev1beta1.RemoteClusterIDLabel])
	})
	register := ctrl.NewControllerManagedBy(mgr).Named("shadowendpointslice").
		// Consumers decide how much these hold: it is read when it is needed, and not kept.
		For(&offloadingv1beta1.ShadowEndpointSlice{}, builder.OnlyMetadata).
		Owns(&discoveryv1.EndpointSlice{}, builder.OnlyMetadata).
		Watches(&authv1beta1.ResourceSlice{}, each(func(o client.Object) []client.ListOption {
			return ofConsumer(o.GetLabels()[corev1beta1.OriginIDLabel])
		}), builder.WithPredicates(watch.Labelled(corev1beta1.ReplicatedLabel, "true"), announcements())).
		Watches(&corev1beta1.ForeignCluster{}, each(func(o client.Object) []client.ListOption {
			return ofConsumer(o.GetName())
		}), builder.WithPredicates(ways())).
		WatchesMetadata(aService(), each(ofService), builder.WithPredicates(services())).
		Watches(&corev1.Pod{}, watch.Each(r.Client, known(), r.namers), builder.WithPredicates(pods())).
		Watches(&corev1.Node{}, watch.All(r.Client, known()), builder.WithPredicates(nodeAddresses())).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: reconcile.RateLimiter()})
	if o.Networking {
		register = register.Watches(&networkingv1beta1.Configuration{}, ofPeer, builder.WithPredicates(mappings())).
			Watches(&networkingv1beta1.Connection{}, ofPeer, builder.WithPredicates(tunnels()))
	}
	if err := register.Complete(r); err != nil {
		return fmt.Errorf("registering the ShadowEndpointSlice controller: %w", err)
	}
	return nil
}

// announcements passes changes of what a consumer announces.
func announcements() predicate.Predicate {
	return watch.Changed(func(s *authv1beta1.ResourceSlice) any { return s.Spec.PodCIDRs })
}

// ways passes changes of whether a peer can be reached.
func ways() predicate.Predicate {
	return watch.Changed(func(foreign *corev1beta1.ForeignCluster) any {
		if Down(foreign) {
			return true
		}
		return nil
	})
}

// mappings passes changes of how this cluster sees a peer.
func mappings() predicate.Predicate {
	return watch.Changed(func(c *networkingv1beta1.Configuration) any {
		return []any{c.Spec.Remote, c.Status.Remote, c.Status.Announced, c.Labels[corev1beta1.RemoteClusterIDLabel]}
	})
}

// tunnels passes changes of whether a tunnel works.
func tunnels() predicate.Predicate {
	return watch.Changed(func(c *networkingv1beta1.Connection) any { return c.Status.Value })
}

// nodeAddresses passes changes of the nodes' addresses. One that goes leaves nothing to be forbidden sooner.
func nodeAddresses() predicate.Predicate {
	return watch.Changed(func(node *corev1.Node) any { return fmt.Sprint(addressesOf(node)) })
}

// ofConsumer selects the ShadowEndpointSlices of a consumer.
func ofConsumer(consumer string) []client.ListOption {
	if consumer == "" {
		return nil
	}
	return []client.ListOption{client.MatchingLabels{offloadingv1beta1.OriginLabel: consumer}}
}

// ofNetwork selects the ShadowEndpointSlices that a network to a cluster is of use to: its own, and those that name it.
func ofNetwork(cluster string) []client.ListOption {
	if cluster == "" {
		return nil
	}
	named := func(h hint) bool { return h.cluster == cluster }
	return []client.ListOption{watch.If(func(shadow client.Object) bool {
		return shadow.GetLabels()[offloadingv1beta1.OriginLabel] == cluster || slices.ContainsFunc(hints(shadow, mostDirect), named)
	})}
}

// known is the metadata of ShadowEndpointSlices, all that is kept of them.
func known() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(offloadingv1beta1.GroupVersion.WithKind("ShadowEndpointSliceList"))
	return list
}

// Reconcile brings the EndpointSlice of one ShadowEndpointSlice in step.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var shadow offloadingv1beta1.ShadowEndpointSlice
	err := r.Live.Get(ctx, req.NamespacedName, &shadow)
	if apierrors.IsNotFound(err) {
		r.told.Delete(req.NamespacedName)
		r.contests.Delete(req.NamespacedName)
		r.naming.Delete(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return reconcile.Result(fmt.Errorf("reading ShadowEndpointSlice %s: %w", req, err))
	}
	if !shadow.DeletionTimestamp.IsZero() {
		// The garbage collector removes the EndpointSlice.
		return ctrl.Result{}, nil
	}
	reason, message, err := r.ensure(ctx, &shadow)
	if class := reconcile.Classify(err); err != nil && (class == reconcile.Refused || class == reconcile.Terminal) {
		reason, message = reconcile.ReasonOf(err), reconcile.MessageOf(err)
	}
	if err == nil || reason != "" {
		r.tell(&shadow, reason, message)
	}
	return reconcile.Result(err)
}

// tell says what is wrong, once.
func (r *reconciler) tell(shadow *offloadingv1beta1.ShadowEndpointSlice, reason, message string) {
	key, said := client.ObjectKeyFromObject(shadow), reason+" "+message
	if before, there := r.told.Swap(key, said); there && before == said || reason == "" {
		return
	}
	r.Events.Eventf(shadow, nil, corev1.EventTypeWarning, reason, "PublishEndpoints", "%s", conditions.Bound(message))
}

// ensure makes the EndpointSlice what it must be. reason and message say what of it was left out.
func (r *reconciler) ensure(ctx context.Context, shadow *offloadingv1beta1.ShadowEndpointSlice) (reason, message string, err error) {
	family := shadow.Spec.Template.AddressType
	if family != discoveryv1.AddressTypeIPv4 && family != discoveryv1.AddressTypeIPv6 {
		return "", "", reconcile.Terminate(offloadingv1beta1.ReasonEndpointSliceInvalid, errors.New("only IPv4 and IPv6 addresses are published"))
	}
	if err := r.attach(ctx, shadow); err != nil {
		return "", "", err
	}
	know, err := r.knowledge(ctx, shadow)
	if err != nil {
		return "", "", err
	}
	if know.Hosted, err = r.hosted(ctx, shadow); err != nil {
		return "", "", err
	}
	wanted, omitted := Build(shadow, know)
	s := &scope{shadow: shadow, wanted: wanted, contest: r.contestOf(shadow, know)}
	if len(omitted) > 0 {
		reason, message = offloadingv1beta1.ReasonAddressNotAnnounced, why(omitted, know)
	}
	var live discoveryv1.EndpointSlice
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), &live)
	switch {
	case apierrors.IsNotFound(err):
		err = r.create(ctx, s)
	case err != nil:
		err = fmt.Errorf("reading EndpointSlice %s/%s: %w", wanted.Namespace, wanted.Name, err)
	default:
		err = r.follow(ctx, s, &live)
	}
	return reason, message, err
}

// create makes the EndpointSlice.
func (r *reconciler) create(ctx context.Context, s *scope) error {
	if err := r.mayWrite(s, "it is removed"); err != nil {
		return err
	}
	made := s.wanted.DeepCopy()
	err := r.Create(ctx, made, fieldManager)
	switch {
	case err == nil:
		s.wrote(made, r.Clock.Now())
		return nil
	case !apierrors.IsAlreadyExists(err):
		return refused(err, "creating", s.wanted)
	}
	var live discoveryv1.EndpointSlice
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.wanted), &live); err != nil {
		return fmt.Errorf("reading EndpointSlice %s/%s: %w", s.wanted.Namespace, s.wanted.Name, err)
	}
	return r.follow(ctx, s, &live)
}

// refused classifies a failure to write.
func refused(err error, doing string, slice *discoveryv1.EndpointSlice) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s EndpointSlice %s/%s: %w", doing, slice.Namespace, slice.Name, err)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		// Admission that gives no reason of its own answers so, too, and its rules change.
		return reconcile.Refuse(offloadingv1beta1.ReasonEndpointSliceInvalid, err)
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reconcile.Wait(offloadingv1beta1.ReasonTwinTerminating, err.Error(), reconcile.RefusedRetry)
	default:
		return err
	}
}

// follow changes the EndpointSlice that is there, if it is this ShadowEndpointSlice's and differs.
func (r *reconciler) follow(ctx context.Context, s *scope, live *discoveryv1.EndpointSlice) error {
	switch {
	case !metav1.IsControlledBy(live, s.shadow) && predecessor(live, s.shadow):
		return reconcile.Wait(offloadingv1beta1.ReasonEndpointSliceConflict, "waiting for an earlier EndpointSlice of this name to go", lag)
	case !metav1.IsControlledBy(live, s.shadow):
		return reconcile.NotOurs(offloadingv1beta1.ReasonEndpointSliceConflict, "EndpointSlice", client.ObjectKeyFromObject(live))
	case !live.DeletionTimestamp.IsZero():
		return nil
	case live.AddressType != s.wanted.AddressType:
		// Its family cannot be changed. The deletion's event brings us back, and counts as the creation that follows.
		if err := r.mayWrite(s, "its address family is changed"); err != nil {
			return err
		}
		return keep.Delete(ctx, r.Client, live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	}
	now := changed(live, s.wanted, equality.Semantic.DeepEqual)
	if now == nil {
		s.contest.inStep = true
		return nil
	}
	return r.putBack(ctx, s, live, now)
}

// predecessor tells whether an EndpointSlice was made of an earlier ShadowEndpointSlice of the name: the garbage collector
// removes it.
func predecessor(live *discoveryv1.EndpointSlice, shadow *offloadingv1beta1.ShadowEndpointSlice) bool {
	owner := metav1.GetControllerOf(live)
	return owner != nil && owner.Kind == "ShadowEndpointSlice" && owner.APIVersion == offloadingv1beta1.GroupVersion.String() &&
		owner.Name == shadow.Name && owner.UID != types.UID("") && owner.UID != shadow.UID
}
