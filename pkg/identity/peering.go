package identity

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

const (
	peeringPrefix = UserPrefix + "peering:"
	peeringDigest = 8
)

var peeringPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// PeeringID names a peering by the key that the consumer introduced itself with: a new key, a new peering. It is the same in both clusters.
func PeeringID(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("naming a peering: %w", err)
	}
	return digest(string(der), peeringDigest), nil
}

// PeeringGroup is the group of those certificates of one peering that are for the given user (of TenantUser) or group (of ConsumerGroup).
// Rights are bound to it, so that they end with the peering although its certificates cannot be called back.
func PeeringGroup(peering, name string) string {
	return peeringPrefix + peering + ":" + strings.TrimPrefix(name, UserPrefix)
}

// InPeering is the subject as it stands in the certificates of one peering: with the peering's group beside its own. Without a peering, as
// between releases that know of none, it is the subject itself.
func (s Subject) InPeering(peering string) Subject {
	if peering == "" {
		return s
	}
	name := s.CommonName
	if !strings.HasPrefix(name, tenantPrefix) && len(s.Organizations) > 0 {
		name = s.Organizations[0]
	}
	s.Organizations = append(append([]string{}, s.Organizations...), PeeringGroup(peering, name))
	return s
}

// RequestPeering is the peering whose group a CSR asks for; empty if it asks for none or cannot be read.
func RequestPeering(pem []byte) string {
	der, err := decodeOne(pem, blockRequest, MaxCSR)
	if err != nil {
		return ""
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return ""
	}
	return peeringAmong(csr.Subject.Organization)
}

// CertificatePeering is the peering that a certificate belongs to; empty if it names none or cannot be read.
func CertificatePeering(pem []byte) string {
	chain, err := decodeCertificates(pem)
	if err != nil {
		return ""
	}
	return peeringAmong(chain[0].Subject.Organization)
}

func peeringAmong(groups []string) string {
	for _, group := range groups {
		if rest, ok := strings.CutPrefix(group, peeringPrefix); ok {
			if peering, _, _ := strings.Cut(rest, ":"); peeringPattern.MatchString(peering) {
				return peering
			}
		}
	}
	return ""
}

// RequestKey is the public key that a CSR is for.
func RequestKey(pem []byte) (crypto.PublicKey, error) {
	der, err := decodeOne(pem, blockRequest, MaxCSR)
	if err != nil {
		return nil, err
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, refuse(ReasonEncoding, "the CSR cannot be parsed: %s", quote(err.Error()))
	}
	if err := CheckPublicKey(csr.PublicKey); err != nil {
		return nil, err
	}
	return csr.PublicKey, nil
}

// Access is what a Tenant says about whose certificates have rights at the provider.
type Access struct {
	// Consumer is the tenant's cluster ID.
	Consumer string
	// Peering is the present peering, which the groups of its certificates name; empty if the consumer's CSR names none, because its release,
	// or that of whoever peered, knows of none.
	Peering string
	// Revoked says that no certificate has rights until the consumer is peered with another key.
	Revoked bool
}

// AccessOf reads a Tenant. Once a peering was revoked, CSRs that name no peering are not enough: nothing would tell their certificates from
// those that were revoked.
func AccessOf(spec *authv1beta1.TenantSpec) Access {
	access := Access{Consumer: string(spec.ClusterID)}
	if RequestPeering(spec.CSR) != "" {
		// What the CSR says is not believed: VerifyTenant and the expectations compare it with this.
		if public, err := RequestKey(spec.CSR); err == nil {
			access.Peering, _ = PeeringID(public)
		}
	}
	access.Revoked = spec.RevokedPeering != "" && (access.Peering == "" || access.Peering == spec.RevokedPeering)
	return access
}

// TenantSubjects are who has the rights of the consumer's control plane: nobody if it was revoked.
func (a Access) TenantSubjects() []rbacv1.Subject {
	user := TenantUser(a.Consumer)
	if a.Peering == "" {
		return a.unlessRevoked(rbacv1.UserKind, user)
	}
	return a.unlessRevoked(rbacv1.GroupKind, PeeringGroup(a.Peering, user))
}

// SliceSubjects are who has the rights of the consumer's virtual kubelets: nobody if it was revoked.
func (a Access) SliceSubjects() []rbacv1.Subject {
	group := ConsumerGroup(a.Consumer)
	if a.Peering != "" {
		group = PeeringGroup(a.Peering, group)
	}
	return a.unlessRevoked(rbacv1.GroupKind, group)
}

func (a Access) unlessRevoked(kind, name string) []rbacv1.Subject {
	if a.Revoked {
		return nil
	}
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}}
}

// TenantExpectation is what is accepted as the CSR of the consumer's control plane, or of its renewal.
func (a Access) TenantExpectation() Expectation {
	want := TenantExpectation(a.Consumer)
	want.Subject = want.InPeering(a.Peering)
	return want
}

// SliceExpectation is what is accepted as the CSR of a ResourceSlice, or of its renewal.
func (a Access) SliceExpectation(slice string) Expectation {
	want := SliceExpectation(a.Consumer, slice)
	want.Subject = want.InPeering(a.Peering)
	return want
}

// Revocation is the value of a Tenant's revokedPeering that takes all rights from the certificates of its present peering, whether they name
// it or not.
func Revocation(spec *authv1beta1.TenantSpec) string {
	for _, read := range []func() (crypto.PublicKey, error){
		func() (crypto.PublicKey, error) { return RequestKey(spec.CSR) },
		func() (crypto.PublicKey, error) { return ParsePublicKey(spec.PublicKey) },
	} {
		if public, err := read(); err == nil {
			if peering, err := PeeringID(public); err == nil {
				return peering
			}
		}
	}
	// Without a key there is no certificate. Any value keeps the next one from being issued without a peering.
	return digest(string(spec.CSR), peeringDigest)
}

// StandsFor tells whether a user or group is one of a consumer's, of whatever peering.
func StandsFor(name, consumer string) bool {
	if rest, ok := strings.CutPrefix(name, peeringPrefix); ok {
		_, rest, _ = strings.Cut(rest, ":")
		name = UserPrefix + rest
	}
	return name == TenantUser(consumer) || name == ConsumerGroup(consumer)
}
