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
)

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
