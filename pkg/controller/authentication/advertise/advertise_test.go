package advertise

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

func TestEndpoint(t *testing.T) {
	own, published, given := testca.New(t).PEM, testca.New(t).PEM, testca.New(t).PEM
	info, err := clientcmd.Write(clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{"": {Server: "https://203.0.113.1:6443", CertificateAuthorityData: published}}})
	if err != nil {
		t.Fatal(err)
	}
	clusterInfo := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterInfoNamespace, Name: clusterInfoName}, Data: map[string]string{clusterInfoKey: string(info)},
	}
	external := &rest.Config{Host: "https://192.0.2.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: own}}
	internal := &rest.Config{Host: "https://10.96.0.1:443", TLSClientConfig: rest.TLSClientConfig{CAData: own}}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	for name, tc := range map[string]struct {
		advertiser Advertiser
		objects    []client.Object
		want       identity.Endpoint
		refused    string
	}{
		"what the administrator set": {
			Advertiser{Address: "https://api.example.com", CA: given, Config: external}, []client.Object{clusterInfo},
			identity.Endpoint{APIServer: "https://api.example.com", CA: given}, "",
		},
		"only the address is set":      {Advertiser{Address: "https://api.example.com", Config: internal}, nil, identity.Endpoint{APIServer: "https://api.example.com", CA: own}, ""},
		"a publicly trusted server":    {Advertiser{Address: "https://api.example.com", TrustedCA: true}, nil, identity.Endpoint{APIServer: "https://api.example.com"}, ""},
		"what kubeadm published":       {Advertiser{Config: internal}, []client.Object{clusterInfo}, identity.Endpoint{APIServer: "https://203.0.113.1:6443", CA: published}, ""},
		"how we reach it ourselves":    {Advertiser{Config: external}, nil, identity.Endpoint{APIServer: "https://192.0.2.1:6443", CA: own}, ""},
		"never the internal address":   {Advertiser{Config: internal}, nil, identity.Endpoint{}, "apiServer.address"},
		"never loopback":               {Advertiser{Config: &rest.Config{Host: "https://127.0.0.1:6443"}}, nil, identity.Endpoint{}, "apiServer.address"},
		"nothing is known":             {Advertiser{}, nil, identity.Endpoint{}, "apiServer.address"},
		"the CA is not known":          {Advertiser{Address: "https://api.example.com"}, nil, identity.Endpoint{}, "apiServer.ca"},
		"the CA is none":               {Advertiser{Address: "https://api.example.com", CA: []byte("x")}, nil, identity.Endpoint{}, "CA"},
		"plain http is not advertised": {Advertiser{Address: "http://api.example.com"}, nil, identity.Endpoint{}, "https"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.advertiser.Reader = fake.NewClientBuilder().WithObjects(tc.objects...).Build()
			got, err := tc.advertiser.Endpoint(t.Context())
			if tc.refused != "" {
				if err == nil || reconcile.ReasonOf(err) != authv1beta1.ReasonAPIServerUnknown || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
