package virtualnode

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestForgetRequests(t *testing.T) {
	const account, node = "system:serviceaccount:liqo-tenant-milan:milan", "system:node:milan"
	ours := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{
		corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: "milan", offloadingv1beta1.VirtualNodeLabel: "milan",
	}}}
	request := func(name, user, signer string) client.Object {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Username: user, SignerName: signer},
		}
	}
	for name, tc := range map[string]struct {
		node *corev1.Node
		left []string
	}{
		"those of the account and of the node go, all others stay":   {ours, []string{"another-account", "another-signer"}},
		"those of a node of that name that is not ours stay as well": {&corev1.Node{}, []string{"another-account", "another-signer", "serving"}},
		"without a node, those of the account go":                    {nil, []string{"another-account", "another-signer", "serving"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t,
				request("client", account, certificatesv1.KubeAPIServerClientKubeletSignerName),
				request("serving", node, certificatesv1.KubeletServingSignerName),
				request("another-account", account+"-2", certificatesv1.KubeAPIServerClientKubeletSignerName),
				request("another-signer", account, certificatesv1.KubeAPIServerClientSignerName),
			)
			if err := w.r.forgetRequests(t.Context(), &scope{vn: virtualNode(), node: tc.node}); err != nil {
				t.Fatal(err)
			}
			var left certificatesv1.CertificateSigningRequestList
			if err := w.List(t.Context(), &left); err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range left.Items {
				names = append(names, left.Items[i].Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(tc.left, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}
