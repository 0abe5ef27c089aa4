package renewgrant

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

func TestExpect(t *testing.T) {
	key := testca.New(t).Key()
	public, err := key.PublicPEM()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*authv1beta1.Renew)
		want   identity.Subject // empty means refused
	}{
		"of the control plane": {func(*authv1beta1.Renew) {}, identity.TenantSubject("rome")},
		"of a slice": {func(r *authv1beta1.Renew) {
			r.Spec.IdentityType, r.Spec.ResourceSliceRef = authv1beta1.ResourceSliceIdentityType, &corev1.LocalObjectReference{Name: "s"}
		}, identity.SliceSubject("rome", "s")},
		"of no slice":            {func(r *authv1beta1.Renew) { r.Spec.IdentityType = authv1beta1.ResourceSliceIdentityType }, identity.Subject{}},
		"by another cluster":     {func(r *authv1beta1.Renew) { r.Spec.ConsumerClusterID = "turin" }, identity.Subject{}},
		"with a label of others": {func(r *authv1beta1.Renew) { r.Labels[corev1beta1.OriginIDLabel] = "turin" }, identity.Subject{}},
		"without a key":          {func(r *authv1beta1.Renew) { r.Spec.PublicKey = nil }, identity.Subject{}},
	} {
		t.Run(name, func(t *testing.T) {
			renew := &authv1beta1.Renew{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1beta1.OriginIDLabel: "rome"}},
				Spec:       authv1beta1.RenewSpec{ConsumerClusterID: "rome", PublicKey: public, IdentityType: authv1beta1.ControlPlaneIdentityType},
			}
			tc.change(renew)
			got, err := Expect(renew, identity.Access{Consumer: "rome"})
			if (err != nil) != (tc.want.CommonName == "") {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, got.Subject); diff != "" || !identity.SamePublicKey(got.PublicKey, key.Public()) {
				t.Error(diff)
			}
		})
	}
}
