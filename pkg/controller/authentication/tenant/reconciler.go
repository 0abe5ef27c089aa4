package tenant

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/advertise"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=tenants,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=tenants/status,verbs=update;patch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=tenants/finalizers,verbs=update
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=resourceslices;renews,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=flowcontrol.apiserver.k8s.io,resources=flowschemas;prioritylevelconfigurations,verbs=get;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=liqo-remote-controlplane,verbs=bind

// Options of the controller.
type Options struct {
	// ClusterID of this cluster, the provider.
	ClusterID string
	// Issuer of certificates.
	Issuer *certificate.Issuer
	// Advertiser of the API server's endpoint.
	Advertiser advertise.Advertiser
	// Secrets reads and writes Secrets.
	Secrets secrets.Store
	// Watch follows the Secrets of tenant namespaces.
	Watch *secrets.Watch
	// SilentAfter is how long a consumer may ask for no certificate before its Tenant says so. It is never said before its last one expired.
	SilentAfter time.Duration
	// RequestShares of the API server's places that each consumer's requests are served in (nominalConcurrencyShares), at least 1.
	RequestShares int32
	// Clock tells when certificates need renewal, and which consumers are silent.
	Clock clock.PassiveClock
}

// Reconciler accepts tenants.
type Reconciler struct {
	client  client.Client
	live    client.Reader // past the cache
	options Options
	events  events.EventRecorder
	// countFrom is when Kubernetes surely knows our kinds.
	countFrom time.Time
}

// scope carries what the phases learn about one Tenant.
type scope struct {
	tenant    *authv1beta1.Tenant
	namespace *corev1.Namespace // set by findNamespace
	renewAt   time.Time         // set by issue
	again     time.Duration     // set by fence and issue: when it is to be looked at again, 0 for not of its own
}

// lookAgain has the Tenant be looked at again after a time, if not sooner.
func (s *scope) lookAgain(after time.Duration) {
	if s.again == 0 || after < s.again {
		s.again = after
	}
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the tenant controller: %w", err)
	}
	r := &Reconciler{client: mgr.GetClient(), live: mgr.GetAPIReader(), options: o, events: mgr.GetEventRecorder("liqo-tenant")}
	r.countFrom = o.Clock.Now().Add(counting.KindsKnown)
	tenants := &authv1beta1.TenantList{}
	return ctrl.NewControllerManagedBy(mgr).Named("tenant").
		For(&authv1beta1.Tenant{}).
		Owns(&rbacv1.RoleBinding{}).
		Watches(&corev1.Namespace{}, watch.Each(r.client, tenants, func(namespace client.Object) []client.ListOption {
			return []client.ListOption{client.InNamespace(namespace.GetName())}
		})).
		WatchesRawSource(o.Watch.Source(func(ctx context.Context, secret *metav1.PartialObjectMetadata) []ctrlreconcile.Request {
			if secret.Labels[authv1beta1.NonceLabel] != "true" {
				return secrets.Owner("Tenant")(ctx, secret)
			}
			return watch.Requests(ctx, r.client, tenants, client.InNamespace(secret.Namespace))
		})).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// Reconcile takes one Tenant through its phases.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	tenant := &authv1beta1.Tenant{}
	if err := r.client.Get(ctx, request.NamespacedName, tenant); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if err := r.confirm(ctx, tenant); err != nil {
		return reconcile.Result(err)
	}
	if !tenant.DeletionTimestamp.IsZero() {
		return reconcile.Result(r.remove(ctx, tenant))
	}
	if controllerutil.AddFinalizer(tenant, authv1beta1.TenantFinalizer) {
		if err := r.client.Update(ctx, tenant); err != nil {
			return reconcile.Result(fmt.Errorf("adding the finalizer of Tenant %s: %w", request, err))
		}
	}
	s := &scope{tenant: tenant.DeepCopy()}
	phaseErr := r.phases(ctx, s)
	r.summarize(s, phaseErr)
	if !equality.Semantic.DeepEqual(tenant.Status, s.tenant.Status) {
		if err := r.client.Status().Patch(ctx, s.tenant, client.MergeFrom(tenant)); err != nil {
			return reconcile.Result(fmt.Errorf("writing the status of Tenant %s: %w", request, err))
		}
	}
	if phaseErr != nil {
		return reconcile.Result(phaseErr)
	}
	if !s.renewAt.IsZero() {
		s.lookAgain(max(s.renewAt.Sub(r.options.Clock.Now()), time.Second))
	}
	return ctrl.Result{RequeueAfter: s.again}, nil
}

// phases are the steps, each of which may be the last.
func (r *Reconciler) phases(ctx context.Context, s *scope) error {
	if err := r.findNamespace(ctx, s); err != nil {
		return err
	}
	if s.tenant.Spec.TenantCondition == authv1beta1.TenantDrained {
		return r.drain(ctx, s.tenant)
	}
	for _, phase := range []func(context.Context, *scope) error{r.revoke, r.verify, r.fence, r.bind, r.issue} {
		if err := phase(ctx, s); err != nil {
			return err
		}
	}
	return nil
}
