package identity

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

const tn = "liqo-tenant-milan"

func TestIdentityBecomesKubeconfig(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ca := testca.New(t)
	for name, tc := range map[string]struct {
		change func(key identity.KeyPair, i *authv1beta1.Identity)
		want   string
	}{
		"a good identity":           {func(identity.KeyPair, *authv1beta1.Identity) {}, authv1beta1.ReasonReady},
		"a publicly trusted server": {func(_ identity.KeyPair, i *authv1beta1.Identity) { i.Spec.AuthParams.CA = nil }, authv1beta1.ReasonReady},
		"a certificate of another": {func(_ identity.KeyPair, i *authv1beta1.Identity) {
			i.Spec.AuthParams.SignedCRT = ca.Issue(ca.Key(), identity.TenantSubject("rome"), now, time.Hour)
		}, authv1beta1.ReasonCertificateMismatch},
		"a certificate for another": {func(key identity.KeyPair, i *authv1beta1.Identity) {
			i.Spec.AuthParams.SignedCRT = ca.Issue(key, identity.TenantSubject("turin"), now, time.Hour)
		}, authv1beta1.ReasonCertificateMismatch},
		"an expired certificate": {func(key identity.KeyPair, i *authv1beta1.Identity) {
			i.Spec.AuthParams.SignedCRT = ca.Issue(key, identity.TenantSubject("rome"), now.Add(-2*time.Hour), time.Hour)
		}, authv1beta1.ReasonCertificateMismatch},
		"our own service range (W6)": {func(_ identity.KeyPair, i *authv1beta1.Identity) {
			i.Spec.AuthParams.APIServer = "https://kubernetes.default.svc"
		}, authv1beta1.ReasonInvalidEndpoint},
		"loopback (W6)": {func(_ identity.KeyPair, i *authv1beta1.Identity) {
			i.Spec.AuthParams.APIServer = "https://127.0.0.1:6443"
		}, authv1beta1.ReasonInvalidEndpoint},
		"a proxy on loopback (W6)": {func(_ identity.KeyPair, i *authv1beta1.Identity) {
			i.Spec.AuthParams.ProxyURL = ptr.To("http://127.0.0.1:1")
		}, authv1beta1.ReasonInvalidEndpoint},
		"a CA that is none":         {func(_ identity.KeyPair, i *authv1beta1.Identity) { i.Spec.AuthParams.CA = []byte("x") }, authv1beta1.ReasonInvalidEndpoint},
		"a key that is missing":     {func(_ identity.KeyPair, i *authv1beta1.Identity) { i.Spec.ClusterID = "turin" }, authv1beta1.ReasonKeyMissing},
		"a slice that is not named": {func(_ identity.KeyPair, i *authv1beta1.Identity) { i.Spec.Type = authv1beta1.ResourceSliceIdentityType }, authv1beta1.ReasonKeyMissing},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, authv1beta1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&authv1beta1.Identity{}).Build()
			store := secrets.Store{Client: c, Reader: c}
			keys, err := store.EnsureKeys(t.Context(), tn, "controlplane-milan", "milan", identity.AlgorithmEd25519)
			if err != nil {
				t.Fatal(err)
			}
			object := &authv1beta1.Identity{
				ObjectMeta: metav1.ObjectMeta{Namespace: tn, Name: "controlplane-milan", UID: "i1"},
				Spec: authv1beta1.IdentitySpec{
					ClusterID: "milan", Type: authv1beta1.ControlPlaneIdentityType, Namespace: ptr.To("liqo-tenant-rome"),
					AuthParams: authv1beta1.AuthParams{
						CA: ca.PEM, APIServer: "https://192.0.2.1:6443", SignedCRT: ca.Issue(keys.Current, identity.TenantSubject("rome"), now, time.Hour),
					},
				},
			}
			tc.change(keys.Current, object)
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{client: c, events: events.NewFakeRecorder(10), options: Options{ClusterID: "rome", Secrets: store, Clock: testingclock.NewFakePassiveClock(now)}}
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			condition := meta.FindStatusCondition(object.Status.Conditions, corev1beta1.ConditionReady)
			if condition == nil || condition.Reason != tc.want {
				t.Fatalf("ready is %+v", condition)
			}
			secret, err := store.Get(t.Context(), tn, "kubeconfig-controlplane-milan")
			if err != nil || (secret != nil) != (tc.want == authv1beta1.ReasonReady) {
				t.Fatalf("the kubeconfig is %v, %v", secret, err)
			}
			if secret != nil {
				checkKubeconfig(t, secret)
			}
		})
	}
}

func checkKubeconfig(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	config, err := clientcmd.Load(secret.Data[authv1beta1.KubeconfigKey])
	if err != nil {
		t.Fatal(err)
	}
	if ns := config.Contexts[config.CurrentContext].Namespace; ns != "liqo-tenant-rome" || secret.Annotations[authv1beta1.RemoteTenantNamespaceAnnotation] != ns {
		t.Errorf("the namespace is %q", ns)
	}
	if secret.Labels[authv1beta1.IdentityTypeLabel] != "ControlPlane" || secret.Labels[corev1beta1.RemoteClusterIDLabel] != "milan" {
		t.Errorf("the labels are %v", secret.Labels)
	}
}
