package identity

import "crypto"

// TenantProof is what a consumer sends to become a tenant, together with what the provider knows itself.
type TenantProof struct {
	// ConsumerID is the cluster that the Tenant claims to be.
	ConsumerID string
	// ProviderID is this cluster.
	ProviderID string
	// Nonce is the one that this cluster made for ConsumerID; never one taken from the peer.
	Nonce []byte
	// PublicKey is the peer's key: PEM (PKIX) or the raw bytes of an Ed25519 key.
	PublicKey []byte
	// CSR is the peer's certificate signing request, in PEM.
	CSR []byte
	// Signature is the peer's signature of the nonce.
	Signature []byte
}

// VerifyTenant returns the peer's key if the proof is complete: an allowed key, the nonce signed with it for this pair of
// clusters, and a CSR for the same key that asks for exactly the tenant's subject, with or without the group of this peering.
// Otherwise the error is a *Refusal.
func VerifyTenant(proof TenantProof) (crypto.PublicKey, error) {
	if err := ValidateClusterID(proof.ConsumerID); err != nil {
		return nil, err
	}
	public, err := ParsePublicKey(proof.PublicKey)
	if err != nil {
		return nil, err
	}
	if err := VerifyNonce(public, proof.Nonce, proof.Signature, proof.ConsumerID, proof.ProviderID); err != nil {
		return nil, err
	}
	want := TenantExpectation(proof.ConsumerID)
	if RequestPeering(proof.CSR) != "" {
		peering, err := PeeringID(public)
		if err != nil {
			return nil, err
		}
		want.Subject = want.InPeering(peering)
	}
	want.PublicKey = public
	if err := CheckCSR(proof.CSR, want); err != nil {
		return nil, err
	}
	return public, nil
}
