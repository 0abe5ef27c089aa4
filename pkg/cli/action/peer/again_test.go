package peer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

// expired stands for a certificate that cannot be used.
const expired = "expired"

// keyholders play the controllers of two clusters that name peerings: rome keeps its key in a Secret, milan gives rights to one peering.
type keyholders struct {
	*controllers
	ca *testca.CA
	// recorded is the request of the certificate that milan issued last; nil if it is the Tenant's.
	recorded []byte
}

func (k *keyholders) rome(ctx context.Context, store client.Client, written client.Object) {
	if object, ok := written.(*authv1beta1.Identity); ok && string(object.Spec.AuthParams.SignedCRT) == expired {
		return
	}
	signed, ok := written.(*corev1.Secret)
	if !ok || signed.Name != authv1beta1.SignedNonceSecret {
		k.react(ctx, store, written)
		return
	}
	if len(signed.Data[authv1beta1.SignedNonceKey]) != 0 {
		return
	}
	name := types.NamespacedName{Namespace: signed.Namespace, Name: "liqo-key-controlplane-milan"}
	secret := &corev1.Secret{}
	if err := store.Get(ctx, name, secret); err != nil {
		k.key = k.ca.Key()
		data, err := k.key.Data()
		if err != nil {
			k.t.Error(err)
		}
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: types.UID("key-" + signed.ResourceVersion)}, Data: data}
		if err := store.Create(ctx, secret); err != nil {
			k.t.Error(err)
		}
	}
	key, err := identity.KeyPairFromData(secret.Data)
	if err != nil {
		k.t.Error(err)
	}
	k.key = key
	subject := identity.TenantSubject("rome")
	if signed.Annotations[authv1beta1.PeeringGroupsAnnotation] == "true" {
		subject = subject.InPeering(peeringOf(k.t, key))
	}
	public, err := key.PublicPEM()
	if err != nil {
		k.t.Error(err)
	}
	signed.Data[authv1beta1.SignedNonceKey], signed.Data[authv1beta1.PublicKeyKey] = []byte("signed"), public
	signed.Data[authv1beta1.CSRKey] = k.ca.CSR(key, subject)
	if err := store.Update(ctx, signed); err != nil {
		k.t.Error(err)
	}
}

func (k *keyholders) milan(ctx context.Context, store client.Client, written client.Object) {
	tenant, ok := written.(*authv1beta1.Tenant)
	if !ok {
		k.react(ctx, store, written)
		return
	}
	access := identity.AccessOf(&tenant.Spec)
	csr := access.PresentRequest(k.recorded, tenant.Spec.CSR)
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: authv1beta1.ReasonReady}
	if access.Revoked {
		condition.Status, condition.Reason = metav1.ConditionFalse, authv1beta1.ReasonPeeringRevoked
		tenant.Status.AuthParams = nil
	} else {
		tenant.Status.TenantNamespace = tenant.Namespace
		tenant.Status.AuthParams = &authv1beta1.AuthParams{APIServer: "https://10.0.0.2:6443", SignedCRT: k.ca.Sign(csr, time.Now(), time.Hour)}
	}
	meta.SetStatusCondition(&tenant.Status.Conditions, condition)
	if err := store.Status().Update(ctx, tenant); err != nil {
		k.t.Error(err)
	}
}

func peeringOf(t *testing.T, key identity.KeyPair) string {
	t.Helper()
	peering, err := identity.PeeringID(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return peering
}

// again is rome, peered with a provider of this release or the one before.
func again(t *testing.T, peeringGroups bool) (pair, *keyholders) {
	t.Helper()
	plays := &keyholders{controllers: &controllers{}, ca: testca.New(t)}
	nonce := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: authv1beta1.NonceSecret,
		Labels: map[string]string{authv1beta1.NonceLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"}}, Data: map[string][]byte{authv1beta1.NonceKey: []byte("nonce")}}
	if peeringGroups {
		nonce.Annotations = map[string]string{authv1beta1.PeeringGroupsAnnotation: "true"}
	}
	p := newPair(t, plays.controllers, func(consumer, provider *fixture.Options) {
		consumer.React, provider.React = plays.rome, plays.milan
		provider.Objects = []client.Object{nonce}
	})
	if _, err := peer.Run(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	return p, plays
}

func (p pair) tenant(t *testing.T) *authv1beta1.Tenant {
	t.Helper()
	tenant := &authv1beta1.Tenant{}
	if err := p.provider.Client.Get(t.Context(), types.NamespacedName{Namespace: "liqo-tenant-rome", Name: "rome"}, tenant); err != nil {
		t.Fatal(err)
	}
	return tenant
}

// unusable plays what the identity controller says of a certificate that has expired or has no rights.
func (p pair) unusable(t *testing.T) *authv1beta1.Identity {
	t.Helper()
	object := &authv1beta1.Identity{}
	if err := p.consumer.Client.Get(t.Context(), types.NamespacedName{Namespace: "liqo-tenant-milan", Name: "controlplane-milan"}, object); err != nil {
		t.Fatal(err)
	}
	object.Spec.AuthParams.SignedCRT = []byte(expired)
	if err := p.consumer.Client.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: authv1beta1.ReasonCertificateMismatch})
	if err := p.consumer.Client.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestThePeeringIsNamedToWhoKnowsOfIt(t *testing.T) {
	for _, knows := range []bool{true, false} {
		p, plays := again(t, knows)
		if got, want := identity.AccessOf(&p.tenant(t).Spec).Peering, map[bool]string{true: peeringOf(t, plays.key)}[knows]; got != want {
			t.Errorf("a provider that knows of peerings (%t) is named %q, want %q", knows, got, want)
		}
	}
}

// Who is peered again after its peering was revoked has another key.
func TestPeeringAgainAfterARevocation(t *testing.T) {
	p, plays := again(t, true)
	stolen := peeringOf(t, plays.key)
	tenant := p.tenant(t)
	tenant.Spec.RevokedPeering = stolen
	if err := p.provider.Client.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	cutOff := &corev1beta1.ForeignCluster{Spec: corev1beta1.ForeignClusterSpec{ClusterID: "rome"}, ObjectMeta: metav1.ObjectMeta{Name: "rome",
		Annotations: map[string]string{corev1beta1.CutOffAnnotation: "true", corev1beta1.CutOffByAnnotation: "alice at noon"}}}
	if err := p.provider.Client.Create(t.Context(), cutOff); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Run(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	known, err := p.provider.ForeignCluster(t.Context(), "rome")
	if err != nil || known.IsCutOff() || len(known.Annotations) > 0 {
		t.Errorf("the provider still has it cut off: %v (%v)", known.Annotations, err)
	}
	access := identity.AccessOf(&p.tenant(t).Spec)
	if access.Peering == stolen || access.Peering != peeringOf(t, plays.key) || access.Revoked {
		t.Errorf("peered as %+v, after %s", access, stolen)
	}
	if !strings.Contains(strings.Join(p.consumer.Writes(), "\n"), "delete Secret liqo-tenant-milan/liqo-key-controlplane-milan") {
		t.Errorf("wrote %v", p.consumer.Writes())
	}
}

// G2: the provider has a certificate ready for the present key of a consumer that was away for longer than its own lived.
func TestACertificateThatExpiredIsReplacedWithoutPeeringAnew(t *testing.T) {
	p, _ := again(t, true)
	before := p.tenant(t)
	object, writes := p.unusable(t), len(p.provider.Writes())
	if _, err := peer.Run(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	if wrote := p.provider.Writes()[writes:]; len(wrote) > 0 {
		t.Errorf("wrote %v at the provider", wrote)
	}
	if err := p.consumer.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || string(object.Spec.AuthParams.SignedCRT) != string(before.Status.AuthParams.SignedCRT) {
		t.Errorf("the Identity holds another certificate than the Tenant (%v)", err)
	}
}

// A peering that ended at the provider alone does not have its certificates back with the next.
func TestPeeringAgainAfterTheProviderForgotTheTenant(t *testing.T) {
	p, plays := again(t, true)
	ended := peeringOf(t, plays.key)
	if err := p.provider.Client.Delete(t.Context(), p.tenant(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Run(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	if access := identity.AccessOf(&p.tenant(t).Spec); access.Peering == ended || access.Peering != peeringOf(t, plays.key) {
		t.Errorf("peered as %+v, after %s", access, ended)
	}
}

// A12: a consumer that has the key of its peering back from a backup, of which the provider knows a successor, is peered with a new one.
func TestAKeyFromABackupIsReplaced(t *testing.T) {
	p, plays := again(t, true)
	first := peeringOf(t, plays.key)
	tenant := p.tenant(t)
	plays.recorded = plays.ca.CSR(plays.ca.Key(), identity.TenantSubject("rome").InPeering(first))
	tenant.Status.AuthParams.SignedCRT = plays.ca.Sign(plays.recorded, time.Now(), time.Hour)
	if err := p.provider.Client.Status().Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	p.unusable(t)
	if _, err := peer.Run(t.Context(), p.options()); err != nil {
		t.Fatal(err)
	}
	if access := identity.AccessOf(&p.tenant(t).Spec); access.Peering == first || access.Peering != peeringOf(t, plays.key) {
		t.Errorf("peered as %+v, after %s", access, first)
	}
}

// A namespace that is offloaded stays so, whatever becomes of a peering: who peers again need not offload it.
func TestNamespacesThatAreOffloadedAlreadyAreTold(t *testing.T) {
	offloading := func(namespace, region string) *offloadingv1beta1.NamespaceOffloading {
		o := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
		if region != "" {
			o.Spec.ClusterSelector.NodeSelectorTerms = []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "region", Operator: corev1.NodeSelectorOpIn, Values: []string{region}}}}}
		}
		return o
	}
	leaving := offloading("leaving", "")
	leaving.Finalizers = []string{"test/held"}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    []string
	}{
		"none is":  {nil, nil},
		"some are": {[]client.Object{offloading("web", ""), offloading("shop", "north"), offloading("elsewhere", "south"), leaving}, []string{"shop", "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := again(t, true)
			node := &corev1.Node{}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(p.consumer.Client.Get(t.Context(), types.NamespacedName{Name: "milan"}, node))
			node.Labels["region"] = "north"
			must(p.consumer.Client.Update(t.Context(), node))
			for _, object := range tc.objects {
				must(p.consumer.Client.Create(t.Context(), object.DeepCopyObject().(client.Object)))
			}
			if len(tc.objects) > 0 {
				must(p.consumer.Client.Delete(t.Context(), leaving.DeepCopy()))
			}
			report, err := peer.Run(t.Context(), p.options())
			must(err)
			if diff := cmp.Diff(tc.want, report.Offloaded); diff != "" {
				t.Error(diff)
			}
		})
	}
}
