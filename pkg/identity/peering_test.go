package identity

import (
	"crypto"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

func peeringID(t *testing.T, key crypto.Signer) string {
	t.Helper()
	id, err := PeeringID(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func csr(t *testing.T, key crypto.Signer, subject Subject) []byte {
	t.Helper()
	pem, err := NewCSR(key, subject)
	if err != nil {
		t.Fatal(err)
	}
	return pem
}

// Whose certificates have rights depends on the key of the peering, and on nothing that the consumer says of it.
func TestAccess(t *testing.T) {
	key, other := keys()["Ed25519"], keys()["ECDSA"]
	id, otherID := peeringID(t, key), peeringID(t, other)
	tenant := TenantSubject("rome")
	user := []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "liqo.io:tenant:rome"}}
	group := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: name}}
	}
	for sentence, c := range map[string]struct {
		csr           []byte
		revoked       string
		tenant, slice []rbacv1.Subject
		// refused is why the very CSR is not accepted; empty if it is.
		refused Reason
	}{
		"of a peering": {csr: csr(t, key, tenant.InPeering(id)),
			tenant: group("liqo.io:peering:" + id + ":tenant:rome"), slice: group("liqo.io:peering:" + id + ":consumer:rome")},
		"of a release that names no peering": {csr: csr(t, key, tenant), tenant: user, slice: group("liqo.io:consumer:rome")},
		"with the group of another's peering": {csr: csr(t, key, tenant.InPeering(otherID)),
			tenant: group("liqo.io:peering:" + id + ":tenant:rome"), slice: group("liqo.io:peering:" + id + ":consumer:rome"), refused: ReasonOrganizations},
		"with the group of a slice": {csr: csr(t, key, Subject{CommonName: tenant.CommonName,
			Organizations: []string{TenantsGroup, PeeringGroup(id, ConsumerGroup("rome"))}}),
			tenant: group("liqo.io:peering:" + id + ":tenant:rome"), slice: group("liqo.io:peering:" + id + ":consumer:rome"), refused: ReasonOrganizations},
		"with a malformed group": {csr: csr(t, key, Subject{CommonName: tenant.CommonName, Organizations: []string{TenantsGroup, "liqo.io:peering:x:tenant:rome"}}),
			tenant: user, slice: group("liqo.io:consumer:rome"), refused: ReasonOrganizations},
		"that was revoked":                                {csr: csr(t, key, tenant.InPeering(id)), revoked: id},
		"with another key than the revoked one":           {csr: csr(t, other, tenant.InPeering(otherID)), revoked: id, tenant: group("liqo.io:peering:" + otherID + ":tenant:rome"), slice: group("liqo.io:peering:" + otherID + ":consumer:rome")},
		"with another key, of a release without peerings": {csr: csr(t, other, tenant), revoked: id},
		"without a CSR":                                   {tenant: user, slice: group("liqo.io:consumer:rome"), refused: ReasonEncoding},
	} {
		t.Run(sentence, func(t *testing.T) {
			access := AccessOf(&authv1beta1.TenantSpec{ClusterID: "rome", CSR: c.csr, RevokedPeering: c.revoked})
			if diff := cmp.Diff([][]rbacv1.Subject{c.tenant, c.slice}, [][]rbacv1.Subject{access.TenantSubjects(), access.SliceSubjects()}); diff != "" {
				t.Error(diff)
			}
			if access.Revoked != (c.tenant == nil) {
				t.Errorf("revoked: %t", access.Revoked)
			}
			wantReason(t, CheckCSR(c.csr, access.TenantExpectation()), c.refused)
		})
	}
}

func TestVerifyTenantTakesBothReleases(t *testing.T) {
	key, other, n := keys()["Ed25519"], keys()["ECDSA"], nonce(t)
	public, err := EncodePublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	tenant := TenantSubject("rome")
	for sentence, c := range map[string]struct {
		subject Subject
		reason  Reason
	}{
		"without a peering":          {tenant, ""},
		"with its peering":           {tenant.InPeering(peeringID(t, key)), ""},
		"with that of another key":   {tenant.InPeering(peeringID(t, other)), ReasonOrganizations},
		"with its peering's slices'": {Subject{CommonName: tenant.CommonName, Organizations: []string{TenantsGroup, PeeringGroup(peeringID(t, key), ConsumerGroup("rome"))}}, ReasonOrganizations},
		"with both": {Subject{CommonName: tenant.CommonName, Organizations: append(tenant.InPeering(peeringID(t, key)).Organizations,
			PeeringGroup(peeringID(t, other), TenantUser("rome")))}, ReasonOrganizations},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := VerifyTenant(TenantProof{ConsumerID: "rome", ProviderID: "milan", Nonce: n, PublicKey: public,
				CSR: csr(t, key, c.subject), Signature: sign(t, key, n, "rome", "milan")})
			wantReason(t, err, c.reason)
		})
	}
}

// The group that a provider wrote into a certificate goes into our next requests: only what a peering can be called is taken.
func TestCertificatePeering(t *testing.T) {
	key := keys()["Ed25519"]
	for group, want := range map[string]string{
		"liqo.io:peering:0123456789abcdef:tenant:rome": "0123456789abcdef", "liqo.io:peering:0123456789abcdef": "0123456789abcdef",
		"liqo.io:peering:0123456789ABCDEF:tenant:rome": "", "liqo.io:peering:0123456789abcde:tenant:rome": "", "liqo.io:peering::tenant:rome": "",
		"peering:0123456789abcdef:tenant:rome": "", "liqo.io:tenants": "",
	} {
		pem := certificate(t, key, pkix.Name{CommonName: "x", Organization: []string{"liqo.io:tenants", group}}, epoch, epoch.Add(time.Hour))
		if got := CertificatePeering(pem); got != want {
			t.Errorf("%s is taken for peering %q", group, got)
		}
	}
	if got := CertificatePeering([]byte("x")); got != "" {
		t.Errorf("no certificate is of peering %q", got)
	}
}
