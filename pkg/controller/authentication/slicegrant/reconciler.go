package slicegrant

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/advertise"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/controller/authentication/resourceplugin"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices/status,verbs=update;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=tenants,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=quotas,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowpods,verbs=list
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// Options of the controller.
type Options struct {
	// ClusterID of this cluster, the provider.
	ClusterID string
	// Issuer of certificates.
	Issuer *certificate.Issuer
	// Advertiser of the API server's endpoint.
	Advertiser advertise.Advertiser
	// Watch follows the Secrets of tenant namespaces.
	Watch *secrets.Watch
	// Clock tells when certificates need renewal.
	Clock clock.PassiveClock
	// Policy of what is granted.
	Policy Policy
	// Supply is what this cluster has to offer.
	Supply *supply.Supply
	// StorageClass offered as the default; empty means the cluster's own.
	StorageClass string
	// IngressClasses offered.
	IngressClasses []authv1beta1.IngressType
	// LoadBalancerClasses offered.
	LoadBalancerClasses []authv1beta1.LoadBalancerType
	// ClusterLabels suggested for consumers' virtual nodes.
	ClusterLabels map[string]string
	// PodCIDRs of this cluster, which consumers check pod addresses with.
	PodCIDRs []string
}

// Policy is what consumers get.
type Policy struct {
	// Plugin decides what is granted, up to the ceiling, in place of a share of what is free; nil leaves it to what follows.
	Plugin *resourceplugin.Plugin
	// DefaultClassEnabled says whether slices of the default class are answered.
	DefaultClassEnabled bool
	// Shares of what is free, and the classes that are answered besides the default one.
	Shares *Shares
	// DefaultResources are granted where a slice does not ask; of others it gets a share of what is free.
	DefaultResources corev1.ResourceList
	// Exclusive has all grants of consumers together be not more than what is free.
	Exclusive bool
	// NodeLabels that slices may choose nodes by, besides those of kinds of nodes.
	NodeLabels []string
	// LimitsEnforcement of new Quotas; empty means None.
	LimitsEnforcement offloadingv1beta1.LimitsEnforcement
	// TenantLimits are those of tenants whose Tenant sets none.
	TenantLimits authv1beta1.TenantLimits
}

// DefaultResourceSlices is how many slices of a tenant are answered, if neither its Tenant nor the policy says.
const DefaultResourceSlices = 16

// Reconciler answers slices.
type Reconciler struct {
	client  client.Client
	live    client.Reader // past the cache
	options Options
	events  events.EventRecorder
}

// scope carries what the phases learn about one slice.
type scope struct {
	slice  *authv1beta1.ResourceSlice
	tenant *authv1beta1.Tenant      // set by admit
	quota  *offloadingv1beta1.Quota // the present one, set by admit; nil if none
	// authentication and resources are the outcomes of their phases.
	authentication, resources outcome
	// cordoned, over and plugin are set by grant: what the conditions say; a zero one if there is to be none, nil if that is not known.
	cordoned, over, plugin *outcome
	nodes                  *authv1beta1.ProviderNodes // set by grant, of slices that are answered here
	shown                  corev1.ResourceList        // what the consumer sees of the grant, set by grant
	selector               labels.Set                 // of the nodes that it is for, set by grant
	renewAt                time.Time                  // set by authenticate
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the grant controller: %w", err)
	}
	if o.Policy.LimitsEnforcement == "" {
		o.Policy.LimitsEnforcement = offloadingv1beta1.NoLimitsEnforcement
	}
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), options: o, events: mgr.GetEventRecorder("liqo-grant")}
	list := &authv1beta1.ResourceSliceList{}
	all := watch.All(r.client, list, replicated)
	controlled := ctrl.NewControllerManagedBy(mgr).Named("slicegrant")
	if o.Policy.Plugin != nil {
		controlled.WatchesRawSource(source.Channel(o.Policy.Plugin.Changed(), &handler.EnqueueRequestForObject{}))
	}
	if o.Policy.Shares != nil {
		controlled.WatchesRawSource(source.Channel(o.Policy.Shares.changed, all))
	}
	return controlled.
		For(&authv1beta1.ResourceSlice{}, builder.WithPredicates(watch.Where(IsReplicated))).
		Watches(&offloadingv1beta1.Quota{}, watch.One(sliceOf)).
		Watches(&offloadingv1beta1.Quota{}, watch.Each(r.client, list, r.slicesBeside), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(o.Supply.Changed(), &handler.EnqueueRequestForObject{})).
		Watches(&authv1beta1.Tenant{}, watch.Each(r.client, list, slicesIn)).
		Watches(&corev1.Node{}, all, builder.WithPredicates(roomChanged(o.Supply))).
		Watches(&storagev1.StorageClass{}, all).
		WatchesRawSource(o.Watch.Source(secrets.Owner("ResourceSlice"))).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// IsReplicated tells whether an object is a peer's copy.
func IsReplicated(object client.Object) bool {
	return object.GetLabels()[corev1beta1.ReplicatedLabel] == "true"
}

func sliceOf(object client.Object) client.ObjectKey {
	if object.GetLabels()[corev1beta1.ManagedLabel] != "true" {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetLabels()[authv1beta1.ResourceSliceNameLabel]}
}

// slicesBeside are those that may get what a Quota does not hold any more.
func (r *Reconciler) slicesBeside(quota client.Object) []client.ListOption {
	if r.options.Policy.Exclusive {
		return []client.ListOption{replicated}
	}
	return slicesIn(quota)
}

// replicated selects the slices that are peers' copies, and slicesIn those in the namespace of an object.
var replicated = client.MatchingLabels{corev1beta1.ReplicatedLabel: "true"}

func slicesIn(o client.Object) []client.ListOption {
	return []client.ListOption{client.InNamespace(o.GetNamespace()), replicated}
}

// Reconcile answers one slice.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	slice := &authv1beta1.ResourceSlice{}
	err := r.client.Get(ctx, request.NamespacedName, slice)
	if apierrors.IsNotFound(err) {
		r.withdraw(request.NamespacedName)
		return reconcile.Result(r.forget(ctx, request.NamespacedName))
	}
	if err != nil {
		return reconcile.Result(fmt.Errorf("reading ResourceSlice %s: %w", request, err))
	}
	if !slice.DeletionTimestamp.IsZero() || !IsReplicated(slice) {
		return ctrl.Result{}, nil
	}
	s := &scope{slice: slice.DeepCopy()}
	err = r.phases(ctx, s)
	if s.resources.status == authv1beta1.Denied {
		r.withdraw(request.NamespacedName)
	}
	r.summarize(s, err)
	if !equality.Semantic.DeepEqual(slice.Status, s.slice.Status) {
		if err := r.client.Status().Patch(ctx, s.slice, client.MergeFrom(slice)); err != nil {
			return reconcile.Result(fmt.Errorf("writing the status of ResourceSlice %s: %w", request, err))
		}
	}
	if err != nil {
		return reconcile.Result(err)
	}
	if s.renewAt.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(s.renewAt.Sub(r.options.Clock.Now()), certificate.Soon)}, nil
}
