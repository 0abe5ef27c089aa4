package authenticate

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/identity"
)

// dropSpentKey has the consumer make a new key if the provider does not take the present one any more, and tells whether it did.
func (h *handshake) dropSpentKey(ctx context.Context, task progress.Task) (bool, error) {
	spent, err := h.spentKey(ctx)
	if err != nil || !spent {
		return false, err
	}
	// Nothing but its name and UID is read: no private key passes through this process.
	key := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: h.pair.ConsumerNamespace(), Name: authv1beta1.KeySecretPrefix + authv1beta1.ControlPlaneIdentityPrefix + h.pair.ProviderID,
	}}
	key.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if found, err := h.pair.Consumer.Get(ctx, key); err != nil || !found {
		return err == nil, err
	}
	h.changed = true
	dropped := key.UID
	if err := h.pair.Consumer.Remove(ctx, key); err != nil {
		return false, err
	}
	return true, await.Until(ctx, task, "the key that is not taken any more to be gone", func(ctx context.Context) (bool, string, error) {
		found, err := h.pair.Consumer.Get(ctx, key)
		return !found || key.UID != dropped, "it is being deleted", err
	})
}

// spentKey tells whether a key that the consumer has is one of an earlier peering; whether the provider revoked the peering; or whether the
// consumer has its first key back, from a backup, of which the provider knows a successor.
func (h *handshake) spentKey(ctx context.Context) (bool, error) {
	tenant := h.newTenant()
	found, err := h.pair.Provider.Get(ctx, tenant)
	if err != nil {
		return false, err
	}
	signed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.pair.ConsumerNamespace(), Name: authv1beta1.SignedNonceSecret}}
	answered, err := h.pair.Consumer.Get(ctx, signed)
	if err != nil {
		return false, err
	}
	if !found {
		// A handshake that was interrupted goes on with its key; otherwise a peering that has ended would have its certificates back.
		earlier, err := h.pair.Consumer.Get(ctx, h.newIdentity())
		return earlier || !answered || !bytes.Equal(signed.Data[authv1beta1.NonceKey], h.nonceData), err
	}
	access := identity.AccessOf(&tenant.Spec)
	if access.Revoked || !answered {
		return access.Revoked, nil
	}
	public, err := identity.ParsePublicKey(signed.Data[authv1beta1.PublicKeyKey])
	if err != nil {
		return false, nil //nolint:nilerr // it was not answered yet
	}
	peering, err := identity.PeeringID(public)
	return peering == access.Peering && tenantAccepted(tenant) && !certifiedFor(tenant, public), err
}

// inReserve tells whether the provider has a certificate ready for the consumer's present key, in the present peering: then the consumer
// needs no new one, although its own certificate may have expired meanwhile.
func (h *handshake) inReserve(tenant *authv1beta1.Tenant) bool {
	if !h.proxied(tenant) {
		return false
	}
	named := identity.RequestPeering(tenant.Spec.CSR) != ""
	return named == h.peeringGroups && h.certified(tenant)
}

// certified tells whether the Tenant holds a certificate for the key that the consumer answered with. Its dates are left to the
// clusters: the clock of the user's machine is no measure.
func (h *handshake) certified(tenant *authv1beta1.Tenant) bool {
	public, err := identity.ParsePublicKey(h.answer.Data[authv1beta1.PublicKeyKey])
	return tenantAccepted(tenant) && (tenant.Status.AuthParams.AwsConfig != nil || err == nil && certifiedFor(tenant, public))
}

func certifiedFor(tenant *authv1beta1.Tenant, public crypto.PublicKey) bool {
	block, _ := pem.Decode(tenant.Status.AuthParams.SignedCRT)
	if block == nil {
		return false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return err == nil && identity.SamePublicKey(public, certificate.PublicKey)
}
