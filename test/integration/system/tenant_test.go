package system

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
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// tenant is a hostile consumer of milan that was accepted by the real controllers.
type tenant struct {
	id, namespace string
	user          *fixture.User
	key           identity.KeyPair
	// peering is the one that its key stands for.
	peering string
}

// newTenant has milan's administrator accept a consumer, and gives its certificate a client.
func newTenant(t *testing.T) *tenant {
	t.Helper()
	peered(t)
	id := fixture.Unique("turin")
	c := &tenant{id: id, namespace: corev1beta1.TenantNamespacePrefix + id}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace, Labels: map[string]string{
		corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: id}}}
	fixture.Must(t, "creating the tenant namespace", env.Milan.Client.Create(t.Context(), namespace))
	object := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: c.namespace}, Spec: c.introduction(t)}
	fixture.Must(t, "creating the Tenant", env.Milan.Client.Create(t.Context(), object))
	c.accepted(t)
	return c
}

// introduction gives the consumer a new key, and is the spec of the Tenant with which it is peered.
func (c *tenant) introduction(t *testing.T) authv1beta1.TenantSpec {
	t.Helper()
	var err error
	c.key, err = identity.NewKeyPair(identity.AlgorithmEd25519)
	fixture.Must(t, "making a key", err)
	c.peering, err = identity.PeeringID(c.key.Public())
	fixture.Must(t, "naming the peering", err)
	csr, err := identity.NewCSR(c.key.Signer(), identity.TenantSubject(c.id).InPeering(c.peering))
	fixture.Must(t, "making a CSR", err)
	public, err := c.key.PublicPEM()
	fixture.Must(t, "encoding the key", err)
	return authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(c.id), CSR: csr, PublicKey: public, AuthzPolicy: authv1beta1.TolerateNoHandshake}
}

// accepted waits until the consumer has a certificate for its key, with rights.
func (c *tenant) accepted(t *testing.T) {
	t.Helper()
	id, object := c.id, &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: c.id, Namespace: c.namespace}}
	subject := identity.TenantSubject(id).InPeering(c.peering)
	fixture.Await(t, fixture.Patience, "the certificate of Tenant "+id, func(ctx context.Context) (bool, string) {
		if err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		return object.Status.AuthParams != nil && identity.CheckCertificate(object.Status.AuthParams.SignedCRT, c.key.Public(), subject, time.Now()) == nil,
			fmt.Sprint(object.Status.Conditions)
	})
	c.user = env.Milan.Holding(t, identity.TenantUser(id), object.Status.AuthParams.SignedCRT, c.key)
	fixture.Await(t, fixture.Patience, "the rights of Tenant "+id, func(ctx context.Context) (bool, string) {
		err := c.user.List(ctx, &authv1beta1.ResourceSliceList{}, client.InNamespace(c.namespace))
		return err == nil, fmt.Sprint(err)
	})
	env.Milan.AwaitCounted(t, c.namespace)
}

// marks are those of an object that the tenant replicates.
func (c *tenant) marks(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.namespace, Labels: map[string]string{
		corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: c.id,
		corev1beta1.RemoteClusterIDLabel: c.id, corev1beta1.ReplicationLabel: "false"}}
}

func (c *tenant) slice(name string, csr []byte, resources corev1.ResourceList) *authv1beta1.ResourceSlice {
	consumer, provider := corev1beta1.ClusterID(c.id), corev1beta1.ClusterID("milan")
	return &authv1beta1.ResourceSlice{ObjectMeta: c.marks(name), Spec: authv1beta1.ResourceSliceSpec{
		ConsumerClusterID: &consumer, ProviderClusterID: &provider, CSR: csr, Resources: resources}}
}

// granted makes an honest slice and waits until it is granted.
func (c *tenant) granted(t *testing.T, name string, resources corev1.ResourceList) *authv1beta1.ResourceSlice {
	t.Helper()
	csr, err := identity.NewCSR(c.key.Signer(), identity.SliceSubject(c.id, name).InPeering(c.peering))
	fixture.Must(t, "making a CSR", err)
	slice := c.slice(name, csr, resources)
	fixture.Must(t, "creating a ResourceSlice", c.user.Create(t.Context(), slice))
	fixture.Await(t, fixture.Patience, "ResourceSlice "+name+" to be granted", func(ctx context.Context) (bool, string) {
		if err := c.user.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil {
			return false, err.Error()
		}
		return status(slice, authv1beta1.AuthenticationCondition).Status == authv1beta1.Accepted &&
			status(slice, authv1beta1.ResourcesCondition).Status == authv1beta1.Accepted, fmt.Sprint(slice.Status.Conditions)
	})
	return slice
}

func status(slice *authv1beta1.ResourceSlice, condition string) corev1beta1.Condition {
	for _, c := range slice.Status.Conditions {
		if c.Type == condition {
			return c
		}
	}
	return corev1beta1.Condition{}
}

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
	c := newTenant(t)
	// There are more slices here than are answered by default.
	tenant := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.id}}
	fixture.Must(t, "raising a limit", env.Milan.Client.Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"limits":{"resourceSlices":64}}}`))))
	c.granted(t, "honest", nil) // a certificate is issued where nothing is wrong
	public, err := c.key.PublicPEM()
	fixture.Must(t, "encoding the key", err)
	n := 0
	for name, mutate := range mutations {
		n++
		id := fmt.Sprintf("m%d", n)
		t.Run(name+" in a ResourceSlice", func(t *testing.T) {
			t.Parallel()
			slice := c.slice(id, mutated(t, c.key.Signer(), identity.SliceSubject(c.id, id).InPeering(c.peering), mutate), nil)
			fixture.Must(t, "creating it", c.user.Create(t.Context(), slice))
			fixture.Await(t, fixture.Patience, "the refusal", func(ctx context.Context) (bool, string) {
				err := c.user.Get(ctx, client.ObjectKeyFromObject(slice), slice)
				answer := status(slice, authv1beta1.AuthenticationCondition)
				return err == nil && answer.Status == authv1beta1.Denied, fmt.Sprint(slice.Status.Conditions, err)
			})
			if slice.Status.AuthParams != nil {
				t.Error("there is a certificate")
			}
			if reason := status(slice, authv1beta1.AuthenticationCondition).Reason; reason != authv1beta1.ReasonAuthenticationDenied && reason != authv1beta1.ReasonInvalidCSR {
				t.Errorf("reason = %q: %s", reason, status(slice, authv1beta1.AuthenticationCondition).Message)
			}
		})
		for kind, subject := range map[authv1beta1.IdentityType]identity.Subject{
			authv1beta1.ControlPlaneIdentityType:  identity.TenantSubject(c.id).InPeering(c.peering),
			authv1beta1.ResourceSliceIdentityType: identity.SliceSubject(c.id, "honest").InPeering(c.peering),
		} {
			t.Run(fmt.Sprintf("%s in a Renew of type %s", name, kind), func(t *testing.T) {
				t.Parallel()
				renew := &authv1beta1.Renew{ObjectMeta: c.marks(strings.ToLower(string(kind)) + "-" + id), Spec: authv1beta1.RenewSpec{
					ConsumerClusterID: corev1beta1.ClusterID(c.id), PublicKey: public, IdentityType: kind,
					CSR: mutated(t, c.key.Signer(), subject, mutate), ResourceSliceRef: &corev1.LocalObjectReference{Name: "honest"}}}
				fixture.Must(t, "creating it", c.user.Create(t.Context(), renew))
				fixture.Await(t, fixture.Patience, "the refusal", func(ctx context.Context) (bool, string) {
					err := c.user.Get(ctx, client.ObjectKeyFromObject(renew), renew)
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
	t.Cleanup(func() { onlyExpectedSubjects(t) })
}

// onlyExpectedSubjects looks at every certificate that the cluster issued in the name of the controller manager.
func onlyExpectedSubjects(t *testing.T) {
	t.Helper()
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := env.Milan.Client.List(context.Background(), requests); err != nil {
		t.Errorf("listing CertificateSigningRequests: %v", err)
	}
	for _, request := range requests.Items {
		if !strings.HasSuffix(request.Spec.Username, ":liqo-controller-manager") || len(request.Status.Certificate) == 0 {
			continue
		}
		block, _ := pem.Decode(request.Status.Certificate)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Errorf("parsing the certificate of %s: %v", request.Name, err)
			continue
		}
		subject := certificate.Subject
		if peering := identity.CertificatePeering(request.Status.Certificate); peering != "" {
			name := subject.CommonName
			if strings.HasPrefix(name, "liqo.io:slice:") {
				name = subject.Organization[0]
			}
			subject.Organization = slices.DeleteFunc(subject.Organization, func(group string) bool { return group == identity.PeeringGroup(peering, name) })
		}
		switch {
		case strings.HasPrefix(subject.CommonName, "liqo.io:tenant:") && fmt.Sprint(subject.Organization) == "[liqo.io:tenants]":
		case strings.HasPrefix(subject.CommonName, "liqo.io:slice:") && len(subject.Organization) == 1 && strings.HasPrefix(subject.Organization[0], "liqo.io:consumer:"):
		default:
			t.Errorf("the cluster issued a certificate for %s", subject)
		}
		if certificate.IsCA || len(certificate.DNSNames)+len(certificate.IPAddresses)+len(certificate.URIs)+len(certificate.EmailAddresses) > 0 {
			t.Errorf("the certificate for %s has more than a subject", subject)
		}
	}
}

// A Tenant that lacks what the handshake needs is refused with the way out.
func TestTenantAdmission(t *testing.T) {
	peered(t)
	for name, tc := range map[string]struct {
		namespace, id string
		want          string
	}{
		"without keys":                {"liqo-tenant-prober", "prober", "publicKey, csr and signature are required with authzPolicy KeysExchange: peer with 'liqoctl peer' or 'liqoctl authenticate', which fill them in"},
		"in a namespace that is none": {"default", "turin", "publicKey, csr and signature are required"},
		"of another cluster":          {providerNamespace, "turin", "publicKey, csr and signature are required"},
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
		"in another tenant's namespace":  {providerNamespace, "turin", `the namespace liqo-tenant-rome belongs to cluster "rome", but the Tenant is of cluster "turin"`},
		"a second one for one namespace": {providerNamespace, "rome", "there can be only one"},
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

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}
