package approval

import (
	"net/netip"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/testca"
	"liqo.io/liqo/pkg/identity"
)

const account = "system:serviceaccount:liqo-tenant-milan:vn"

func facts() Facts {
	return Facts{
		VirtualNodes: []offloadingv1beta1.VirtualNode{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "vn"},
			Spec:       offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"},
		}},
		Pods: []corev1.Pod{{
			Spec:   corev1.PodSpec{ServiceAccountName: "vn"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.5"}, {IP: "fd00::5"}}},
		}},
	}
}

func TestJudge(t *testing.T) {
	ca := testca.New(t)
	key := ca.Key()
	node := identity.Subject{CommonName: "system:node:vn", Organizations: []string{"system:nodes"}}
	clientCSR := func() *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: account,
			Request: ca.CSR(key, node), Usages: identity.ClientUsages(),
		}}
	}
	serving := func(ip string) *certificatesv1.CertificateSigningRequest {
		request, err := identity.NewServingCSR(key.Signer(), "vn", netip.MustParseAddr(ip))
		if err != nil {
			t.Fatal(err)
		}
		return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:vn", Request: request, Usages: identity.ServingUsages(),
		}}
	}
	type csr = certificatesv1.CertificateSigningRequest
	for name, tc := range map[string]struct {
		csr    *csr
		change func(*csr)
		facts  func(*Facts)
		want   bool
	}{
		"the virtual kubelet's first request":     {csr: clientCSR(), want: true},
		"its renewal as the node":                 {csr: clientCSR(), change: func(c *csr) { c.Spec.Username = "system:node:vn" }, want: true},
		"its serving request":                     {csr: serving("10.0.0.5"), want: true},
		"its serving request with IPv6":           {csr: serving("fd00::5"), want: true},
		"the ServiceAccount of another namespace": {csr: clientCSR(), change: func(c *csr) { c.Spec.Username = "system:serviceaccount:default:vn" }},
		"another ServiceAccount":                  {csr: clientCSR(), change: func(c *csr) { c.Spec.Username = "system:serviceaccount:liqo-tenant-milan:default" }},
		"another node":                            {csr: clientCSR(), change: func(c *csr) { c.Spec.Username = "system:node:other" }},
		"a user":                                  {csr: clientCSR(), change: func(c *csr) { c.Spec.Username = "alice" }},
		"more groups": {csr: clientCSR(), change: func(c *csr) {
			c.Spec.Request = ca.CSR(key, identity.Subject{CommonName: "system:node:vn", Organizations: []string{"system:nodes", "system:masters"}})
		}},
		"no group": {csr: clientCSR(), change: func(c *csr) { c.Spec.Request = ca.CSR(key, identity.Subject{CommonName: "system:node:vn"}) }},
		"another name": {csr: clientCSR(), change: func(c *csr) {
			c.Spec.Request = ca.CSR(key, identity.Subject{CommonName: "system:node:real", Organizations: []string{"system:nodes"}})
		}},
		"usages of a server":                       {csr: clientCSR(), change: func(c *csr) { c.Spec.Usages = identity.ServingUsages() }},
		"an address in a client request":           {csr: clientCSR(), change: func(c *csr) { c.Spec.Request = serving("10.0.0.5").Spec.Request }},
		"garbage":                                  {csr: clientCSR(), change: func(c *csr) { c.Spec.Request = []byte("x") }},
		"the address of somebody else's pod (N10)": {csr: serving("10.0.0.6")},
		"a serving request by the ServiceAccount":  {csr: serving("10.0.0.5"), change: func(c *csr) { c.Spec.Username = account }},
		"a serving request for a client":           {csr: serving("10.0.0.5"), change: func(c *csr) { c.Spec.Usages = identity.ClientUsages() }},
		"no pod":                                   {csr: serving("10.0.0.5"), facts: func(f *Facts) { f.Pods = nil }},
		"a pod of another ServiceAccount":          {csr: serving("10.0.0.5"), facts: func(f *Facts) { f.Pods[0].Spec.ServiceAccountName = "default" }},
		"a pod that finished":                      {csr: serving("10.0.0.5"), facts: func(f *Facts) { f.Pods[0].Status.Phase = corev1.PodFailed }},
		"a pod in the network of its host":         {csr: serving("10.0.0.5"), facts: func(f *Facts) { f.Pods[0].Spec.HostNetwork = true }},
		"no VirtualNode":                           {csr: clientCSR(), facts: func(f *Facts) { f.VirtualNodes = nil }},
		"two VirtualNodes of the name":             {csr: clientCSR(), facts: func(f *Facts) { f.VirtualNodes = append(f.VirtualNodes, f.VirtualNodes[0]) }},
		"a VirtualNode outside its tenant":         {csr: clientCSR(), facts: func(f *Facts) { f.VirtualNodes[0].Namespace = "default" }},
		"a real node of the name":                  {csr: clientCSR(), facts: func(f *Facts) { f.Node = &corev1.Node{} }},
		"its own virtual node": {csr: clientCSR(), want: true, facts: func(f *Facts) {
			f.Node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			if tc.facts != nil {
				tc.facts(&f)
			}
			if tc.change != nil {
				tc.change(tc.csr)
			}
			if err := Judge(tc.csr, "vn", f); (err == nil) != tc.want {
				t.Errorf("judged %v", err)
			}
		})
	}
	if name := NodeName(clientCSR().Spec.Request); name != "vn" {
		t.Errorf("the request is of node %q", name)
	}
	for _, request := range [][]byte{nil, []byte("x"), make([]byte, identity.MaxCSR+1), ca.CSR(key, identity.TenantSubject("rome"))} {
		if name := NodeName(request); name != "" {
			t.Errorf("a request of no node is of %q", name)
		}
	}
}

func TestConcerns(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if concerns(csr) {
		t.Error("a request without signer concerns us")
	}
	csr.Spec.SignerName = certificatesv1.KubeletServingSignerName
	if !concerns(csr) {
		t.Error("a serving request does not")
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
	if concerns(csr) {
		t.Error("a request that was decided does")
	}
}
