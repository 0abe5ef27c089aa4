package renewgrant

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/advertise"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/controller/authentication/slicegrant"
	"liqo.io/liqo/pkg/controller/authentication/tenantnamespace"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=renews;tenants;resourceslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=renews/status,verbs=update;patch

// Options of the controller.
type Options struct {
	// ClusterID of this cluster, the provider.
	ClusterID string
	// Issuer of certificates.
	Issuer *certificate.Issuer
	// Advertiser of the API server's endpoint.
	Advertiser advertise.Advertiser
}

// Reconciler answers Renews.
type Reconciler struct {
	client  client.Client
	options Options
	events  events.EventRecorder
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the renew controller: %w", err)
	}
	r := &Reconciler{client: mgr.GetClient(), options: o, events: mgr.GetEventRecorder("liqo-renew")}
	return ctrl.NewControllerManagedBy(mgr).Named("renewgrant").
		For(&authv1beta1.Renew{}, builder.WithPredicates(watch.Where(slicegrant.IsReplicated))).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// Reconcile answers one Renew.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	renew := &authv1beta1.Renew{}
	if err := r.client.Get(ctx, request.NamespacedName, renew); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	if !renew.DeletionTimestamp.IsZero() || !slicegrant.IsReplicated(renew) {
		return ctrl.Result{}, nil
	}
	updated := renew.DeepCopy()
	err := r.answer(ctx, updated)
	r.summarize(updated, err)
	if !equality.Semantic.DeepEqual(renew.Status, updated.Status) {
		if err := r.client.Status().Patch(ctx, updated, client.MergeFrom(renew)); err != nil {
			return reconcile.Result(fmt.Errorf("writing the status of Renew %s: %w", request, err))
		}
	}
	return reconcile.Result(err)
}

func (r *Reconciler) answer(ctx context.Context, renew *authv1beta1.Renew) error {
	tenant, err := r.tenantOf(ctx, renew.Namespace)
	if err != nil {
		return err
	}
	access := identity.AccessOf(&tenant.Spec)
	consumer := access.Consumer
	want, err := Expect(renew, access)
	if err != nil {
		return reconcile.Terminate(authv1beta1.ReasonInvalidRenew, err)
	}
	if renew.Spec.IdentityType == authv1beta1.ResourceSliceIdentityType {
		if err := r.checkSlice(ctx, renew, consumer); err != nil {
			return err
		}
	}
	endpoint, err := r.options.Advertiser.Endpoint(ctx)
	if err != nil {
		return err
	}
	request := certificate.Request{
		Namespace: renew.Namespace, Record: certificate.RenewRecord(renew.Name), RemoteID: consumer,
		CSR: renew.Spec.CSR, Want: want, Owner: renew, Late: true,
	}
	if access.Peering != "" && renew.Spec.IdentityType == authv1beta1.ControlPlaneIdentityType {
		r.succeed(&request, renew, tenant)
	}
	issued, err := r.options.Issuer.Issue(ctx, request)
	if err != nil {
		return err
	}
	renew.Status.AuthParams = &authv1beta1.AuthParams{
		CA: endpoint.CA, SignedCRT: issued.PEM, APIServer: endpoint.APIServer, ProxyURL: tenant.Spec.ProxyURL,
	}
	return nil
}

// succeed makes a renewal the successor of the tenant's present certificate, in the Tenant's own record, which the consumer cannot delete.
// Only who holds the present key may name the next one.
func (r *Reconciler) succeed(request *certificate.Request, renew *authv1beta1.Renew, tenant *authv1beta1.Tenant) {
	access := identity.AccessOf(&tenant.Spec)
	request.Record, request.Owner = certificate.TenantRecord(), tenant
	request.Choose = func(recorded []byte) ([]byte, error) {
		present := access.PresentRequest(recorded, tenant.Spec.CSR)
		err := identity.CheckSuccession(present, renew.Spec.CSR, renew.Spec.Signature, access.Consumer, r.options.ClusterID)
		if err != nil {
			return nil, reconcile.Refuse(authv1beta1.ReasonRenewalNotSigned, err)
		}
		return renew.Spec.CSR, nil
	}
}

// tenantOf finds the tenant that owns a namespace, and may have certificates.
func (r *Reconciler) tenantOf(ctx context.Context, name string) (*authv1beta1.Tenant, error) {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	list := &authv1beta1.TenantList{}
	if err := r.client.List(ctx, list, client.InNamespace(name)); err != nil {
		return nil, fmt.Errorf("listing Tenants in Namespace %s: %w", name, err)
	}
	if namespace.Labels[corev1beta1.TenantNamespaceLabel] == "true" && tenantnamespace.WhyNotTenantNamespace(namespace) == "" {
		for i := range list.Items {
			tenant := &list.Items[i]
			if string(tenant.Spec.ClusterID) != namespace.Labels[corev1beta1.RemoteClusterIDLabel] || tenant.Status.TenantNamespace != name {
				continue
			}
			switch {
			case tenant.Spec.TenantCondition == authv1beta1.TenantDrained:
				return nil, reconcile.Refuse(authv1beta1.ReasonTenantDrained, errors.New("the tenant is drained: it gets nothing"))
			case identity.AccessOf(&tenant.Spec).Revoked:
				return nil, reconcile.Refuse(authv1beta1.ReasonPeeringRevoked, errors.New("the peering was revoked: peer again"))
			}
			return tenant, nil
		}
	}
	return nil, reconcile.Refuse(authv1beta1.ReasonTenantMissing, fmt.Errorf("no accepted Tenant owns the namespace %s", name))
}

// Expect returns the only request that a Renew of this consumer may carry.
func Expect(renew *authv1beta1.Renew, access identity.Access) (identity.Expectation, error) {
	spec, consumer := &renew.Spec, access.Consumer
	if renew.Labels[corev1beta1.OriginIDLabel] != consumer || string(spec.ConsumerClusterID) != consumer {
		return identity.Expectation{}, fmt.Errorf("the Renew must be of cluster %s, which the namespace belongs to", consumer)
	}
	public, err := identity.ParsePublicKey(spec.PublicKey)
	if err != nil {
		return identity.Expectation{}, err
	}
	var want identity.Expectation
	switch {
	case spec.IdentityType == authv1beta1.ControlPlaneIdentityType:
		want = access.TenantExpectation()
	case spec.ResourceSliceRef != nil && spec.ResourceSliceRef.Name != "":
		want = access.SliceExpectation(spec.ResourceSliceRef.Name)
	default:
		return identity.Expectation{}, errors.New("resourceSliceRef must name the slice whose certificate is renewed")
	}
	want.PublicKey = public
	return want, nil
}

// checkSlice makes sure that only the certificate of a slice that the consumer has is renewed.
func (r *Reconciler) checkSlice(ctx context.Context, renew *authv1beta1.Renew, consumer string) error {
	slice, name := &authv1beta1.ResourceSlice{}, renew.Spec.ResourceSliceRef.Name
	err := r.client.Get(ctx, types.NamespacedName{Namespace: renew.Namespace, Name: name}, slice)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ResourceSlice %s/%s: %w", renew.Namespace, name, err)
	}
	if apierrors.IsNotFound(err) || !slicegrant.IsReplicated(slice) || slice.Labels[corev1beta1.OriginIDLabel] != consumer ||
		!conditions.Is(slice.Status.Conditions, authv1beta1.AuthenticationCondition, authv1beta1.Accepted) {
		return reconcile.Refuse(authv1beta1.ReasonInvalidRenew, fmt.Errorf("cluster %s has no accepted ResourceSlice of the given name", consumer))
	}
	return nil
}

func (r *Reconciler) summarize(renew *authv1beta1.Renew, err error) {
	if err != nil && reconcile.Classify(err) == reconcile.Transient {
		return // it is retried at once: nothing that a user should see
	}
	condition := metav1.Condition{
		Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: renew.Generation,
		Reason: authv1beta1.ReasonCertificateRenewed, Message: "a fresh certificate was issued",
	}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reconcile.ReasonOf(err), reconcile.MessageOf(err)
	}
	before := meta.FindStatusCondition(renew.Status.Conditions, corev1beta1.ConditionReady)
	changed := before == nil || before.Reason != condition.Reason
	conditions.SetStandard(&renew.Status.Conditions, condition)
	if changed && err != nil && reconcile.Classify(err) != reconcile.Waiting {
		r.events.Eventf(renew, nil, corev1.EventTypeWarning, condition.Reason, "Answer", "%s", conditions.Bound(condition.Message))
	}
}
