package tenant

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/advertise"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/controller/authentication/nonce"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/fakeapi"
)

// bench is the provider milan with the namespace of rome.
type bench struct {
	t      *testing.T
	client client.Client
	r      *Reconciler
	ca     *testca.CA
	key    identity.KeyPair
	nonce  []byte
	// peeringGroups says whether rome names the peering in its CSR.
	peeringGroups bool
	clock         *testingclock.FakeClock
}

const tn = "liqo-tenant-rome"

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme, corev1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{t: t, ca: testca.New(t), clock: testingclock.NewFakeClock(time.Unix(1_000_000, 0))}
	b.key = b.ca.Key()
	var err error
	if b.nonce, err = identity.NewNonce(rand.Reader); err != nil {
		t.Fatal(err)
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tn}}, counted(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: authv1beta1.NonceSecret, Labels: map[string]string{authv1beta1.NonceLabel: "true"}},
		Data:       map[string][]byte{authv1beta1.NonceKey: b.nonce},
	})
	b.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&authv1beta1.Tenant{}).Build()
	store := secrets.Store{Client: b.client, Reader: b.client}
	b.r = &Reconciler{client: b.client, live: b.client, events: events.NewFakeRecorder(100), options: Options{
		ClusterID: "milan", Secrets: store, Clock: b.clock, RequestShares: 2,
		Issuer:     &certificate.Issuer{Secrets: store, Client: b.client, Reader: b.client, Clock: b.clock, Username: "us"},
		Advertiser: advertise.Advertiser{Address: "https://192.0.2.1:6443", CA: b.ca.PEM, Reader: b.client},
	}}
	return b
}

// tenant answers the nonce as rome does, changed as wished.
func (b *bench) tenant(change func(*authv1beta1.Tenant)) *authv1beta1.Tenant {
	b.t.Helper()
	answer, err := nonce.Answer(b.key, b.nonce, "rome", "milan", b.peeringGroups)
	if err != nil {
		b.t.Fatal(err)
	}
	tenant := &authv1beta1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "rome", UID: "t1"},
		Spec: authv1beta1.TenantSpec{
			ClusterID: "rome", AuthzPolicy: authv1beta1.KeysExchange, TenantCondition: authv1beta1.TenantActive,
			PublicKey: answer[authv1beta1.PublicKeyKey], CSR: answer[authv1beta1.CSRKey], Signature: answer[authv1beta1.SignedNonceKey],
		},
	}
	if change != nil {
		change(tenant)
	}
	if err := b.client.Create(b.t.Context(), tenant); err != nil {
		b.t.Fatal(err)
	}
	return tenant
}

// record plays a certificate that was issued before.
func (b *bench) record(csr []byte) {
	b.t.Helper()
	err := b.client.Create(b.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: certificate.TenantRecord(), Labels: map[string]string{corev1beta1.ManagedLabel: "true"}},
		Data:       map[string][]byte{authv1beta1.CSRKey: csr, authv1beta1.CertificateKey: b.ca.Sign(csr, b.clock.Now(), 24*time.Hour)},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) reconcile(tenant *authv1beta1.Tenant) (ctrl.Result, *authv1beta1.Tenant) {
	b.t.Helper()
	result, err := b.r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tenant)})
	if err != nil && !strings.HasPrefix(err.Error(), "terminal error") {
		b.t.Fatal(err)
	}
	live := &authv1beta1.Tenant{}
	if client.IgnoreNotFound(b.client.Get(b.t.Context(), client.ObjectKeyFromObject(tenant), live)) != nil {
		b.t.Fatal(err)
	}
	return result, live
}

func reason(tenant *authv1beta1.Tenant) string {
	c := meta.FindStatusCondition(tenant.Status.Conditions, corev1beta1.ConditionReady)
	if c == nil {
		return ""
	}
	return c.Reason
}

func TestGoodTenantIsAccepted(t *testing.T) {
	b := newBench(t)
	tenant := b.tenant(nil)
	b.record(tenant.Spec.CSR)
	result, live := b.reconcile(tenant)
	if reason(live) != authv1beta1.ReasonReady || live.Status.TenantNamespace != tn || live.Status.AuthParams.APIServer != "https://192.0.2.1:6443" {
		t.Fatalf("the status is %+v", live.Status)
	}
	if result.RequeueAfter != 16*time.Hour {
		t.Errorf("looked at again after %s, want two thirds of a day", result.RequeueAfter)
	}
	binding := &rbacv1.RoleBinding{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: tn, Name: offloadingv1beta1.TenantClusterRole}, binding); err != nil {
		t.Fatal(err)
	}
	if s := binding.Subjects; len(s) != 1 || s[0].Kind != "User" || s[0].Name != "liqo.io:tenant:rome" {
		t.Errorf("bound to %+v", s)
	}
	namespace := &corev1.Namespace{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: tn}, namespace); err != nil || namespace.Labels[corev1beta1.RemoteClusterIDLabel] != "rome" {
		t.Errorf("the namespace is labelled %v, %v", namespace.Labels, err)
	}
	if _, again := b.reconcile(tenant); again.ResourceVersion != live.ResourceVersion {
		t.Error("looking again writes")
	}
}

// tenantRights are the subjects of the tenant's RoleBinding, by kind and name.
func (b *bench) tenantRights() (names []string) {
	b.t.Helper()
	binding := &rbacv1.RoleBinding{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: tn, Name: offloadingv1beta1.TenantClusterRole}, binding); err != nil {
		b.t.Fatal(err)
	}
	for _, subject := range binding.Subjects {
		names = append(names, subject.Kind+" "+subject.Name)
	}
	return names
}

// The rights are those of the present peering, go with it, and come back with another key alone.
func TestRevokedPeering(t *testing.T) {
	b := newBench(t)
	b.peeringGroups = true
	tenant := b.tenant(nil)
	b.record(tenant.Spec.CSR)
	_, live := b.reconcile(tenant)
	group := func() []string {
		peering, err := identity.PeeringID(b.key.Public())
		if err != nil {
			t.Fatal(err)
		}
		return []string{"Group liqo.io:peering:" + peering + ":tenant:rome"}
	}
	if diff := cmp.Diff(group(), b.tenantRights()); diff != "" || reason(live) != authv1beta1.ReasonReady {
		t.Fatalf("%s: %s", reason(live), diff)
	}
	live.Spec.RevokedPeering, _ = identity.PeeringID(b.key.Public())
	// That it cannot be verified any more keeps nothing from being revoked.
	live.Spec.Signature = []byte("x")
	if err := b.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	_, live = b.reconcile(tenant)
	if rights := b.tenantRights(); len(rights) != 0 || reason(live) != authv1beta1.ReasonPeeringRevoked || live.Status.AuthParams != nil {
		t.Errorf("revoked as %q with %v, rights of %v", reason(live), live.Status.AuthParams, rights)
	}
	for _, again := range []struct {
		peeringGroups, newKey bool
		want                  string
	}{
		{true, false, authv1beta1.ReasonPeeringRevoked},
		{false, true, authv1beta1.ReasonPeeringRevoked}, // like what the thief has
		{true, true, authv1beta1.ReasonReady},
	} {
		if again.newKey {
			b.key = b.ca.Key()
		}
		answer, err := nonce.Answer(b.key, b.nonce, "rome", "milan", again.peeringGroups)
		if err != nil {
			t.Fatal(err)
		}
		live.Spec.PublicKey, live.Spec.CSR, live.Spec.Signature = answer[authv1beta1.PublicKeyKey], answer[authv1beta1.CSRKey], answer[authv1beta1.SignedNonceKey]
		if err := b.client.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: certificate.TenantRecord()}}
		if err := b.client.Delete(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		b.record(live.Spec.CSR)
		if _, live = b.reconcile(tenant); reason(live) != again.want {
			t.Errorf("peering again, with another key %t, naming it %t, gives %q", again.newKey, again.peeringGroups, reason(live))
		}
	}
	if diff := cmp.Diff(group(), b.tenantRights()); diff != "" {
		t.Error(diff)
	}
}

// G2: a Tenant holds a certificate for the key of the last renewal, so that a consumer that was away for longer than its certificate lived
// need not be peered anew; one that belongs to an earlier peering is of no use.
func TestATenantHoldsACertificateForThePresentKey(t *testing.T) {
	b := newBench(t)
	b.peeringGroups = true
	tenant := b.tenant(nil)
	peering, err := identity.PeeringID(b.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	renewed := b.ca.Key()
	b.record(b.ca.CSR(renewed, identity.TenantSubject("rome").InPeering(peering)))
	_, live := b.reconcile(tenant)
	subject := identity.TenantSubject("rome").InPeering(peering)
	if reason(live) != authv1beta1.ReasonReady || identity.CheckCertificate(live.Status.AuthParams.SignedCRT, renewed.Public(), subject, b.clock.Now()) != nil {
		t.Errorf("%s, with a certificate for another key", reason(live))
	}
	b.clock.Step(22 * time.Hour)
	b.reconcile(tenant)
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := b.client.List(t.Context(), requests); err != nil {
		t.Fatal(err)
	}
	if len(requests.Items) != 1 {
		t.Fatalf("%d certificates were asked for", len(requests.Items))
	}
	if public, err := identity.RequestKey(requests.Items[0].Spec.Request); err != nil || !identity.SamePublicKey(public, renewed.Public()) {
		t.Errorf("a certificate was asked for another key than the present one (%v)", err)
	}
}

func TestBadTenantsGetNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*bench, *authv1beta1.Tenant)
		want   string
	}{
		"another cluster's ID":   {func(_ *bench, x *authv1beta1.Tenant) { x.Spec.ClusterID = "turin" }, authv1beta1.ReasonInvalidTenant},
		"our own ID":             {func(_ *bench, x *authv1beta1.Tenant) { x.Spec.ClusterID = "milan" }, authv1beta1.ReasonInvalidTenant},
		"a signature of nothing": {func(_ *bench, x *authv1beta1.Tenant) { x.Spec.Signature = []byte("x") }, authv1beta1.ReasonSignatureVerificationFailed},
		"a signature by another": {func(b *bench, x *authv1beta1.Tenant) {
			x.Spec.Signature, _ = identity.SignNonce(b.ca.Key().Signer(), b.nonce, "rome", "milan")
		}, authv1beta1.ReasonSignatureVerificationFailed},
		"for another provider": {func(b *bench, x *authv1beta1.Tenant) {
			x.Spec.Signature, _ = identity.SignNonce(b.key.Signer(), b.nonce, "rome", "turin")
		}, authv1beta1.ReasonSignatureVerificationFailed},
		"a CSR with another key": {func(b *bench, x *authv1beta1.Tenant) {
			x.Spec.CSR = b.ca.CSR(b.ca.Key(), identity.TenantSubject("rome"))
		}, authv1beta1.ReasonInvalidCSR},
		"a CSR for another tenant": {func(b *bench, x *authv1beta1.Tenant) { x.Spec.CSR = b.ca.CSR(b.key, identity.TenantSubject("turin")) }, authv1beta1.ReasonInvalidCSR},
		"a CSR for a master": {func(b *bench, x *authv1beta1.Tenant) {
			x.Spec.CSR = b.ca.CSR(b.key, identity.Subject{CommonName: "x", Organizations: []string{"system:masters"}})
		}, authv1beta1.ReasonInvalidCSR},
		"a master without handshake": {func(b *bench, x *authv1beta1.Tenant) {
			x.Spec.AuthzPolicy = authv1beta1.TolerateNoHandshake
			x.Spec.CSR = b.ca.CSR(b.key, identity.Subject{CommonName: "x", Organizations: []string{"system:masters"}})
		}, authv1beta1.ReasonInvalidCSR},
		"no CSR without handshake": {func(_ *bench, x *authv1beta1.Tenant) {
			x.Spec.AuthzPolicy, x.Spec.CSR = authv1beta1.TolerateNoHandshake, nil
		}, authv1beta1.ReasonCSRMissing},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			_, live := b.reconcile(b.tenant(func(x *authv1beta1.Tenant) { tc.change(b, x) }))
			if reason(live) != tc.want || live.Status.AuthParams != nil {
				t.Errorf("reason %q, parameters %v", reason(live), live.Status.AuthParams)
			}
		})
	}
}

func TestNonceServesOnce(t *testing.T) {
	b := newBench(t)
	tenant := b.tenant(nil)
	b.record(tenant.Spec.CSR)
	b.reconcile(tenant)
	live := &authv1beta1.Tenant{}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(tenant), live); err != nil {
		t.Fatal(err)
	}
	live.Finalizers = nil
	if err := b.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if err := b.client.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	_, replayed := b.reconcile(b.tenant(func(x *authv1beta1.Tenant) { x.UID = "t2" }))
	if reason(replayed) != authv1beta1.ReasonNonceReplayed {
		t.Errorf("a replay gives %q", reason(replayed))
	}
}

// offloads is a tenant that was accepted, as it was made and as it is, and the map of what it has here.
func offloads(t *testing.T) (b *bench, tenant, live *authv1beta1.Tenant, namespaceMap *offloadingv1beta1.NamespaceMap) {
	t.Helper()
	namespaceMap = &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "theirs",
		Labels: map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "rome"}}}
	b = newBench(t, namespaceMap)
	tenant = b.tenant(nil)
	b.record(tenant.Spec.CSR)
	_, live = b.reconcile(tenant)
	return b, tenant, live, namespaceMap
}

// A tenant that was never drained is deleted with all that it has, as by unpeering.
func TestAnActiveTenantIsDeleted(t *testing.T) {
	b, tenant, live, namespaceMap := offloads(t)
	if err := b.client.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	b.reconcile(tenant)
	for _, object := range []client.Object{live, namespaceMap, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: offloadingv1beta1.TenantClusterRole}}} {
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is still there (%v)", object, object.GetName(), err)
		}
	}
}

// A tenant that was drained once and is not any more loses nothing to a cache of the past: all that runs here for it would go.
func TestACacheOfThePastDrainsNobody(t *testing.T) {
	b, tenant, live, namespaceMap := offloads(t)
	past := live.DeepCopy()
	past.Spec.TenantCondition = authv1beta1.TenantDrained
	namespace := &corev1.Namespace{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: tn}, namespace); err != nil {
		t.Fatal(err)
	}
	then := fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme, corev1beta1.AddToScheme},
		Objects: []client.Object{past, namespace, namespaceMap.DeepCopy()}})
	b.r.client = fakeapi.Past{Client: b.client, Then: then}
	result, _ := b.reconcile(tenant)
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(namespaceMap), namespaceMap); err != nil || result.RequeueAfter == 0 {
		t.Errorf("the NamespaceMap: %v; again in %s", err, result.RequeueAfter)
	}
	binding := &rbacv1.RoleBinding{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: tn, Name: offloadingv1beta1.TenantClusterRole}, binding); err != nil {
		t.Errorf("the tenant's rights: %v", err)
	}
	b.r.client = b.client
	if _, live = b.reconcile(tenant); reason(live) != authv1beta1.ReasonReady || live.Status.AuthParams == nil {
		t.Errorf("once the cache has caught up it is %q", reason(live))
	}
}

func TestDrainAndDelete(t *testing.T) {
	copied := map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "rome"}
	theirs := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "theirs", Labels: copied}}
	ours := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "ours", Labels: map[string]string{corev1beta1.ReplicationLabel: "true"}}}
	namespaceMap := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "theirs", Labels: copied}}
	b := newBench(t, theirs, ours, namespaceMap)
	tenant := b.tenant(nil)
	b.record(tenant.Spec.CSR)
	_, live := b.reconcile(tenant)
	live.Spec.TenantCondition = authv1beta1.TenantDrained
	if err := b.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	_, live = b.reconcile(tenant)
	if reason(live) != authv1beta1.ReasonTenantDrained || live.Status.AuthParams != nil {
		t.Errorf("drained as %q with %v", reason(live), live.Status.AuthParams)
	}
	gone := func(object client.Object, want bool) {
		t.Helper()
		err := b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if (err != nil) != want {
			t.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
	gone(theirs, true)
	gone(namespaceMap, false) // its twins hold the tenant's data
	gone(ours, false)         // the other direction of the peering shares nothing but the namespace (V13)
	gone(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: offloadingv1beta1.TenantClusterRole}}, true)
	if err := b.client.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	b.reconcile(tenant)
	gone(namespaceMap, true)
	gone(&authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "rome"}}, true)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: authv1beta1.NonceSecret}}
	gone(secret, false)
	if len(secret.Data[authv1beta1.NonceKey]) != 0 || secret.Annotations[authv1beta1.NonceUsedByAnnotation] != "" {
		t.Error("the nonce of a deleted Tenant is kept")
	}
}

func TestOldestTenantWins(t *testing.T) {
	at := func(name string, seconds int64) authv1beta1.Tenant {
		return authv1beta1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: name, UID: "uid-" + "x", CreationTimestamp: metav1.Unix(seconds, 0)},
			Spec:       authv1beta1.TenantSpec{ClusterID: "rome"},
		}
	}
	first, second := at("b", 1), at("a", 2)
	first.UID, second.UID = "1", "2"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tn}}
	all := []authv1beta1.Tenant{first, second}
	if why := WhyInvalid(&first, namespace, all, "milan"); why != "" {
		t.Error(why)
	}
	if why := WhyInvalid(&second, namespace, all, "milan"); why == "" {
		t.Error("a second Tenant was accepted")
	}
}
