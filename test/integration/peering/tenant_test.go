package peering

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// mutations are what a hostile consumer changes in the CSR that is expected of it (V1, V2).
var mutations = map[string]func(*x509.CertificateRequest){
	"one more group": func(r *x509.CertificateRequest) {
		r.Subject.Organization = append(r.Subject.Organization, "system:masters")
	},
	"another group": func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:nodes"} },
	"no group":      func(r *x509.CertificateRequest) { r.Subject.Organization = nil },
	"the group twice": func(r *x509.CertificateRequest) {
		r.Subject.Organization = append(r.Subject.Organization, r.Subject.Organization...)
	},
	"another consumer":       func(r *x509.CertificateRequest) { r.Subject.CommonName = "liqo.io:tenant:rome" },
	"an administrator":       func(r *x509.CertificateRequest) { r.Subject.CommonName = "kubernetes-admin" },
	"a node":                 func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:milan-sim-1" },
	"no name":                func(r *x509.CertificateRequest) { r.Subject.CommonName = "" },
	"a name with a suffix":   func(r *x509.CertificateRequest) { r.Subject.CommonName += "-x" },
	"an organizational unit": func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} },
	"a country":              func(r *x509.CertificateRequest) { r.Subject.Country = []string{"IT"} },
	"a DNS name":             func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes.default.svc"} },
	"an address":             func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 21, 0, 1)} },
	"a URI":                  func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "milan"}} },
	"an email address":       func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b.it"} },
	"a CA": func(r *x509.CertificateRequest) {
		r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
	},
}

func mutated(t *testing.T, key crypto.Signer, subject identity.Subject, mutate func(*x509.CertificateRequest)) []byte {
	t.Helper()
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject.CommonName, Organization: append([]string{}, subject.Organizations...)}}
	mutate(template)
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	fixture.Must(t, "making a CSR", err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// V1, V2: whatever a CSR asks for beyond the one subject that it may have, in a Tenant, a ResourceSlice or a Renew: the answer
// names the reason and there is no certificate.
func TestMutatedCSRs(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	// There are more slices here than are answered by default.
	tenant := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.ID}}
	fixture.Must(t, "raising a limit", env.Milan.Client.Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"limits":{"resourceSlices":64}}}`))))
	c.Granted(t, "honest", nil) // a certificate is issued where nothing is wrong
	public, err := c.Key.PublicPEM()
	fixture.Must(t, "encoding the key", err)
	n := 0
	for name, mutate := range mutations {
		n++
		id := fmt.Sprintf("m%d", n)
		t.Run(name+" in a ResourceSlice", func(t *testing.T) {
			t.Parallel()
			slice := c.Slice(id, mutated(t, c.Key.Signer(), identity.SliceSubject(c.ID, id).InPeering(c.Peering), mutate), nil)
			fixture.Must(t, "creating it", c.User.Create(t.Context(), slice))
			fixture.Await(t, fixture.Patience, "the refusal", func(ctx context.Context) (bool, string) {
				err := c.User.Get(ctx, client.ObjectKeyFromObject(slice), slice)
				answer := world.Status(slice, authv1beta1.AuthenticationCondition)
				return err == nil && answer.Status == authv1beta1.Denied, fmt.Sprint(slice.Status.Conditions, err)
			})
			if slice.Status.AuthParams != nil {
				t.Error("there is a certificate")
			}
			if reason := world.Status(slice, authv1beta1.AuthenticationCondition).Reason; reason != authv1beta1.ReasonAuthenticationDenied && reason != authv1beta1.ReasonInvalidCSR {
				t.Errorf("reason = %q: %s", reason, world.Status(slice, authv1beta1.AuthenticationCondition).Message)
			}
		})
		for kind, subject := range map[authv1beta1.IdentityType]identity.Subject{
			authv1beta1.ControlPlaneIdentityType:  identity.TenantSubject(c.ID).InPeering(c.Peering),
			authv1beta1.ResourceSliceIdentityType: identity.SliceSubject(c.ID, "honest").InPeering(c.Peering),
		} {
			t.Run(fmt.Sprintf("%s in a Renew of type %s", name, kind), func(t *testing.T) {
				t.Parallel()
				renew := &authv1beta1.Renew{ObjectMeta: c.Marks(strings.ToLower(string(kind)) + "-" + id), Spec: authv1beta1.RenewSpec{
					ConsumerClusterID: corev1beta1.ClusterID(c.ID), PublicKey: public, IdentityType: kind,
					CSR: mutated(t, c.Key.Signer(), subject, mutate), ResourceSliceRef: &corev1.LocalObjectReference{Name: "honest"}}}
				fixture.Must(t, "creating it", c.User.Create(t.Context(), renew))
				fixture.Await(t, fixture.Patience, "the refusal", func(ctx context.Context) (bool, string) {
					err := c.User.Get(ctx, client.ObjectKeyFromObject(renew), renew)
					refused := len(renew.Status.Conditions) == 1 && renew.Status.Conditions[0].Status == metav1.ConditionFalse &&
						(renew.Status.Conditions[0].Reason == authv1beta1.ReasonInvalidCSR || renew.Status.Conditions[0].Reason == authv1beta1.ReasonInvalidRenew)
					return err == nil && refused, fmt.Sprint(renew.Status.Conditions, err)
				})
				if renew.Status.AuthParams != nil {
					t.Error("there is a certificate")
				}
			})
		}
	}
	t.Cleanup(func() { env.OnlyExpectedSubjects(t) })
}

// A Tenant that lacks what the handshake needs is refused with the way out.
func TestTenantAdmission(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	for name, tc := range map[string]struct {
		namespace, id string
		want          string
	}{
		"without keys":                {"liqo-tenant-prober", "prober", "publicKey, csr and signature are required with authzPolicy KeysExchange: peer with 'liqoctl peer' or 'liqoctl authenticate', which fill them in"},
		"in a namespace that is none": {"default", "turin", "publicKey, csr and signature are required"},
		"of another cluster":          {fixture.ProviderNamespace, "turin", "publicKey, csr and signature are required"},
	} {
		t.Run(name, func(t *testing.T) {
			err := env.Milan.Client.Create(t.Context(), &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: tc.namespace},
				Spec: authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(tc.id)}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct{ namespace, id, want string }{
		"in a namespace that is none":    {"default", "turin", "the namespace default is not a tenant namespace: create the Tenant in liqo-tenant-turin"},
		"in another tenant's namespace":  {fixture.ProviderNamespace, "turin", `the namespace liqo-tenant-rome belongs to cluster "rome", but the Tenant is of cluster "turin"`},
		"a second one for one namespace": {fixture.ProviderNamespace, "rome", "there can be only one"},
	} {
		t.Run("trusted, "+name, func(t *testing.T) {
			err := env.Milan.Client.Create(t.Context(), &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: tc.namespace},
				Spec: authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(tc.id), AuthzPolicy: authv1beta1.TolerateNoHandshake}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
		})
	}
}
