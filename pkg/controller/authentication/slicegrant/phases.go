package slicegrant

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/controller/authentication/tenantnamespace"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// outcome is the state of one of a slice's conditions; without a status the condition stays as it is.
type outcome struct{ status, reason, message string }

// phases find out whose slice it is, then answer it. The error, if any, is about what was not answered.
func (r *Reconciler) phases(ctx context.Context, s *scope) error {
	if err := r.admit(ctx, s); err != nil {
		return err
	}
	// Whoever reads the slice as Liqo v1 wrote it sees that the whole tenant is cordoned; the Tenant alone decides.
	if err := r.mark(ctx, s.slice, authv1beta1.CordonTenantAnnotation, s.tenant.Spec.TenantCondition == authv1beta1.TenantCordoned); err != nil {
		return err
	}
	authErr := r.authenticate(ctx, s)
	return errors.Join(authErr, r.grant(ctx, s))
}

// admit finds the tenant by the namespace and checks that the slice is the tenant's.
func (r *Reconciler) admit(ctx context.Context, s *scope) error {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: s.slice.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", s.slice.Namespace, err)
	}
	tenant, err := r.tenantOf(ctx, namespace)
	if err != nil {
		return err
	}
	consumer := string(tenant.Spec.ClusterID)
	if why := WhyInvalid(s.slice, consumer, r.options.ClusterID); why != "" {
		return s.deny(authv1beta1.ReasonInvalidSlice, why)
	}
	if tenant.Spec.TenantCondition == authv1beta1.TenantDrained {
		return s.deny(authv1beta1.ReasonTenantDrained, "the tenant is drained: it gets nothing")
	}
	if identity.AccessOf(&tenant.Spec).Revoked {
		// What it was granted stays, for the consumer that is peered again.
		return reconcile.Refuse(authv1beta1.ReasonPeeringRevoked, errors.New("the peering was revoked: peer again"))
	}
	s.tenant = tenant
	why, err := r.tooMany(ctx, s)
	if err != nil {
		return err
	}
	if why != "" {
		return s.deny(authv1beta1.ReasonTenantLimit, why)
	}
	quota := &offloadingv1beta1.Quota{}
	err = r.client.Get(ctx, types.NamespacedName{Namespace: s.slice.Namespace, Name: QuotaName(consumer, s.slice.Name)}, quota)
	switch {
	case err == nil:
		s.quota = quota
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading the Quota of ResourceSlice %s/%s: %w", s.slice.Namespace, s.slice.Name, err)
	}
	return nil
}

// deny answers both parts with no.
func (s *scope) deny(reason, message string) error {
	s.authentication = outcome{authv1beta1.Denied, reason, message}
	s.resources = s.authentication
	s.slice.Status.AuthParams = nil
	return reconcile.Refuse(reason, errors.New(message))
}

func (r *Reconciler) tenantOf(ctx context.Context, namespace *corev1.Namespace) (*authv1beta1.Tenant, error) {
	if namespace.Labels[corev1beta1.TenantNamespaceLabel] != "true" || tenantnamespace.WhyNotTenantNamespace(namespace) != "" {
		return nil, reconcile.Refuse(authv1beta1.ReasonTenantMissing, fmt.Errorf("the namespace %s is not a tenant namespace", namespace.Name))
	}
	list := &authv1beta1.TenantList{}
	if err := r.client.List(ctx, list, client.InNamespace(namespace.Name)); err != nil {
		return nil, fmt.Errorf("listing Tenants in Namespace %s: %w", namespace.Name, err)
	}
	for i := range list.Items {
		tenant := &list.Items[i]
		if string(tenant.Spec.ClusterID) == namespace.Labels[corev1beta1.RemoteClusterIDLabel] && tenant.Status.TenantNamespace == namespace.Name {
			return tenant, nil
		}
	}
	return nil, reconcile.Refuse(authv1beta1.ReasonTenantMissing, fmt.Errorf("no accepted Tenant owns the namespace %s", namespace.Name))
}

// authenticate issues the slice's certificate.
func (r *Reconciler) authenticate(ctx context.Context, s *scope) error {
	if len(s.slice.Spec.CSR) == 0 {
		return reconcile.Wait(authv1beta1.ReasonCSRMissing, "waiting for the consumer's certificate signing request", 0)
	}
	endpoint, err := r.options.Advertiser.Endpoint(ctx)
	if err != nil {
		return err
	}
	access, now := identity.AccessOf(&s.tenant.Spec), r.options.Clock.Now()
	if forEarlierPeering(s.slice, access) {
		return reconcile.Wait(authv1beta1.ReasonCSRMissing, "waiting for the consumer's certificate signing request for the present peering", 0)
	}
	want := access.SliceExpectation(s.slice.Name)
	issued, err := r.options.Issuer.Issue(ctx, certificate.Request{
		Namespace: s.slice.Namespace, Record: certificate.SliceRecord(s.slice.Name), RemoteID: access.Consumer,
		CSR: s.slice.Spec.CSR, Want: want, Owner: s.slice, Late: true,
	})
	present := s.slice.Status.AuthParams
	switch {
	case present != nil && certificate.Covered(err, present.SignedCRT, s.slice.Spec.CSR, want.Subject, now):
		s.renewAt = now.Add(certificate.Soon)
		return nil
	case reconcile.Classify(err) == reconcile.Terminal && err != nil:
		s.authentication = outcome{authv1beta1.Denied, authv1beta1.ReasonAuthenticationDenied, err.Error()}
		s.slice.Status.AuthParams = nil
		return err
	case err != nil:
		return err
	}
	s.renewAt = issued.RenewAt
	s.slice.Status.AuthParams = &authv1beta1.AuthParams{
		CA: endpoint.CA, SignedCRT: issued.PEM, APIServer: endpoint.APIServer, ProxyURL: s.tenant.Spec.ProxyURL,
	}
	s.authentication = outcome{authv1beta1.Accepted, authv1beta1.ReasonAuthenticationAccepted, "the certificate was issued"}
	return nil
}

// forEarlierPeering tells whether there is nothing wrong with a slice's CSR but that it was made before the consumer was peered anew.
func forEarlierPeering(slice *authv1beta1.ResourceSlice, present identity.Access) bool {
	earlier := present
	earlier.Peering = identity.RequestPeering(slice.Spec.CSR)
	return earlier.Peering != present.Peering && identity.CheckCSR(slice.Spec.CSR, earlier.SliceExpectation(slice.Name)) == nil
}

// grant decides on the resources, writes the Quota, and copies it into the status.
func (r *Reconciler) grant(ctx context.Context, s *scope) error {
	slice := s.slice
	ours := r.options.Policy.answers(slice.Spec.Class)
	tenantCordoned := s.tenant.Spec.TenantCondition == authv1beta1.TenantCordoned
	accepted := conditions.Is(slice.Status.Conditions, authv1beta1.ResourcesCondition, authv1beta1.Accepted)
	if !ours {
		r.withdraw(client.ObjectKeyFromObject(slice))
	}
	var granted corev1.ResourceList
	var message string
	switch {
	case isDefault(slice.Spec.Class) && !r.options.Policy.DefaultClassEnabled:
		s.resources = outcome{authv1beta1.Denied, authv1beta1.ReasonDefaultClassDisabled,
			"this cluster does not answer slices of the default class: ask for another class"}
		return nil
	case tenantCordoned && !accepted && s.quota == nil:
		s.resources = outcome{authv1beta1.Denied, authv1beta1.ReasonTenantCordoned, "the tenant is cordoned: it gets nothing new"}
		return nil
	case ours:
		var err error
		if granted, message, err = r.bound(ctx, s, tenantCordoned); err != nil {
			return err
		}
	case !accepted:
		return nil // somebody else answers this class, and has not yet
	default:
		granted = slice.Status.Resources
	}
	sliceCordoned, inherited := cordon(slice, s.quota)
	if sliceCordoned && inherited {
		// It was recreated to get rid of it.
		if err := r.mark(ctx, slice, authv1beta1.CordonAnnotation, true); err != nil {
			return err
		}
	}
	s.cordoned = cordonedBy(sliceCordoned, tenantCordoned)
	want := renderQuota(slice, s.tenant, granted, r.options.Policy.LimitsEnforcement, sliceCordoned, tenantCordoned)
	if err := r.writeQuota(ctx, s, want); err != nil {
		return err
	}
	if !ours {
		return nil
	}
	s.tell(message)
	return r.offer(ctx, &slice.Status)
}

// tell shows what is granted, and says so if there is something to say.
func (s *scope) tell(message string) {
	s.slice.Status.Resources, s.slice.Status.ProviderNodes, s.slice.Status.NodeSelector = s.shown, s.nodes, maps.Clone(s.selector)
	if message != "" {
		s.resources = outcome{authv1beta1.Accepted, authv1beta1.ReasonResourcesAccepted, message}
	}
}

// mark puts an annotation that cordons on a slice, or takes it off.
func (r *Reconciler) mark(ctx context.Context, slice *authv1beta1.ResourceSlice, annotation string, cordoned bool) error {
	if authv1beta1.IsSet(slice.Annotations, annotation) == cordoned {
		return nil
	}
	live := &authv1beta1.ResourceSlice{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(slice), live); err != nil {
		return fmt.Errorf("reading ResourceSlice %s/%s: %w", slice.Namespace, slice.Name, err)
	}
	updated := live.DeepCopy()
	if metav1.SetMetaDataAnnotation(&updated.ObjectMeta, annotation, "true"); !cordoned {
		delete(updated.Annotations, annotation)
	}
	if err := r.client.Patch(ctx, updated, client.MergeFrom(live)); err != nil {
		return fmt.Errorf("writing annotation %s of ResourceSlice %s/%s: %w", annotation, slice.Namespace, slice.Name, err)
	}
	slice.Annotations = updated.Annotations
	return nil
}

func (r *Reconciler) writeQuota(ctx context.Context, s *scope, want *offloadingv1beta1.Quota) error {
	if len(s.selector) > 0 {
		want.Annotations[authv1beta1.NodeSelectorAnnotation] = s.selector.String()
	}
	if err := controllerutil.SetControllerReference(s.tenant, want, r.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return fmt.Errorf("setting the owner of Quota %s/%s: %w", want.Namespace, want.Name, err)
	}
	if s.quota != nil {
		want.Spec.LimitsEnforcement = s.quota.Spec.LimitsEnforcement // the administrator may have changed it
	}
	set := func(live client.Object) {
		live.(*offloadingv1beta1.Quota).Spec = want.Spec
		for _, key := range []string{authv1beta1.CordonAnnotation, authv1beta1.NodeSelectorAnnotation} {
			if _, wanted := want.Annotations[key]; !wanted {
				delete(live.GetAnnotations(), key)
			}
		}
	}
	keeper := keep.Keeper{Client: r.client, Reason: authv1beta1.ReasonNotOurs}
	_, err := keep.Known(ctx, keeper, s.quota, keep.Wanted{Object: want, Set: set})
	return err
}
