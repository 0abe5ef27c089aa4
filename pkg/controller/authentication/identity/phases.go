package identity

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// KeyOwner is the name under which the key of an Identity is stored: that of the Identity as we would have named it.
func KeyOwner(object *authv1beta1.Identity) string {
	if object.Spec.Type == authv1beta1.ControlPlaneIdentityType {
		return authv1beta1.ControlPlaneIdentityPrefix + string(object.Spec.ClusterID)
	}
	return authv1beta1.ResourceSliceIdentityPrefix + object.Labels[authv1beta1.ResourceSliceNameLabel]
}

// Subject is who we must be in the certificate of an Identity. To which peering it belongs is told by the certificate that it has.
func Subject(object *authv1beta1.Identity, home string) identity.Subject {
	peering := identity.CertificatePeering(object.Spec.AuthParams.SignedCRT)
	if object.Spec.Type == authv1beta1.ControlPlaneIdentityType {
		return identity.TenantSubject(home).InPeering(peering)
	}
	return identity.SliceSubject(home, object.Labels[authv1beta1.ResourceSliceNameLabel]).InPeering(peering)
}

// ControlPlane finds the Identity among those of a tenant namespace with which this cluster's control plane works at a provider; nil if there
// is none.
func ControlPlane(ctx context.Context, reader client.Reader, namespace, provider string) (*authv1beta1.Identity, error) {
	list := &authv1beta1.IdentityList{}
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Identities in Namespace %s: %w", namespace, err)
	}
	for i := range list.Items {
		if spec := &list.Items[i].Spec; spec.Type == authv1beta1.ControlPlaneIdentityType && string(spec.ClusterID) == provider {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// Endpoint is the endpoint that an Identity pins.
func Endpoint(params *authv1beta1.AuthParams) identity.Endpoint {
	return identity.Endpoint{APIServer: params.APIServer, CA: params.CA, ProxyURL: ptr.Deref(params.ProxyURL, "")}
}

// Check returns why an Identity cannot be used, as an error with its class and reason; nil if it can.
func Check(object *authv1beta1.Identity, key identity.KeyPair, home string, policy identity.EndpointPolicy, now time.Time) error {
	params := &object.Spec.AuthParams
	if err := policy.CheckAPIServer(params.APIServer); err != nil {
		return reconcile.Terminate(authv1beta1.ReasonInvalidEndpoint, fmt.Errorf("checking the provider's API server: %w", err))
	}
	if proxy := ptr.Deref(params.ProxyURL, ""); proxy != "" {
		if err := policy.CheckProxy(proxy); err != nil {
			return reconcile.Terminate(authv1beta1.ReasonInvalidEndpoint, fmt.Errorf("checking the proxy to the provider: %w", err))
		}
	}
	if len(params.CA) != 0 {
		if err := identity.CheckCA(params.CA); err != nil {
			return reconcile.Terminate(authv1beta1.ReasonInvalidEndpoint, err)
		}
	}
	if object.Spec.Type == authv1beta1.ResourceSliceIdentityType && object.Labels[authv1beta1.ResourceSliceNameLabel] == "" {
		return reconcile.Terminate(authv1beta1.ReasonCertificateMismatch, fmt.Errorf(
			"the label %s does not name the ResourceSlice of the Identity", authv1beta1.ResourceSliceNameLabel))
	}
	if err := identity.CheckCertificate(params.SignedCRT, key.Public(), Subject(object, home), now); err != nil {
		return reconcile.Refuse(authv1beta1.ReasonCertificateMismatch, err)
	}
	return nil
}

// render checks the Identity and writes the kubeconfig Secret if it differs.
func (r *Reconciler) render(ctx context.Context, object *authv1beta1.Identity) error {
	keys, err := r.options.Secrets.Keys(ctx, object.Namespace, KeyOwner(object))
	if err != nil {
		return err
	}
	if keys == nil {
		return reconcile.Wait(authv1beta1.ReasonKeyMissing, "the private key of the identity is missing: peer again", time.Minute)
	}
	if err := Check(object, keys.Current, r.options.ClusterID, r.options.Endpoints, r.options.Clock.Now()); err != nil {
		return err
	}
	if err := r.options.Secrets.Own(ctx, keys, object); err != nil {
		return err
	}
	want, err := r.secret(object, keys.Current)
	if err != nil {
		return err
	}
	ours := func(live client.Object) bool {
		return metav1.IsControlledBy(live, object) || metav1.GetControllerOf(live) == nil && keep.Managed(live)
	}
	set := func(live client.Object) { live.(*corev1.Secret).Data = want.Data }
	if err := r.options.Secrets.Keep(ctx, keep.Wanted{Object: want, Set: set, Ours: ours}); err != nil {
		return err
	}
	object.Status.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: want.Name}
	return nil
}

func (r *Reconciler) secret(object *authv1beta1.Identity, key identity.KeyPair) (*corev1.Secret, error) {
	remoteID, namespace := string(object.Spec.ClusterID), ""
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: authv1beta1.KubeconfigSecretPrefix + object.Name,
			Labels: map[string]string{
				corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: remoteID,
				authv1beta1.IdentityTypeLabel: string(object.Spec.Type),
			},
		},
		Type: corev1.SecretTypeOpaque,
	}
	if object.Spec.Type == authv1beta1.ControlPlaneIdentityType {
		namespace = ptr.Deref(object.Spec.Namespace, "")
		secret.Annotations = map[string]string{authv1beta1.RemoteTenantNamespaceAnnotation: namespace}
	} else {
		secret.Labels[authv1beta1.ResourceSliceNameLabel] = object.Labels[authv1beta1.ResourceSliceNameLabel]
	}
	kubeconfig, err := identity.Kubeconfig(identity.KubeconfigParams{
		Endpoint: Endpoint(&object.Spec.AuthParams), ClientCertificate: object.Spec.AuthParams.SignedCRT, Key: key,
		Namespace: namespace, Cluster: remoteID, User: Subject(object, r.options.ClusterID).CommonName,
	})
	if err != nil {
		return nil, reconcile.Terminate(authv1beta1.ReasonCertificateMismatch, fmt.Errorf("rendering the kubeconfig: %w", err))
	}
	secret.Data = map[string][]byte{authv1beta1.KubeconfigKey: kubeconfig}
	err = controllerutil.SetControllerReference(object, secret, r.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false))
	if err != nil {
		return nil, fmt.Errorf("setting the owner of Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return secret, nil
}
