package tenant

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/placement"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=tenants,verbs=get;list;watch
// +kubebuilder:webhook:path=/mutate/tenants,mutating=true,failurePolicy=fail,sideEffects=None,groups=authentication.liqo.io,resources=tenants,verbs=create;update,versions=v1beta1,name=tenant.mutate.liqo.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate/tenants,mutating=false,failurePolicy=fail,sideEffects=None,groups=authentication.liqo.io,resources=tenants,verbs=create;update,versions=v1beta1,name=tenant.validate.liqo.io,admissionReviewVersions=v1

// The paths that the API server calls.
const (
	MutatePath   = "/mutate/tenants"
	ValidatePath = "/validate/tenants"
)

// Options of the webhook.
type Options struct {
	// RequireSuffix says that tenants' namespaces are told apart by the ID that their names end in.
	RequireSuffix bool
}

// Register serves the webhook.
func Register(mgr ctrl.Manager, o Options) error {
	server, scheme := mgr.GetWebhookServer(), mgr.GetScheme()
	server.Register(MutatePath, admission.WithDefaulter(scheme, defaulter{}))
	server.Register(ValidatePath, admission.WithValidator(scheme, validator{reader: mgr.GetClient(), live: mgr.GetAPIReader(), options: o}))
	return nil
}

type defaulter struct{}

// Default labels a Tenant with its cluster.
func (defaulter) Default(_ context.Context, tenant *authv1beta1.Tenant) error {
	metav1.SetMetaDataLabel(&tenant.ObjectMeta, corev1beta1.RemoteClusterIDLabel, string(tenant.Spec.ClusterID))
	return nil
}

type validator struct {
	reader client.Reader
	// live reads the Namespace, which may have been created a moment before its Tenant.
	live    client.Reader
	options Options
}

// ValidateCreate implements admission.Validator.
func (v validator) ValidateCreate(ctx context.Context, tenant *authv1beta1.Tenant) (admission.Warnings, error) {
	return nil, v.validate(ctx, tenant, v.options.RequireSuffix)
}

// ValidateUpdate implements admission.Validator. A Tenant that is being deleted may always let its finalizers go.
func (v validator) ValidateUpdate(ctx context.Context, _, tenant *authv1beta1.Tenant) (admission.Warnings, error) {
	if !tenant.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	// A tenant that was accepted before stays one: its namespaces are told from those of others by the longest ID.
	return nil, v.validate(ctx, tenant, false)
}

// ValidateDelete implements admission.Validator.
func (validator) ValidateDelete(context.Context, *authv1beta1.Tenant) (admission.Warnings, error) {
	return nil, nil
}

func (v validator) validate(ctx context.Context, tenant *authv1beta1.Tenant, requireSuffix bool) error {
	namespace := &corev1.Namespace{}
	if err := v.live.Get(ctx, types.NamespacedName{Name: tenant.Namespace}, namespace); err != nil {
		return fmt.Errorf("reading Namespace %s: %w", tenant.Namespace, err)
	}
	list := &authv1beta1.TenantList{}
	if err := v.reader.List(ctx, list); err != nil {
		return fmt.Errorf("listing Tenants: %w", err)
	}
	why := WhyRefused(tenant, namespace, list.Items)
	if why == "" && requireSuffix {
		why = WhyMistaken(tenant, list.Items)
	}
	if why != "" {
		return apierrors.NewForbidden(authv1beta1.GroupVersion.WithResource("tenants").GroupResource(), tenant.Name, fmt.Errorf("%s", why))
	}
	return nil
}

// WhyRefused returns why a Tenant is not admitted, empty if it is.
func WhyRefused(tenant *authv1beta1.Tenant, namespace *corev1.Namespace, all []authv1beta1.Tenant) string {
	id := string(tenant.Spec.ClusterID)
	if err := identity.ValidateClusterID(id); err != nil {
		return err.Error()
	}
	if spec := &tenant.Spec; spec.AuthzPolicy != authv1beta1.TolerateNoHandshake &&
		(len(spec.PublicKey) == 0 || len(spec.CSR) == 0 || len(spec.Signature) == 0) {
		return "publicKey, csr and signature are required with authzPolicy KeysExchange: peer with 'liqoctl peer' or 'liqoctl authenticate', which fill them in"
	}
	if namespace.Labels[corev1beta1.TenantNamespaceLabel] != "true" {
		return fmt.Sprintf("the namespace %s is not a tenant namespace: create the Tenant in %s%s, labelled %s=true and %s=%s",
			namespace.Name, corev1beta1.TenantNamespacePrefix, id, corev1beta1.TenantNamespaceLabel, corev1beta1.RemoteClusterIDLabel, id)
	}
	if label := namespace.Labels[corev1beta1.RemoteClusterIDLabel]; label != id {
		return fmt.Sprintf("the namespace %s belongs to cluster %q, but the Tenant is of cluster %q: create it in the namespace of its own cluster",
			namespace.Name, label, id)
	}
	for i := range all {
		other := &all[i]
		same := other.Namespace == tenant.Namespace && other.Name == tenant.Name
		switch {
		case same:
		case other.Namespace == tenant.Namespace:
			return fmt.Sprintf("the namespace %s has the Tenant %s already: there can be only one", tenant.Namespace, other.Name)
		case other.Name == tenant.Name:
			return fmt.Sprintf("there is a Tenant named %s in namespace %s already: choose another name", other.Name, other.Namespace)
		}
	}
	return ""
}

// WhyMistaken returns why a Tenant is not admitted where namespaces are told apart by the ID that their names end in, empty if it is: the
// one's ID ends in the other's, so that whoever came first may have names that the other's namespaces get by default.
func WhyMistaken(tenant *authv1beta1.Tenant, all []authv1beta1.Tenant) string {
	for i := range all {
		id, other := tenant.Spec.ClusterID, all[i].Spec.ClusterID
		if placement.SuffixOf(id, other) || placement.SuffixOf(other, id) {
			return fmt.Sprintf("the cluster IDs %s and %s of two tenants cannot be told apart at the end of a namespace's name: unpeer the other one, "+
				"or install this cluster with offloading.twinNamespaces.requireSuffix=false", id, other)
		}
	}
	return ""
}
