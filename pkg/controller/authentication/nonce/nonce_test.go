package nonce

import (
	"crypto/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/identity"
)

func namespace(name, id string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: id,
	}}}
}

func secret(ns, name, label string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: "s1", Labels: map[string]string{label: "true"}}}
}

func TestHandshake(t *testing.T) {
	atMilan := newReconciler("milan", namespace("liqo-tenant-rome", "rome"), secret("liqo-tenant-rome", authv1beta1.NonceSecret, authv1beta1.NonceLabel))
	made := run(t, atMilan, "liqo-tenant-rome", authv1beta1.NonceSecret)
	nonce := made.Data[authv1beta1.NonceKey]
	if err := identity.CheckNonce(nonce); err != nil {
		t.Fatal(err)
	}
	if again := run(t, atMilan, "liqo-tenant-rome", authv1beta1.NonceSecret); again.ResourceVersion != made.ResourceVersion {
		t.Error("the nonce was written twice")
	}
	signed := secret("liqo-tenant-milan", authv1beta1.SignedNonceSecret, authv1beta1.SignedNonceLabel)
	signed.Data = map[string][]byte{authv1beta1.NonceKey: nonce}
	atRome := newReconciler("rome", namespace("liqo-tenant-milan", "milan"), signed)
	answer := run(t, atRome, "liqo-tenant-milan", authv1beta1.SignedNonceSecret)
	_, err := identity.VerifyTenant(identity.TenantProof{
		ConsumerID: "rome", ProviderID: "milan", Nonce: nonce, PublicKey: answer.Data[authv1beta1.PublicKeyKey],
		CSR: answer.Data[authv1beta1.CSRKey], Signature: answer.Data[authv1beta1.SignedNonceKey],
	})
	if err != nil {
		t.Fatal(err)
	}
	if again := run(t, atRome, "liqo-tenant-milan", authv1beta1.SignedNonceSecret); again.ResourceVersion != answer.ResourceVersion {
		t.Error("the nonce was signed twice")
	}
	key := run(t, atRome, "liqo-tenant-milan", "liqo-key-controlplane-milan")
	want := []string{"Secret/" + authv1beta1.SignedNonceSecret}
	var owners []string
	for _, owner := range key.OwnerReferences {
		owners = append(owners, owner.Kind+"/"+owner.Name)
	}
	if diff := cmp.Diff(want, owners); diff != "" {
		t.Error(diff)
	}
}

// The CSR names the peering if the provider said that it knows of that, also where the nonce is older than that.
func TestThePeeringIsNamedToWhoKnowsOfIt(t *testing.T) {
	older := secret("liqo-tenant-rome", authv1beta1.NonceSecret, authv1beta1.NonceLabel)
	older.Data = map[string][]byte{authv1beta1.NonceKey: []byte("made by an earlier release")}
	marked := run(t, newReconciler("milan", namespace("liqo-tenant-rome", "rome"), older), "liqo-tenant-rome", authv1beta1.NonceSecret)
	if marked.Annotations[authv1beta1.PeeringGroupsAnnotation] != "true" || string(marked.Data[authv1beta1.NonceKey]) != "made by an earlier release" {
		t.Errorf("the nonce of an earlier release became %v", marked)
	}
	nonce, err := identity.NewNonce(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signed := secret("liqo-tenant-milan", authv1beta1.SignedNonceSecret, authv1beta1.SignedNonceLabel)
	signed.Data = map[string][]byte{authv1beta1.NonceKey: nonce}
	atRome := newReconciler("rome", namespace("liqo-tenant-milan", "milan"), signed)
	answer := run(t, atRome, "liqo-tenant-milan", authv1beta1.SignedNonceSecret)
	if named := identity.RequestPeering(answer.Data[authv1beta1.CSRKey]); named != "" {
		t.Errorf("a provider of an earlier release is named the peering %s", named)
	}
	answer.Annotations = map[string]string{authv1beta1.PeeringGroupsAnnotation: "true"}
	if err := atRome.client.Update(t.Context(), answer); err != nil {
		t.Fatal(err)
	}
	answer = run(t, atRome, "liqo-tenant-milan", authv1beta1.SignedNonceSecret)
	public, err := identity.ParsePublicKey(answer.Data[authv1beta1.PublicKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if want, err := identity.PeeringID(public); err != nil || identity.RequestPeering(answer.Data[authv1beta1.CSRKey]) != want {
		t.Errorf("the CSR names %q, want %s (%v)", identity.RequestPeering(answer.Data[authv1beta1.CSRKey]), want, err)
	}
	if again := run(t, atRome, "liqo-tenant-milan", authv1beta1.SignedNonceSecret); again.ResourceVersion != answer.ResourceVersion {
		t.Error("the nonce was signed twice")
	}
}

func TestNothingHappensOutsideTenantNamespaces(t *testing.T) {
	for name, ns := range map[string]*corev1.Namespace{
		"an ordinary namespace":      {ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		"a namespace of another ID":  namespace("liqo-tenant-rome", "turin"),
		"a label without the name":   namespace("kube-system", "rome"),
		"an ID that cannot be right": namespace("liqo-tenant-Rome", "Rome"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciler("milan", ns, secret(ns.Name, authv1beta1.NonceSecret, authv1beta1.NonceLabel))
			if got := run(t, r, ns.Name, authv1beta1.NonceSecret); len(got.Data) != 0 {
				t.Error("a nonce was made")
			}
		})
	}
}

func TestForgedNonceIsNotSigned(t *testing.T) {
	signed := secret("liqo-tenant-milan", authv1beta1.SignedNonceSecret, authv1beta1.SignedNonceLabel)
	signed.Data = map[string][]byte{authv1beta1.NonceKey: []byte("please sign this contract")}
	r := newReconciler("rome", namespace("liqo-tenant-milan", "milan"), signed)
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(signed)}); err == nil {
		t.Error("no error")
	}
	live, err := r.options.Secrets.Get(t.Context(), signed.Namespace, signed.Name)
	if err != nil || len(live.Data) != 1 {
		t.Errorf("the Secret holds %d entries, %v", len(live.Data), err)
	}
}

func newReconciler(id string, objects ...client.Object) *Reconciler {
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	return &Reconciler{client: c, events: events.NewFakeRecorder(100), options: Options{
		ClusterID: id, Algorithm: identity.AlgorithmEd25519, Secrets: secrets.Store{Client: c, Reader: c},
	}}
}

func run(t *testing.T, r *Reconciler, ns, name string) *corev1.Secret {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: name}}); err != nil {
		t.Fatal(err)
	}
	live, err := r.options.Secrets.Get(t.Context(), ns, name)
	if err != nil || live == nil {
		t.Fatalf("Secret %s/%s: %v", ns, name, err)
	}
	return live
}
