package identity

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// ClockSkew is how far the clocks of two clusters may differ before a certificate counts as expired.
const ClockSkew = 5 * time.Minute

// CheckCertificate returns nil if the first certificate in pem, as a provider answered it, is for our key and exactly our
// subject, and has not expired (within ClockSkew); else a *Refusal. From when it is valid is for the provider's API server to judge, which
// signed it and sees it: by a clock that is behind it would be refused here and accepted there. Certificates after the first are its chain.
func CheckCertificate(pem []byte, public crypto.PublicKey, subject Subject, now time.Time) error {
	chain, err := decodeCertificates(pem)
	if err != nil {
		return err
	}
	leaf := chain[0]
	if !SamePublicKey(public, leaf.PublicKey) {
		return refuse(ReasonPublicKeyMismatch, "the certificate is for another key than ours: ask for a new one")
	}
	if err := checkSubject(leaf.RawSubject, subject); err != nil {
		return err
	}
	if now.After(leaf.NotAfter.Add(ClockSkew)) {
		return refuse(ReasonValidity, "the certificate expired at %s: ask for a new one", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// RenewAt is the time from which a certificate should be renewed: when two thirds of its life have passed.
func RenewAt(notBefore, notAfter time.Time) time.Time {
	return notBefore.Add(notAfter.Sub(notBefore) / 3 * 2)
}

// NeedsRenewal tells whether the first certificate in certPEM should be renewed by now, and from when. The error is a
// *Refusal if the certificate cannot be read.
func NeedsRenewal(certPEM []byte, now time.Time) (bool, time.Time, error) {
	chain, err := decodeCertificates(certPEM)
	if err != nil {
		return false, time.Time{}, err
	}
	at := RenewAt(chain[0].NotBefore, chain[0].NotAfter)
	return !now.Before(at), at, nil
}

// CheckCA returns nil if pem is a bundle of certificates that can be parsed, and nothing else; otherwise a *Refusal with
// ReasonCA. Whether they sign others is not asked: some clusters give the API server's own certificate as its CA.
func CheckCA(pem []byte) error {
	if _, err := decodeCertificates(pem); err != nil {
		return refuse(ReasonCA, "the CA bundle is not accepted: %s", err)
	}
	return nil
}

// Subject is who a certificate is for.
type Subject struct {
	// CommonName is the user name. Empty matches nothing.
	CommonName string
	// Organizations are the groups; a set, the order does not matter.
	Organizations []string
}

// NewCSR makes a certificate signing request for a client certificate, in PEM.
func NewCSR(key crypto.Signer, subject Subject) ([]byte, error) {
	return newCSR(key, subject, nil)
}

// NewServingCSR makes the request for the serving certificate of a node's kubelet endpoint at one address, in PEM.
func NewServingCSR(key crypto.Signer, node string, ip netip.Addr) ([]byte, error) {
	if !ip.IsValid() || ip.Zone() != "" {
		return nil, fmt.Errorf("making the serving CSR of node %q: the address %q is not one that a certificate can hold", node, ip)
	}
	return newCSR(key, nodeSubject(node), []net.IP{ip.Unmap().AsSlice()})
}

func newCSR(key crypto.Signer, subject Subject, ips []net.IP) ([]byte, error) {
	if key == nil || subject.CommonName == "" {
		return nil, errors.New("making a CSR: the key and the common name must be given")
	}
	if err := CheckPublicKey(key.Public()); err != nil {
		return nil, fmt.Errorf("making a CSR for %q: %w", subject.CommonName, err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: subject.CommonName, Organization: subject.Organizations},
		IPAddresses: ips,
	}, key)
	if err != nil {
		return nil, fmt.Errorf("making a CSR for %q: %w", subject.CommonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockRequest, Bytes: der}), nil
}
