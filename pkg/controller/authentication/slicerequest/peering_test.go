package slicerequest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

// A slice's CSR is for the peering that the control plane has, with a key that no earlier peering had.
func TestANewPeeringGetsANewKey(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ca, now := testca.New(t), time.Unix(1_000_000, 0)
	const first, second = "0123456789abcdef", "fedcba9876543210"
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", UID: "s1", Labels: map[string]string{
		corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan"}}}
	controlPlane := &authv1beta1.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "controlplane-milan"},
		Spec: authv1beta1.IdentitySpec{ClusterID: "milan", Type: authv1beta1.ControlPlaneIdentityType}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(slice, controlPlane, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "liqo-tenant-milan", Labels: map[string]string{corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: "milan"}}}).Build()
	r := &Reconciler{client: c, events: events.NewFakeRecorder(100), options: Options{
		ClusterID: "rome", Algorithm: identity.AlgorithmEd25519, Secrets: secrets.Store{Client: c, Reader: c}}}
	var before []byte
	for _, step := range []struct {
		sentence, peering string
		changed           bool
	}{
		{"before there is a certificate", "", true}, {"of a provider without peerings", "", false}, {"of the first peering", first, true},
		{"the same again", first, false}, {"of the second peering", second, true},
	} {
		if step.sentence != "before there is a certificate" {
			controlPlane.Spec.AuthParams.SignedCRT = ca.Issue(ca.Key(), identity.TenantSubject("rome").InPeering(step.peering), now, time.Hour)
			if err := c.Update(t.Context(), controlPlane); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(slice)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(slice), slice); err != nil {
			t.Fatal(err)
		}
		want := identity.SliceExpectation("rome", "milan")
		want.Subject = want.InPeering(step.peering)
		keys, err := r.options.Secrets.Keys(t.Context(), slice.Namespace, "resourceslice-milan")
		if err != nil || keys == nil {
			t.Fatalf("the keys: %v, %v", keys, err)
		}
		want.PublicKey = keys.Current.Public()
		if err := identity.CheckCSR(slice.Spec.CSR, want); err != nil {
			t.Errorf("%s: %v", step.sentence, err)
		}
		if public, err := identity.RequestKey(before); err == nil && identity.SamePublicKey(public, want.PublicKey) == step.changed {
			t.Errorf("%s: whether the key is another one is not %t", step.sentence, step.changed)
		}
		before = slice.Spec.CSR
	}
}
