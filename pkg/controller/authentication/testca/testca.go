// Package testca signs certificates for the tests of the authentication controllers, as a cluster's signer would.
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"liqo.io/liqo/pkg/identity"
)

// CA is a certificate authority of one test.
type CA struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	// PEM of the CA's certificate.
	PEM []byte
}

// New makes a CA.
func New(t testing.TB) *CA {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &CA{t: t, key: key, cert: cert, PEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// Sign answers a CSR with a certificate.
func (c *CA) Sign(csr []byte, from time.Time, life time.Duration) []byte {
	c.t.Helper()
	block, _ := pem.Decode(csr)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		c.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(from.UnixNano()), RawSubject: request.RawSubject, NotBefore: from, NotAfter: from.Add(life),
	}, c.cert, request.PublicKey, c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Key makes a key pair.
func (c *CA) Key() identity.KeyPair {
	c.t.Helper()
	pair, err := identity.NewKeyPair(identity.AlgorithmEd25519)
	if err != nil {
		c.t.Fatal(err)
	}
	return pair
}

// CSR makes a request.
func (c *CA) CSR(key identity.KeyPair, subject identity.Subject) []byte {
	c.t.Helper()
	csr, err := identity.NewCSR(key.Signer(), subject)
	if err != nil {
		c.t.Fatal(err)
	}
	return csr
}

// Issue makes a certificate for a key.
func (c *CA) Issue(key identity.KeyPair, subject identity.Subject, from time.Time, life time.Duration) []byte {
	c.t.Helper()
	return c.Sign(c.CSR(key, subject), from, life)
}
