package nonce

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/tenantnamespace"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// Options of the controller.
type Options struct {
	// ClusterID of this cluster.
	ClusterID string
	// Algorithm of new keys; empty means Ed25519.
	Algorithm identity.Algorithm
	// Watch follows the Secrets of tenant namespaces.
	Watch *secrets.Watch
	// Secrets reads and writes them.
	Secrets secrets.Store
}

// Reconciler fills nonces and signs them.
type Reconciler struct {
	client  client.Client
	options Options
	events  events.EventRecorder
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the nonce controller: %w", err)
	}
	if o.Algorithm == "" {
		o.Algorithm = identity.AlgorithmEd25519
	}
	r := &Reconciler{client: mgr.GetClient(), options: o, events: mgr.GetEventRecorder("liqo-nonce")}
	return ctrl.NewControllerManagedBy(mgr).Named("nonce").
		WatchesRawSource(o.Watch.Source(interesting)).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// interesting picks nonces; a key Secret that changed concerns the signed nonce that it goes with.
func interesting(ctx context.Context, secret *metav1.PartialObjectMetadata) []ctrlreconcile.Request {
	var requests []ctrlreconcile.Request
	if secret.Labels[authv1beta1.NonceLabel] == "true" || secret.Labels[authv1beta1.SignedNonceLabel] == "true" {
		requests = append(requests, ctrlreconcile.Request{NamespacedName: types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}})
	}
	return append(requests, secrets.Owner("Secret")(ctx, secret)...)
}

// Reconcile fills or signs the nonce in one Secret.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	secret, err := r.options.Secrets.Get(ctx, request.Namespace, request.Name)
	if err != nil || secret == nil || !secret.DeletionTimestamp.IsZero() {
		return reconcile.Result(err)
	}
	remoteID, err := r.remote(ctx, request.Namespace)
	if err != nil || remoteID == "" {
		return reconcile.Result(err)
	}
	switch {
	case secret.Labels[authv1beta1.NonceLabel] == "true":
		err = r.fill(ctx, secret)
	case secret.Labels[authv1beta1.SignedNonceLabel] == "true":
		err = r.sign(ctx, secret, remoteID)
	}
	if err != nil {
		r.report(secret, err)
	}
	return reconcile.Result(err)
}

// remote is the cluster that a tenant namespace belongs to; empty if it is none.
func (r *Reconciler) remote(ctx context.Context, name string) (string, error) {
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	if namespace.Labels[corev1beta1.TenantNamespaceLabel] != "true" || tenantnamespace.WhyNotTenantNamespace(namespace) != "" {
		return "", nil
	}
	return namespace.Labels[corev1beta1.RemoteClusterIDLabel], nil
}

// fill gives a nonce Secret its nonce, once.
func (r *Reconciler) fill(ctx context.Context, secret *corev1.Secret) error {
	if len(secret.Data[authv1beta1.NonceKey]) != 0 {
		// It was made by an earlier release.
		if withPeeringGroups(secret) {
			return nil
		}
		secret = secret.DeepCopy()
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, authv1beta1.PeeringGroupsAnnotation, "true")
		return r.options.Secrets.Update(ctx, secret)
	}
	nonce, err := identity.NewNonce(rand.Reader)
	if err != nil {
		return err
	}
	secret = secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[authv1beta1.NonceKey] = nonce
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, authv1beta1.PeeringGroupsAnnotation, "true")
	if err := r.options.Secrets.Update(ctx, secret); err != nil {
		return err
	}
	r.events.Eventf(secret, nil, corev1.EventTypeNormal, authv1beta1.ReasonNonceGenerated, "Generate", "Generated a nonce")
	return nil
}

// withPeeringGroups tells whether the provider that made a nonce gives rights to the certificates of a peering.
func withPeeringGroups(nonce *corev1.Secret) bool {
	return nonce.Annotations[authv1beta1.PeeringGroupsAnnotation] == "true"
}

// sign answers a provider's nonce with our key for that provider.
func (r *Reconciler) sign(ctx context.Context, secret *corev1.Secret, providerID string) error {
	nonce := secret.Data[authv1beta1.NonceKey]
	if len(nonce) == 0 {
		return nil
	}
	if err := identity.CheckNonce(nonce); err != nil {
		return reconcile.Terminate(authv1beta1.ReasonSignatureVerificationFailed, err)
	}
	name := authv1beta1.ControlPlaneIdentityPrefix + providerID
	keys, err := r.options.Secrets.EnsureKeys(ctx, secret.Namespace, name, providerID, r.options.Algorithm, secret)
	if err != nil {
		return err
	}
	if r.answered(secret, keys.Current, providerID) {
		return nil
	}
	answer, err := Answer(keys.Current, nonce, r.options.ClusterID, providerID, withPeeringGroups(secret))
	if err != nil {
		return err
	}
	secret = secret.DeepCopy()
	for key, value := range answer {
		secret.Data[key] = value
	}
	if err := r.options.Secrets.Update(ctx, secret); err != nil {
		return err
	}
	r.events.Eventf(secret, nil, corev1.EventTypeNormal, authv1beta1.ReasonNonceSigned, "Sign", "Signed the nonce of cluster %s", providerID)
	return nil
}

// Answer makes what goes beside a provider's nonce: signature, public key and certificate signing request, which names the peering if the
// provider knows of that.
func Answer(key identity.KeyPair, nonce []byte, consumerID, providerID string, peeringGroups bool) (map[string][]byte, error) {
	signature, err := identity.SignNonce(key.Signer(), nonce, consumerID, providerID)
	if err != nil {
		return nil, err
	}
	public, err := key.PublicPEM()
	if err != nil {
		return nil, err
	}
	subject := identity.TenantSubject(consumerID)
	if peeringGroups {
		peering, err := identity.PeeringID(key.Public())
		if err != nil {
			return nil, err
		}
		subject = subject.InPeering(peering)
	}
	csr, err := identity.NewCSR(key.Signer(), subject)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{authv1beta1.SignedNonceKey: signature, authv1beta1.PublicKeyKey: public, authv1beta1.CSRKey: csr}, nil
}

// answered tells whether the Secret holds a valid answer made with the present key.
func (r *Reconciler) answered(secret *corev1.Secret, key identity.KeyPair, providerID string) bool {
	public, err := key.PublicPEM()
	named := identity.RequestPeering(secret.Data[authv1beta1.CSRKey]) != ""
	if err != nil || !bytes.Equal(public, secret.Data[authv1beta1.PublicKeyKey]) || named != withPeeringGroups(secret) {
		return false
	}
	_, err = identity.VerifyTenant(identity.TenantProof{
		ConsumerID: r.options.ClusterID, ProviderID: providerID, Nonce: secret.Data[authv1beta1.NonceKey],
		PublicKey: public, CSR: secret.Data[authv1beta1.CSRKey], Signature: secret.Data[authv1beta1.SignedNonceKey],
	})
	return err == nil
}

func (r *Reconciler) report(secret *corev1.Secret, err error) {
	if class := reconcile.Classify(err); class == reconcile.Terminal || class == reconcile.Refused {
		r.events.Eventf(secret, nil, corev1.EventTypeWarning, reconcile.ReasonOf(err), "Reconcile", "%s", err)
	}
}
