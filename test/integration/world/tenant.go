package world

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// Tenant is a hostile consumer of milan that was accepted by the real controllers.
type Tenant struct {
	// ID is its cluster ID, Namespace its tenant namespace.
	ID, Namespace string
	// User is its control plane, Key that of the certificate.
	User *fixture.User
	Key  identity.KeyPair
	// Peering is the one that its key stands for.
	Peering string

	at *Shared
}

// NewTenant has milan's administrator accept a consumer, and gives its certificate a client.
func (s *Shared) NewTenant(t *testing.T) *Tenant {
	t.Helper()
	s.Peered(t)
	id := fixture.Unique("turin")
	c := &Tenant{ID: id, Namespace: corev1beta1.TenantNamespacePrefix + id, at: s}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace, Labels: map[string]string{
		corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: id}}}
	fixture.Must(t, "creating the tenant namespace", s.Milan.Client.Create(t.Context(), namespace))
	object := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id, Namespace: c.Namespace}, Spec: c.Introduction(t)}
	fixture.Must(t, "creating the Tenant", s.Milan.Client.Create(t.Context(), object))
	c.Accepted(t)
	return c
}

// Introduction gives the consumer a new key, and is the spec of the Tenant with which it is peered.
func (c *Tenant) Introduction(t *testing.T) authv1beta1.TenantSpec {
	t.Helper()
	var err error
	c.Key, err = identity.NewKeyPair(identity.AlgorithmEd25519)
	fixture.Must(t, "making a key", err)
	c.Peering, err = identity.PeeringID(c.Key.Public())
	fixture.Must(t, "naming the peering", err)
	csr, err := identity.NewCSR(c.Key.Signer(), identity.TenantSubject(c.ID).InPeering(c.Peering))
	fixture.Must(t, "making a CSR", err)
	public, err := c.Key.PublicPEM()
	fixture.Must(t, "encoding the key", err)
	return authv1beta1.TenantSpec{ClusterID: corev1beta1.ClusterID(c.ID), CSR: csr, PublicKey: public, AuthzPolicy: authv1beta1.TolerateNoHandshake}
}

// Accepted waits until the consumer has a certificate for its key, with rights.
func (c *Tenant) Accepted(t *testing.T) {
	t.Helper()
	id, object := c.ID, &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: c.ID, Namespace: c.Namespace}}
	subject := identity.TenantSubject(id).InPeering(c.Peering)
	fixture.Await(t, fixture.Patience, "the certificate of Tenant "+id, func(ctx context.Context) (bool, string) {
		if err := c.at.Milan.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		return object.Status.AuthParams != nil && identity.CheckCertificate(object.Status.AuthParams.SignedCRT, c.Key.Public(), subject, time.Now()) == nil,
			fmt.Sprint(object.Status.Conditions)
	})
	c.User = c.at.Milan.Holding(t, identity.TenantUser(id), object.Status.AuthParams.SignedCRT, c.Key)
	fixture.Await(t, fixture.Patience, "the rights of Tenant "+id, func(ctx context.Context) (bool, string) {
		err := c.User.List(ctx, &authv1beta1.ResourceSliceList{}, client.InNamespace(c.Namespace))
		return err == nil, fmt.Sprint(err)
	})
	c.at.Milan.AwaitCounted(t, c.Namespace)
}

// Marks are those of an object that the tenant replicates.
func (c *Tenant) Marks(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: c.Namespace, Labels: map[string]string{
		corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: c.ID,
		corev1beta1.RemoteClusterIDLabel: c.ID, corev1beta1.ReplicationLabel: "false"}}
}

// Slice is a ResourceSlice that the tenant replicates.
func (c *Tenant) Slice(name string, csr []byte, resources corev1.ResourceList) *authv1beta1.ResourceSlice {
	consumer, provider := corev1beta1.ClusterID(c.ID), corev1beta1.ClusterID("milan")
	return &authv1beta1.ResourceSlice{ObjectMeta: c.Marks(name), Spec: authv1beta1.ResourceSliceSpec{
		ConsumerClusterID: &consumer, ProviderClusterID: &provider, CSR: csr, Resources: resources}}
}

// Granted makes an honest slice and waits until it is granted.
func (c *Tenant) Granted(t *testing.T, name string, resources corev1.ResourceList) *authv1beta1.ResourceSlice {
	t.Helper()
	csr, err := identity.NewCSR(c.Key.Signer(), identity.SliceSubject(c.ID, name).InPeering(c.Peering))
	fixture.Must(t, "making a CSR", err)
	slice := c.Slice(name, csr, resources)
	fixture.Must(t, "creating a ResourceSlice", c.User.Create(t.Context(), slice))
	fixture.Await(t, fixture.Patience, "ResourceSlice "+name+" to be granted", func(ctx context.Context) (bool, string) {
		if err := c.User.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil {
			return false, err.Error()
		}
		return Status(slice, authv1beta1.AuthenticationCondition).Status == authv1beta1.Accepted &&
			Status(slice, authv1beta1.ResourcesCondition).Status == authv1beta1.Accepted, fmt.Sprint(slice.Status.Conditions)
	})
	for _, c := range slice.Status.Conditions {
		if c.Status != authv1beta1.Accepted {
			t.Errorf("programs of Liqo v1 take ResourceSlice %s for refused: %+v", name, c)
		}
	}
	return slice
}

// Status is what a ResourceSlice says of a condition, or of what sums it up.
func Status(slice *authv1beta1.ResourceSlice, condition string) corev1beta1.Condition {
	for _, c := range slices.Concat(slice.Status.Conditions, slice.Status.Summary) {
		if c.Type == condition {
			return c
		}
	}
	return corev1beta1.Condition{}
}

// OnlyExpectedSubjects looks at every certificate that the cluster issued in the name of the controller manager.
func (s *Shared) OnlyExpectedSubjects(t *testing.T) {
	t.Helper()
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := s.Milan.Client.List(context.Background(), requests); err != nil {
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
		case strings.HasPrefix(subject.CommonName, "liqo.io:slice:") && len(subject.Organization) == 1 &&
			strings.HasPrefix(subject.Organization[0], "liqo.io:consumer:"):
		default:
			t.Errorf("the cluster issued a certificate for %s", subject)
		}
		if certificate.IsCA || len(certificate.DNSNames)+len(certificate.IPAddresses)+len(certificate.URIs)+len(certificate.EmailAddresses) > 0 {
			t.Errorf("the certificate for %s has more than a subject", subject)
		}
	}
}
