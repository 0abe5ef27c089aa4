package identity

import (
	"crypto"
	"net/netip"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Expectation is all that a certificate signing request may ask for. Whatever it does not name is refused.
type Expectation struct {
	// Subject is the exact common name and the exact set of organizations.
	Subject
	// IPs is the exact set of addresses in the subject alternative names; empty means that there must be no such names.
	IPs []netip.Addr
	// PublicKey, if not nil, is the only key accepted.
	PublicKey crypto.PublicKey
	// Usages is the exact set of usages.
	Usages []certificatesv1.KeyUsage
	// KeyEncipherment also accepts the usage "key encipherment" if, and only if, the key is RSA, as kubelets ask for it.
	KeyEncipherment bool
}

// RequestExpectation is all that a CertificateSigningRequest object may ask for.
type RequestExpectation struct {
	// Expectation is about the request inside the object.
	Expectation
	// SignerName is the exact signer. Empty matches nothing.
	SignerName string
	// Username is the exact user who made the request, as the API server recorded it. Empty matches nothing.
	Username string
	// MaxExpirationSeconds is the longest lifetime that may be asked for; a request that asks for none is then refused,
	// because the signer's own maximum would apply. Zero leaves the lifetime to the signer.
	MaxExpirationSeconds int32
}

// ClientUsages are the usages of a client certificate, as a new slice.
func ClientUsages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
}

// ServingUsages are the usages of a serving certificate, as a new slice.
func ServingUsages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
}

// TenantSubject is the subject of a consumer's control plane identity.
func TenantSubject(consumerID string) Subject {
	return Subject{CommonName: TenantUser(consumerID), Organizations: []string{TenantsGroup}}
}

// SliceSubject is the subject of the identity that comes with a ResourceSlice.
func SliceSubject(consumerID, slice string) Subject {
	return Subject{CommonName: SliceUser(consumerID, slice), Organizations: []string{ConsumerGroup(consumerID)}}
}

// TenantExpectation is what a provider accepts as the CSR of a Tenant or of its renewal.
func TenantExpectation(consumerID string) Expectation {
	return Expectation{Subject: TenantSubject(consumerID), Usages: ClientUsages()}
}

// SliceExpectation is what a provider accepts as the CSR of a ResourceSlice or of its renewal.
func SliceExpectation(consumerID, slice string) Expectation {
	return Expectation{Subject: SliceSubject(consumerID, slice), Usages: ClientUsages()}
}

// NodeClientExpectation is what the local cluster accepts as the CSR with which a virtual kubelet becomes its node.
func NodeClientExpectation(node string) Expectation {
	return Expectation{Subject: nodeSubject(node), Usages: ClientUsages(), KeyEncipherment: true}
}

// NodeServingExpectation is what the local cluster accepts as the CSR of a virtual kubelet's endpoint at one address.
func NodeServingExpectation(node string, ip netip.Addr) Expectation {
	return Expectation{Subject: nodeSubject(node), IPs: []netip.Addr{ip.Unmap()}, Usages: ServingUsages(), KeyEncipherment: true}
}

func nodeSubject(node string) Subject {
	return Subject{CommonName: NodeUser(node), Organizations: []string{NodesGroup}}
}
