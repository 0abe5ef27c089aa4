package peering

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// applicant is a hostile consumer that got a nonce of milan and has not been accepted yet.
type applicant struct {
	id, namespace string
	key           identity.KeyPair
	nonce         []byte
}

func newApplicant(t *testing.T) *applicant {
	t.Helper()
	env.Peered(t)
	a := &applicant{id: fixture.Unique("bari")}
	a.namespace = corev1beta1.TenantNamespacePrefix + a.id
	var err error
	a.key, err = identity.NewKeyPair(identity.AlgorithmEd25519)
	fixture.Must(t, "making a key", err)
	fixture.Must(t, "creating the tenant namespace", env.Milan.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: a.namespace, Labels: map[string]string{corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: a.id}}}))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: authv1beta1.NonceSecret, Labels: map[string]string{
		authv1beta1.NonceLabel: "true", corev1beta1.RemoteClusterIDLabel: a.id}}}
	fixture.Must(t, "asking for a nonce", env.Milan.Client.Create(t.Context(), secret))
	fixture.Await(t, fixture.Patience, "the nonce", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return err == nil && len(secret.Data[authv1beta1.NonceKey]) > 0, fmt.Sprint(err)
	})
	a.nonce = secret.Data[authv1beta1.NonceKey]
	return a
}

// tenant is what the applicant sends: everything right, with the given CSR.
func (a *applicant) tenant(t *testing.T, name string, csr []byte) *authv1beta1.Tenant {
	t.Helper()
	signature, err := identity.SignNonce(a.key.Signer(), a.nonce, a.id, "milan")
	fixture.Must(t, "signing the nonce", err)
	public, err := a.key.PublicPEM()
	fixture.Must(t, "encoding the key", err)
	return &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: a.namespace}, Spec: authv1beta1.TenantSpec{
		ClusterID: corev1beta1.ClusterID(a.id), CSR: csr, PublicKey: public, Signature: signature, AuthzPolicy: authv1beta1.KeysExchange}}
}

func (a *applicant) csr(t *testing.T) []byte {
	t.Helper()
	csr, err := identity.NewCSR(a.key.Signer(), identity.TenantSubject(a.id))
	fixture.Must(t, "making a CSR", err)
	return csr
}

// answered creates a Tenant, waits for the answer with the reason, and tells whether there is a certificate.
func answered(t *testing.T, tenant *authv1beta1.Tenant, reason string) (certificate bool) {
	t.Helper()
	// Admission may not have seen yet that the Tenant before it is gone.
	fixture.Await(t, fixture.Patience, "the Tenant to be taken", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Create(ctx, tenant)
		if err != nil && !strings.Contains(err.Error(), "there can be only one") {
			t.Fatalf("creating the Tenant: %v", err)
		}
		return err == nil, fmt.Sprint(err)
	})
	fixture.Await(t, fixture.Patience, "the answer "+reason, func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(tenant), tenant)
		ready := meta.FindStatusCondition(tenant.Status.Conditions, corev1beta1.ConditionReady)
		return err == nil && ready != nil && ready.Reason == reason, fmt.Sprint(tenant.Status.Conditions, err)
	})
	return tenant.Status.AuthParams != nil
}

func withdrawn(t *testing.T, tenant *authv1beta1.Tenant) {
	t.Helper()
	fixture.Must(t, "deleting the Tenant", env.Milan.Client.Delete(t.Context(), tenant))
	fixture.Await(t, fixture.Patience, "the Tenant to be gone", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(tenant), &authv1beta1.Tenant{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// V1, V2: a Tenant whose handshake is right gets a certificate for the one subject that it may have, whatever its CSR asks
// for besides; a nonce serves one Tenant, once.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	a := newApplicant(t)
	n := 0
	for name, mutate := range mutations {
		n++
		t.Run(name+" in a Tenant", func(t *testing.T) {
			tenant := a.tenant(t, fmt.Sprintf("m%d", n), mutated(t, a.key.Signer(), identity.TenantSubject(a.id), mutate))
			if answered(t, tenant, authv1beta1.ReasonInvalidCSR) {
				t.Error("there is a certificate")
			}
			withdrawn(t, tenant)
		})
	}
	if n < 10 {
		t.Errorf("there are %d mutations", n)
	}
	t.Run("the CSR of another key", func(t *testing.T) {
		other, err := identity.NewKeyPair(identity.AlgorithmEd25519)
		fixture.Must(t, "making a key", err)
		tenant := a.tenant(t, "other-key", mutated(t, other.Signer(), identity.TenantSubject(a.id), func(*x509.CertificateRequest) {}))
		if answered(t, tenant, authv1beta1.ReasonInvalidCSR) {
			t.Error("there is a certificate")
		}
		withdrawn(t, tenant)
	})
	// None of these used the nonce up.
	honest := a.tenant(t, "honest", a.csr(t))
	if !answered(t, honest, authv1beta1.ReasonReady) {
		t.Fatal("an honest Tenant gets no certificate")
	}
	withdrawn(t, honest)
	// The nonce went with its Tenant; its signature fits no other.
	t.Run("the nonce again, after its Tenant is gone", func(t *testing.T) {
		again := a.tenant(t, "again", a.csr(t))
		if answered(t, again, authv1beta1.ReasonSignatureVerificationFailed) {
			t.Error("there is a certificate")
		}
		withdrawn(t, again)
	})
	t.Run("the nonce again, after a backup brought it back", func(t *testing.T) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: authv1beta1.NonceSecret}}
		patch, err := json.Marshal(map[string]any{"data": map[string][]byte{authv1beta1.NonceKey: a.nonce},
			"metadata": map[string]any{"annotations": map[string]any{authv1beta1.NonceUsedByAnnotation: honest.UID}}})
		fixture.Must(t, "encoding a patch", err)
		fixture.Must(t, "restoring the nonce", env.Milan.Client.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, patch)))
		again := a.tenant(t, "restored", a.csr(t))
		if answered(t, again, authv1beta1.ReasonNonceReplayed) {
			t.Error("there is a certificate")
		}
		withdrawn(t, again)
	})
	t.Run("the signed nonce of another consumer", func(t *testing.T) {
		b := newApplicant(t)
		b.key = a.key
		stolen := b.tenant(t, "stolen", b.csr(t))
		stolen.Spec.Signature = honest.Spec.Signature
		if answered(t, stolen, authv1beta1.ReasonSignatureVerificationFailed) {
			t.Error("there is a certificate")
		}
	})
	env.OnlyExpectedSubjects(t)
}
