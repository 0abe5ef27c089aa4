package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha256" // registers the hashes of signatures
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// NonceBytes is the number of random bytes in a nonce.
	NonceBytes = 64

	nonceDomain  = "liqo.io/nonce/v1"
	maxSignature = 1 << 10
)

// NewNonce makes a nonce: the base64 text of 64 bytes of random.
func NewNonce(random io.Reader) ([]byte, error) {
	raw := make([]byte, NonceBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return nil, fmt.Errorf("making a nonce: %w", err)
	}
	return base64.StdEncoding.AppendEncode(nil, raw), nil
}

// CheckNonce returns nil if nonce has the form that NewNonce gives it, else a *Refusal with ReasonNonce.
func CheckNonce(nonce []byte) error {
	if len(nonce) == base64.StdEncoding.EncodedLen(NonceBytes) {
		if raw, err := base64.StdEncoding.Strict().DecodeString(string(nonce)); err == nil && len(raw) == NonceBytes {
			return nil
		}
	}
	return refuse(ReasonNonce, "the nonce is not the base64 text of %d bytes", NonceBytes)
}

// SignNonce signs a provider's nonce with the consumer's key for this pair of clusters alone: the signature is worth nothing
// to another provider, for another consumer, or as a signature of anything else.
func SignNonce(key crypto.Signer, nonce []byte, consumerID, providerID string) ([]byte, error) {
	if key == nil {
		return nil, errors.New("signing a nonce: no key was given")
	}
	if err := checkHandshake(key.Public(), nonce, consumerID, providerID); err != nil {
		return nil, fmt.Errorf("signing a nonce: %w", err)
	}
	signature, err := signMessage(key, signedMessage(nonceDomain, nonce, consumerID, providerID))
	if err != nil {
		return nil, fmt.Errorf("signing a nonce: %w", err)
	}
	return signature, nil
}

func signMessage(key crypto.Signer, message []byte) ([]byte, error) {
	hash := signatureHash(key.Public())
	if hash != 0 {
		message = sum(hash, message)
	}
	return key.Sign(rand.Reader, message, hash)
}

// VerifyNonce returns nil if signature was made by SignNonce with the same arguments and the private half of public; else a
// *Refusal.
func VerifyNonce(public crypto.PublicKey, nonce, signature []byte, consumerID, providerID string) error {
	if err := checkHandshake(public, nonce, consumerID, providerID); err != nil {
		return err
	}
	if len(signature) > maxSignature {
		return refuse(ReasonSignature, "the signature of the nonce has %d bytes and may have at most %d", len(signature), maxSignature)
	}
	if !signed(public, signedMessage(nonceDomain, nonce, consumerID, providerID), signature) {
		return refuse(ReasonSignature, "the signature of the nonce is wrong: it must be made by cluster %s with its own key, for cluster %s and its present nonce",
			quote(consumerID), quote(providerID))
	}
	return nil
}

// signed tells whether a signature was made by signMessage.
func signed(public crypto.PublicKey, message, signature []byte) bool {
	hash := signatureHash(public)
	switch key := public.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, hash, sum(hash, message), signature) == nil
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum(hash, message), signature)
	}
	return false
}

func checkHandshake(public crypto.PublicKey, nonce []byte, consumerID, providerID string) error {
	if err := ValidateClusterID(consumerID); err != nil {
		return err
	}
	if err := ValidateClusterID(providerID); err != nil {
		return err
	}
	if err := CheckPublicKey(public); err != nil {
		return err
	}
	return CheckNonce(nonce)
}

// signedMessage is what is signed of a text between two clusters. The length stands before each part, so that no two triples give the same
// message, and the domain keeps what was signed for one purpose from being shown for another.
func signedMessage(domain string, text []byte, consumerID, providerID string) []byte {
	message := []byte(domain)
	for _, part := range [][]byte{text, []byte(consumerID), []byte(providerID)} {
		message = binary.BigEndian.AppendUint64(message, uint64(len(part)))
		message = append(message, part...)
	}
	return message
}

// signatureHash is zero for keys that sign the message itself.
func signatureHash(public crypto.PublicKey) crypto.Hash {
	switch key := public.(type) {
	case ed25519.PublicKey:
		return 0
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P384() {
			return crypto.SHA384
		}
	}
	return crypto.SHA256
}

func sum(hash crypto.Hash, message []byte) []byte {
	h := hash.New()
	h.Write(message)
	return h.Sum(nil)
}
