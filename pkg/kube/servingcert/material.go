package servingcert

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/identity"
)

// Keys of the Secrets' data.
const (
	// AuthoritiesKey holds the authorities to trust, in PEM, the issuing one first.
	AuthoritiesKey = corev1.ServiceAccountRootCAKey
	// AuthorityPrivateKey holds the private key of the first authority, in PEM.
	AuthorityPrivateKey = "ca.key"
	// TokenKey holds what API servers say at the end of Options.SecretPaths.
	TokenKey = "token"
)

const tokenBytes = 16

// Material is what the authority's Secret holds. What is missing or cannot be used is nil, so that it gets replaced.
type Material struct {
	// Authorities are trusted; the first one issues.
	Authorities []*x509.Certificate
	// AuthorityKey is the key of the first authority.
	AuthorityKey crypto.Signer
	// Serving is the serving certificate with its key; its Leaf is set.
	Serving *tls.Certificate
}

// Parse reads a Secret's data. It never fails: see Material.
func Parse(data map[string][]byte) Material {
	var m Material
	for rest := data[AuthoritiesKey]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && cert.IsCA {
			m.Authorities = append(m.Authorities, cert)
		}
	}
	if pair, err := identity.ParseKeyPair(data[AuthorityPrivateKey]); err == nil && len(m.Authorities) > 0 &&
		identity.SamePublicKey(pair.Public(), m.Authorities[0].PublicKey) {
		m.AuthorityKey = pair.Signer()
	}
	if pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err == nil && pair.Leaf != nil {
		m.Serving = &pair
	}
	return m
}

// Data is what the authority's Secret should hold.
func (m Material) Data() (map[string][]byte, error) {
	authorityKey, err := encodeKey(m.AuthorityKey)
	if err != nil {
		return nil, err
	}
	servingKey, err := encodeKey(m.Serving.PrivateKey)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		AuthoritiesKey:          m.Bundle(),
		AuthorityPrivateKey:     authorityKey,
		corev1.TLSCertKey:       encodeCertificate(m.Serving.Certificate[0]),
		corev1.TLSPrivateKeyKey: servingKey,
	}, nil
}

// Bundle is the caBundle of webhook configurations: all authorities, in PEM.
func (m Material) Bundle() []byte {
	var out bytes.Buffer
	for _, authority := range m.Authorities {
		out.Write(encodeCertificate(authority.Raw))
	}
	return out.Bytes()
}

// token is made of the authority's key, which nobody else has.
func (m Material) token() (string, error) {
	if m.AuthorityKey == nil {
		return "", nil
	}
	key, err := encodeKey(m.AuthorityKey)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("paths of webhooks"))
	return hex.EncodeToString(mac.Sum(nil)[:tokenBytes]), nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key of the webhook certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
