package identity

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
)

const renewalDomain = "liqo.io/renewal/v1"

// SignRenewal signs the CSR of a renewal with the key of the certificate that is to be replaced, for this pair of clusters alone.
func SignRenewal(key crypto.Signer, csr []byte, consumerID, providerID string) ([]byte, error) {
	if key == nil {
		return nil, errors.New("signing a renewal: no key was given")
	}
	signature, err := signMessage(key, signedMessage(renewalDomain, csr, consumerID, providerID))
	if err != nil {
		return nil, fmt.Errorf("signing a renewal: %w", err)
	}
	return signature, nil
}

// PresentRequest is the CSR of the control plane's present certificate: the one that was signed last, if it belongs to the present peering;
// else the one of the Tenant.
func (a Access) PresentRequest(recorded, introduced []byte) []byte {
	if a.Peering != "" && len(recorded) != 0 && CheckCSR(recorded, a.TenantExpectation()) == nil {
		return recorded
	}
	return introduced
}

// CheckSuccession returns nil if a renewal may replace the certificate of the present CSR: it is for the same key, or SignRenewal signed it
// with that key. So a copied certificate ends with its key, although it still has rights when the next one is asked for. Otherwise the error
// is a *Refusal.
func CheckSuccession(present, next, signature []byte, consumerID, providerID string) error {
	if bytes.Equal(present, next) {
		return nil
	}
	holder, err := RequestKey(present)
	if err != nil {
		return err
	}
	public, err := RequestKey(next)
	if err != nil {
		return err
	}
	if SamePublicKey(holder, public) {
		return nil
	}
	if len(signature) == 0 || len(signature) > maxSignature || !signed(holder, signedMessage(renewalDomain, next, consumerID, providerID), signature) {
		return refuse(ReasonSignature, "the renewal is not signed with the key of the certificate that was issued last: if cluster %s did not lose that key, "+
			"somebody else renewed its certificate, and the peering should be revoked", quote(consumerID))
	}
	return nil
}
