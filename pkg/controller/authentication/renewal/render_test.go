package renewal

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

// A renewal asks for what the present certificate has, and is signed where the provider knows what that is for.
func TestRenewalsAreSigned(t *testing.T) {
	const peering = "0123456789abcdef"
	ca, now := testca.New(t), time.Unix(1_000_000, 0)
	scheme := runtime.NewScheme()
	if err := authv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{client: fake.NewClientBuilder().WithScheme(scheme).Build(), options: Options{ClusterID: "rome"}}
	for name, tc := range map[string]struct {
		of     authv1beta1.IdentityType
		has    identity.Subject
		signed bool
	}{
		"of the control plane":                     {authv1beta1.ControlPlaneIdentityType, identity.TenantSubject("rome").InPeering(peering), true},
		"of the control plane, at an older one":    {authv1beta1.ControlPlaneIdentityType, identity.TenantSubject("rome"), false},
		"of a slice, which the former answers for": {authv1beta1.ResourceSliceIdentityType, identity.SliceSubject("rome", "s").InPeering(peering), false},
	} {
		t.Run(name, func(t *testing.T) {
			keys := &secrets.Keys{Current: ca.Key(), Next: ca.Key()}
			present := ca.CSR(keys.Current, tc.has)
			object := &authv1beta1.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "i", UID: "i1",
				Labels: map[string]string{authv1beta1.ResourceSliceNameLabel: "s"}},
				Spec: authv1beta1.IdentitySpec{ClusterID: "milan", Type: tc.of, AuthParams: authv1beta1.AuthParams{SignedCRT: ca.Sign(present, now, time.Hour)}}}
			renew, err := r.render(object, keys)
			if err != nil {
				t.Fatal(err)
			}
			want := identity.Expectation{Subject: tc.has, PublicKey: keys.Next.Public()}
			if err := identity.CheckCSR(renew.Spec.CSR, want); err != nil {
				t.Error(err)
			}
			if signed := identity.CheckSuccession(present, renew.Spec.CSR, renew.Spec.Signature, "rome", "milan") == nil; signed != tc.signed {
				t.Errorf("signed with the present key: %t", signed)
			}
		})
	}
}
