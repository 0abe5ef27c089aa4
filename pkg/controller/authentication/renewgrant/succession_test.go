package renewgrant

import (
	"context"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/advertise"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

const tn = "liqo-tenant-rome"

// Who stole a certificate of the control plane gets no other with a key of its own, once the consumer has renewed.
func TestRenewalsOfTheControlPlaneSucceedOneAnother(t *testing.T) {
	ca, now := testca.New(t), time.Unix(1_000_000, 0)
	first, second, third := ca.Key(), ca.Key(), ca.Key()
	peering, err := identity.PeeringID(first.Public())
	if err != nil {
		t.Fatal(err)
	}
	named, bare := identity.TenantSubject("rome").InPeering(peering), identity.TenantSubject("rome")
	for name, tc := range map[string]struct {
		subject identity.Subject
		// without says that the consumer was introduced by a release that names no peering.
		without bool
		// recorded is the key of the certificate that was issued last, signer that with which the renewal is signed, if any.
		recorded, signer identity.KeyPair
		revoked          bool
		want             string
	}{
		"signed with the present key":                {subject: named, recorded: second, signer: second, want: authv1beta1.ReasonCertificatePending},
		"the first one":                              {subject: named, recorded: first, signer: first, want: authv1beta1.ReasonCertificatePending},
		"signed with an earlier key":                 {subject: named, recorded: second, signer: first, want: authv1beta1.ReasonRenewalNotSigned},
		"signed with its own key":                    {subject: named, recorded: second, signer: third, want: authv1beta1.ReasonRenewalNotSigned},
		"not signed":                                 {subject: named, recorded: second, want: authv1beta1.ReasonRenewalNotSigned},
		"not naming the peering":                     {subject: bare, recorded: second, signer: second, want: authv1beta1.ReasonInvalidCSR},
		"of a peering that was revoked":              {subject: named, recorded: second, signer: second, revoked: true, want: authv1beta1.ReasonPeeringRevoked},
		"not signed, of a release without peerings":  {subject: bare, without: true, recorded: first, want: authv1beta1.ReasonCertificatePending},
		"named, of a release that is peered without": {subject: named, without: true, recorded: first, signer: first, want: authv1beta1.ReasonInvalidCSR},
	} {
		t.Run(name, func(t *testing.T) {
			introduced := named
			if tc.without {
				introduced = bare
			}
			tenant := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "rome", UID: "t1"},
				Spec:   authv1beta1.TenantSpec{ClusterID: "rome", CSR: ca.CSR(first, introduced)},
				Status: authv1beta1.TenantStatus{TenantNamespace: tn}}
			if tc.revoked {
				tenant.Spec.RevokedPeering = peering
			}
			public, err := third.PublicPEM()
			if err != nil {
				t.Fatal(err)
			}
			renew := &authv1beta1.Renew{
				ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "controlplane-milan", Labels: map[string]string{
					corev1beta1.OriginIDLabel: "rome", corev1beta1.ReplicatedLabel: "true"}},
				Spec: authv1beta1.RenewSpec{ConsumerClusterID: "rome", PublicKey: public, CSR: ca.CSR(third, tc.subject), IdentityType: authv1beta1.ControlPlaneIdentityType},
			}
			if tc.signer.Signer() != nil {
				if renew.Spec.Signature, err = identity.SignRenewal(tc.signer.Signer(), renew.Spec.CSR, "rome", "milan"); err != nil {
					t.Fatal(err)
				}
			}
			recorded := ca.CSR(tc.recorded, introduced)
			record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: certificate.TenantRecord(), Labels: map[string]string{corev1beta1.ManagedLabel: "true"}},
				Data: map[string][]byte{authv1beta1.CSRKey: recorded, authv1beta1.CertificateKey: ca.Sign(recorded, now, 24*time.Hour)}}
			r, c := newReconciler(t, ca, now, tenant, renew, record)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(renew)}); err != nil {
				t.Log(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(renew), renew); err != nil {
				t.Fatal(err)
			}
			if ready := meta.FindStatusCondition(renew.Status.Conditions, corev1beta1.ConditionReady); ready == nil || ready.Reason != tc.want {
				t.Errorf("answered with %+v, want %s", ready, tc.want)
			}
			requests := &certificatesv1.CertificateSigningRequestList{}
			if err := c.List(t.Context(), requests); err != nil {
				t.Fatal(err)
			}
			if asked := len(requests.Items) == 1; asked != (tc.want == authv1beta1.ReasonCertificatePending) {
				t.Errorf("the cluster was asked for %d certificates", len(requests.Items))
			}
		})
	}
}

func newReconciler(t *testing.T, ca *testca.CA, now time.Time, objects ...client.Object) (*Reconciler, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tn, Labels: map[string]string{
		corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"}}})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&authv1beta1.Renew{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if request, ok := object.(*certificatesv1.CertificateSigningRequest); ok {
				request.Spec.Username = "us"
			}
			return c.Create(ctx, object, options...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, _ string, object client.Object, _ ...client.SubResourceUpdateOption) error {
			return c.Update(ctx, object)
		},
	}).Build()
	store, clock := secrets.Store{Client: c, Reader: c}, testingclock.NewFakeClock(now)
	return &Reconciler{client: c, events: events.NewFakeRecorder(100), options: Options{ClusterID: "milan",
		Issuer:     &certificate.Issuer{Secrets: store, Client: c, Reader: c, Clock: clock, Username: "us"},
		Advertiser: advertise.Advertiser{Address: "https://192.0.2.1:6443", CA: ca.PEM, Reader: c},
	}}, c
}
