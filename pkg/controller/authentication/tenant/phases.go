package tenant

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/counting"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

const nonceRetry = 5 * time.Second

// findNamespace checks that the Tenant stands in its own tenant namespace, alone, and that the namespace is labelled.
func (r *Reconciler) findNamespace(ctx context.Context, s *scope) error {
	id, name := string(s.tenant.Spec.ClusterID), s.tenant.Namespace
	s.namespace = &corev1.Namespace{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, s.namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	list := &authv1beta1.TenantList{}
	if err := r.client.List(ctx, list, client.InNamespace(name)); err != nil {
		return fmt.Errorf("listing Tenants in Namespace %s: %w", name, err)
	}
	if why := WhyInvalid(s.tenant, s.namespace, list.Items, r.options.ClusterID); why != "" {
		return reconcile.Refuse(authv1beta1.ReasonInvalidTenant, errors.New(why))
	}
	labels := map[string]string{corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: id}
	if contains(s.namespace.Labels, labels) {
		return nil
	}
	labelled := s.namespace.DeepCopy()
	if labelled.Labels == nil {
		labelled.Labels = map[string]string{}
	}
	for key, value := range labels {
		labelled.Labels[key] = value
	}
	if err := r.client.Patch(ctx, labelled, client.MergeFrom(s.namespace)); err != nil {
		return fmt.Errorf("labelling Namespace %s: %w", name, err)
	}
	s.namespace = labelled
	return nil
}

// WhyInvalid returns what a Tenant contradicts, empty if nothing. Of several Tenants in one namespace the oldest is the one.
func WhyInvalid(tenant *authv1beta1.Tenant, namespace *corev1.Namespace, all []authv1beta1.Tenant, home string) string {
	id := string(tenant.Spec.ClusterID)
	if err := identity.ValidateClusterID(id); err != nil {
		return err.Error()
	}
	if id == home {
		return fmt.Sprintf("the Tenant is for cluster %s, which is this cluster itself", id)
	}
	if want := corev1beta1.TenantNamespacePrefix + id; namespace.Name != want {
		return fmt.Sprintf("the Tenant of cluster %s must be in namespace %s", id, want)
	}
	if label := namespace.Labels[corev1beta1.RemoteClusterIDLabel]; label != "" && label != id {
		return fmt.Sprintf("the namespace %s belongs to cluster %s", namespace.Name, label)
	}
	for i := range all {
		if other := &all[i]; other.UID != tenant.UID && counting.Older(other, tenant) {
			return fmt.Sprintf("the namespace %s has the Tenant %s already", namespace.Name, other.Name)
		}
	}
	return ""
}

func contains(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

// verify checks the handshake, and marks the nonce as used before anything is given for it.
func (r *Reconciler) verify(ctx context.Context, s *scope) error {
	spec := &s.tenant.Spec
	if spec.AuthzPolicy == authv1beta1.TolerateNoHandshake {
		return nil
	}
	nonce, err := r.options.Secrets.Get(ctx, s.tenant.Namespace, authv1beta1.NonceSecret)
	if err != nil {
		return err
	}
	if nonce == nil || nonce.Labels[authv1beta1.NonceLabel] != "true" || len(nonce.Data[authv1beta1.NonceKey]) == 0 {
		return reconcile.Wait(authv1beta1.ReasonNonceMissing, fmt.Sprintf(
			"there is no nonce for cluster %s in Secret %s/%s: peer again", spec.ClusterID, s.tenant.Namespace, authv1beta1.NonceSecret), nonceRetry)
	}
	used := nonce.Annotations[authv1beta1.NonceUsedByAnnotation]
	if used != "" && used != string(s.tenant.UID) {
		return reconcile.Refuse(authv1beta1.ReasonNonceReplayed, errors.New("the nonce was used by an earlier Tenant: peer again"))
	}
	_, err = identity.VerifyTenant(identity.TenantProof{
		ConsumerID: string(spec.ClusterID), ProviderID: r.options.ClusterID, Nonce: nonce.Data[authv1beta1.NonceKey],
		PublicKey: spec.PublicKey, CSR: spec.CSR, Signature: spec.Signature,
	})
	if err != nil {
		return reconcile.Refuse(verifyReason(err), err)
	}
	if used != "" {
		return nil
	}
	nonce = nonce.DeepCopy()
	if nonce.Annotations == nil {
		nonce.Annotations = map[string]string{}
	}
	nonce.Annotations[authv1beta1.NonceUsedByAnnotation] = string(s.tenant.UID)
	return r.options.Secrets.Update(ctx, nonce)
}

// verifyReason tells a wrong signature from a wrong CSR.
func verifyReason(err error) string {
	switch reason, _ := identity.ReasonOf(err); reason {
	case identity.ReasonSignature, identity.ReasonNonce, identity.ReasonKey:
		return authv1beta1.ReasonSignatureVerificationFailed
	case identity.ReasonClusterID:
		return authv1beta1.ReasonInvalidTenant
	}
	return authv1beta1.ReasonInvalidCSR
}

// revoke takes the rights of a peering that was revoked, before anything else is looked at. What the tenant has here stays.
func (r *Reconciler) revoke(ctx context.Context, s *scope) error {
	if !identity.AccessOf(&s.tenant.Spec).Revoked {
		return nil
	}
	if err := r.bind(ctx, s); err != nil {
		return err
	}
	s.tenant.Status.AuthParams = nil
	meta.RemoveStatusCondition(&s.tenant.Status.Conditions, authv1beta1.ConsumerSeenCondition)
	return reconcile.Refuse(authv1beta1.ReasonPeeringRevoked, errors.New(
		"the certificates of the consumer have no rights here any more: peer again, which makes it a new key"))
}

// keeper keeps objects that are in a cache.
func (r *Reconciler) keeper() keep.Keeper {
	return keep.Keeper{Client: r.client, Live: r.live, Reason: authv1beta1.ReasonNotOurs}
}

// bind gives the tenant's certificates their rights in the tenant namespace.
func (r *Reconciler) bind(ctx context.Context, s *scope) error {
	want := renderBinding(s.tenant)
	if err := controllerutil.SetControllerReference(s.tenant, want, r.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return fmt.Errorf("setting the owner of RoleBinding %s/%s: %w", want.Namespace, want.Name, err)
	}
	return r.keeper().All(ctx, want)
}

func renderBinding(tenant *authv1beta1.Tenant) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tenant.Namespace, Name: offloadingv1beta1.TenantClusterRole,
			Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: string(tenant.Spec.ClusterID)},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: offloadingv1beta1.TenantClusterRole},
		Subjects: identity.AccessOf(&tenant.Spec).TenantSubjects(),
	}
}

// issue puts certificate and endpoint into the status.
func (r *Reconciler) issue(ctx context.Context, s *scope) error {
	tenant := s.tenant
	tenant.Status.TenantNamespace = tenant.Namespace
	endpoint, err := r.options.Advertiser.Endpoint(ctx)
	if err != nil {
		return err
	}
	if len(tenant.Spec.CSR) == 0 {
		return reconcile.Terminate(authv1beta1.ReasonCSRMissing,
			errors.New("the Tenant has no csr, so no certificate can be issued: delete it and peer with 'liqoctl peer', which fills it in"))
	}
	access, csr := identity.AccessOf(&tenant.Spec), tenant.Spec.CSR
	want := access.TenantExpectation()
	issued, err := r.options.Issuer.Issue(ctx, certificate.Request{
		Namespace: tenant.Namespace, Record: certificate.TenantRecord(), RemoteID: string(tenant.Spec.ClusterID),
		Want: want, Owner: tenant,
		// A consumer that was away for longer than its certificate lived finds one for its present key here.
		Choose: func(recorded []byte) ([]byte, error) {
			csr = access.PresentRequest(recorded, tenant.Spec.CSR)
			return csr, nil
		},
		Late: access.Peering != "",
	})
	if present := tenant.Status.AuthParams; present != nil && certificate.Covered(err, present.SignedCRT, csr, want.Subject, r.options.Clock.Now()) {
		s.renewAt = r.options.Clock.Now().Add(certificate.Soon)
		return nil
	}
	if err != nil {
		return err
	}
	s.renewAt = issued.RenewAt
	tenant.Status.AuthParams = &authv1beta1.AuthParams{
		CA: endpoint.CA, SignedCRT: issued.PEM, APIServer: endpoint.APIServer, ProxyURL: tenant.Spec.ProxyURL,
	}
	return r.see(ctx, s, issued.Demand)
}

// confirm asks the API server itself whether a tenant that is to be deleted or drained is: a cache of the past may show an earlier one, or
// that it once was. A deletion is not taken back.
func (r *Reconciler) confirm(ctx context.Context, tenant *authv1beta1.Tenant) error {
	deleted := !tenant.DeletionTimestamp.IsZero()
	if !deleted && tenant.Spec.TenantCondition != authv1beta1.TenantDrained {
		return nil
	}
	present := &authv1beta1.Tenant{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(tenant), present)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Tenant %s/%s: %w", tenant.Namespace, tenant.Name, err)
	}
	if err != nil || present.UID != tenant.UID || !deleted && present.Spec.TenantCondition != authv1beta1.TenantDrained {
		return reconcile.Wait(authv1beta1.ReasonTenantMissing,
			fmt.Sprintf("waiting for the cache to show what became of Tenant %s/%s", tenant.Namespace, tenant.Name), time.Second)
	}
	return nil
}

// drain takes the tenant's rights, then what it was granted. The twins of its namespaces stay, with its data and without its pods: its
// NamespaceMaps are what they hang on.
func (r *Reconciler) drain(ctx context.Context, tenant *authv1beta1.Tenant) error {
	if err := r.keeper().Remove(ctx, renderBinding(tenant)); err != nil {
		return fmt.Errorf("draining Tenant %s/%s: %w", tenant.Namespace, tenant.Name, err)
	}
	tenant.Status.AuthParams = nil
	meta.RemoveStatusCondition(&tenant.Status.Conditions, authv1beta1.ConsumerSeenCondition)
	return r.forget(ctx, tenant, &authv1beta1.ResourceSliceList{}, &authv1beta1.RenewList{})
}

// forget deletes what the tenant sent. What depends on those objects goes with them.
func (r *Reconciler) forget(ctx context.Context, tenant *authv1beta1.Tenant, lists ...client.ObjectList) error {
	selector := []client.ListOption{
		client.InNamespace(tenant.Namespace),
		client.MatchingLabels{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: string(tenant.Spec.ClusterID)},
	}
	for _, list := range lists {
		if err := r.deleteAll(ctx, list, selector); err != nil {
			return fmt.Errorf("draining Tenant %s/%s: %w", tenant.Namespace, tenant.Name, err)
		}
	}
	return nil
}

func (r *Reconciler) deleteAll(ctx context.Context, list client.ObjectList, selector []client.ListOption) error {
	if err := r.client.List(ctx, list, selector...); err != nil {
		return err
	}
	return eachItem(list, func(object client.Object) error {
		if !object.GetDeletionTimestamp().IsZero() {
			return nil
		}
		return client.IgnoreNotFound(r.client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())}))
	})
}

// remove ends a tenant: its rights and everything that it sent go, and the nonce is replaced so that a signature that was
// made for the old one is worth nothing.
func (r *Reconciler) remove(ctx context.Context, tenant *authv1beta1.Tenant) error {
	if !controllerutil.ContainsFinalizer(tenant, authv1beta1.TenantFinalizer) {
		return nil
	}
	others := &authv1beta1.TenantList{}
	if err := r.client.List(ctx, others, client.InNamespace(tenant.Namespace)); err != nil {
		return fmt.Errorf("listing Tenants in Namespace %s: %w", tenant.Namespace, err)
	}
	if len(others.Items) == 1 {
		if err := r.drain(ctx, tenant.DeepCopy()); err != nil {
			return err
		}
		if err := r.forget(ctx, tenant, &offloadingv1beta1.NamespaceMapList{}); err != nil {
			return err
		}
		if err := r.forgetNonce(ctx, tenant); err != nil {
			return err
		}
		if err := r.unfence(ctx, tenant); err != nil {
			return err
		}
	}
	updated := tenant.DeepCopy()
	controllerutil.RemoveFinalizer(updated, authv1beta1.TenantFinalizer)
	if err := r.client.Update(ctx, updated); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of Tenant %s/%s: %w", tenant.Namespace, tenant.Name, err)
	}
	return nil
}

// forgetNonce takes back what a tenant's signature was made for. In a namespace that is being deleted the nonce goes by itself, and the
// right to Secrets may have gone before it: there is nothing to be done, and nothing that could be.
func (r *Reconciler) forgetNonce(ctx context.Context, tenant *authv1beta1.Tenant) error {
	namespace := &corev1.Namespace{}
	if err := r.live.Get(ctx, types.NamespacedName{Name: tenant.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", tenant.Namespace, err)
	}
	if !namespace.DeletionTimestamp.IsZero() {
		return nil
	}
	nonce, err := r.options.Secrets.Get(ctx, tenant.Namespace, authv1beta1.NonceSecret)
	if err != nil || nonce == nil || nonce.Annotations[authv1beta1.NonceUsedByAnnotation] != string(tenant.UID) {
		return err
	}
	nonce = nonce.DeepCopy()
	delete(nonce.Annotations, authv1beta1.NonceUsedByAnnotation)
	delete(nonce.Data, authv1beta1.NonceKey)
	if err := r.options.Secrets.Update(ctx, nonce); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
