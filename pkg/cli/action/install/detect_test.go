package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/cli/failure"
)

const kubeServer = "https://10.0.0.1:6443"

func node(name string, change func(*corev1.Node), cidrs ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Spec: corev1.NodeSpec{PodCIDRs: cidrs}}
	if change != nil {
		change(&n)
	}
	return n
}

func controlPlaneNode(n *corev1.Node) {
	n.Labels["node-role.kubernetes.io/control-plane"] = ""
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "cp"}, {Type: corev1.NodeInternalIP, Address: "172.18.0.2"}}
}

func TestDetect(t *testing.T) {
	flags := []string{"kube-controller-manager", "--cluster-cidr=10.244.0.0/16,fd00::/56", "--service-cluster-ip-range=10.96.0.0/12,fd01::/108"}
	cases := map[string]struct {
		wishes Wishes
		facts  Facts
		want   Settings
	}{
		"kubeadm, from the controller manager's flags": {
			facts: Facts{Server: kubeServer, Flags: flags, Nodes: []corev1.Node{node("a", nil, "10.244.0.0/24")}},
			want: Settings{Provider: Kubeadm, PodCIDRs: []string{"10.244.0.0/16", "fd00::/56"}, ServiceCIDR: "10.96.0.0/12", APIServerURL: kubeServer,
				Sources: map[string]string{"podCIDRs": "kube-controller-manager", "serviceCIDR": "kube-controller-manager", "apiServerURL": "the kubeconfig"}},
		},
		"kind publishes its API server on loopback, so the node's address is told": {
			facts: Facts{Server: "https://127.0.0.1:41234", Flags: flags, Nodes: []corev1.Node{node("cp", func(n *corev1.Node) {
				n.Spec.ProviderID = "kind://docker/rome/cp"
				controlPlaneNode(n)
			})}},
			want: Settings{Provider: Kind, PodCIDRs: []string{"10.244.0.0/16", "fd00::/56"}, ServiceCIDR: "10.96.0.0/12", APIServerURL: "https://172.18.0.2:6443",
				Sources: map[string]string{"podCIDRs": "kube-controller-manager", "serviceCIDR": "kube-controller-manager", "apiServerURL": "the control plane node"}},
		},
		"k3s, told by its version, with its defaults": {
			facts: Facts{Server: kubeServer, Nodes: []corev1.Node{node("a", func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.36.1+k3s1" })}},
			want: Settings{Provider: K3s, PodCIDRs: []string{"10.42.0.0/16"}, ServiceCIDR: "10.43.0.0/16", APIServerURL: kubeServer,
				Sources: map[string]string{"podCIDRs": "the default of k3s", "serviceCIDR": "the default of k3s", "apiServerURL": "the kubeconfig"}},
		},
		"k3s, told by its label, with ranges of its own": {
			facts: Facts{Server: kubeServer, ServiceCIDRs: []string{"10.99.0.0/16"}, Nodes: []corev1.Node{node("a", func(n *corev1.Node) {
				n.Labels["node.kubernetes.io/instance-type"] = "k3s"
			}, "10.52.1.0/24")}},
			want: Settings{Provider: K3s, PodCIDRs: []string{"10.52.0.0/16"}, ServiceCIDR: "10.99.0.0/16", APIServerURL: kubeServer,
				Sources: map[string]string{"podCIDRs": "the nodes' ranges, widened", "serviceCIDR": "ServiceCIDR kubernetes", "apiServerURL": "the kubeconfig"}},
		},
		"any other, from its nodes and its ServiceCIDR": {
			facts: Facts{Server: "https://rome.example.com", ServiceCIDRs: []string{"10.11.0.0/16", "fd02::/112"}, Nodes: []corev1.Node{
				node("b", nil, "10.10.1.0/24", "fd00:0:0:1::/64"), node("a", nil, "10.10.0.0/24", "fd00::/64"), node("c", nil, "10.9.0.0/24"),
				node("d", func(n *corev1.Node) { n.Spec.PodCIDR = "192.168.0.0/12" }),
			}},
			want: Settings{Provider: Generic, PodCIDRs: []string{"10.9.0.0/16", "10.10.0.0/16", "192.160.0.0/12", "fd00::/56"}, ServiceCIDR: "10.11.0.0/16",
				APIServerURL: "https://rome.example.com",
				Sources:      map[string]string{"podCIDRs": "the nodes' ranges, widened", "serviceCIDR": "ServiceCIDR kubernetes", "apiServerURL": "the kubeconfig"}},
		},
		"what the user said is never overruled": {
			wishes: Wishes{Provider: Generic, PodCIDRs: []string{"10.1.0.0/16"}, ServiceCIDR: "10.2.0.0/16", APIServerURL: "https://lb.example.com", NoSanityCheck: true},
			facts:  Facts{Server: kubeServer, Flags: flags},
			want: Settings{Provider: Generic, PodCIDRs: []string{"10.1.0.0/16"}, ServiceCIDR: "10.2.0.0/16", APIServerURL: "https://lb.example.com",
				Sources: map[string]string{"podCIDRs": "--pod-cidr", "serviceCIDR": "--service-cidr", "apiServerURL": "--api-server-url"}},
		},
		"the address in the kubeconfig may be given too": {
			wishes: Wishes{APIServerURL: "https://rome.example.com:443"},
			facts:  Facts{Server: "https://rome.example.com", Flags: flags},
			want: Settings{Provider: Kubeadm, PodCIDRs: []string{"10.244.0.0/16", "fd00::/56"}, ServiceCIDR: "10.96.0.0/12", APIServerURL: "https://rome.example.com:443",
				Sources: map[string]string{"podCIDRs": "kube-controller-manager", "serviceCIDR": "kube-controller-manager", "apiServerURL": "--api-server-url"}},
		},
		"what values say is not detected": {
			wishes: Wishes{AddressElsewhere: true, PodCIDRsElsewhere: true, ServiceCIDRElsewhere: true},
			facts:  Facts{Server: "https://localhost:6443"},
			want:   Settings{Provider: Generic, Sources: map[string]string{"podCIDRs": "", "serviceCIDR": ""}},
		},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			got, err := Detect(test.wishes, test.facts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDetectAsksForWhatItCannotFindOut(t *testing.T) {
	const way = ": say how other clusters reach it with --api-server-url https://ADDRESS:PORT"
	known := Wishes{PodCIDRs: []string{"10.1.0.0/16"}, ServiceCIDR: "10.2.0.0/16"}
	with := func(address string) Wishes {
		wishes := known
		wishes.APIServerURL = address
		return wishes
	}
	cases := map[string]struct {
		wishes Wishes
		server string
		code   failure.Code
		want   string
	}{
		"pod CIDR":     {Wishes{}, kubeServer, failure.Precondition, "the cluster's pod CIDR could not be detected: give it with --pod-cidr, for example --pod-cidr 10.244.0.0/16"},
		"service CIDR": {Wishes{PodCIDRs: []string{"10.1.0.0/16"}}, kubeServer, failure.Precondition, "the cluster's service CIDR could not be detected: give it with --service-cidr, for example --service-cidr 10.96.0.0/12"},
		"a loopback address in the kubeconfig": {known, "https://127.0.0.1:6443", failure.Precondition,
			"the address of the API server in the kubeconfig, https://127.0.0.1:6443, cannot be used by other clusters: that address is another machine to them" + way},
		"localhost in the kubeconfig": {known, "https://LocalHost:6443", failure.Precondition,
			"the address of the API server in the kubeconfig, https://LocalHost:6443, cannot be used by other clusters: localhost is another machine to them" + way},
		"no encryption":        {with("http://10.0.0.1"), kubeServer, failure.Usage, "--api-server-url http://10.0.0.1: it does not begin with https://" + way},
		"no host":              {with("https://"), kubeServer, failure.Usage, "--api-server-url https://: it names no host" + way},
		"credentials in a URL": {with("https://me:secret@a"), kubeServer, failure.Usage, "--api-server-url https://me:secret@a: it must have nothing but host, port and path" + way},
		"a link-local address": {with("https://[fe80::1]:6443"), kubeServer, failure.Usage, "--api-server-url https://[fe80::1]:6443: that address is another machine to them" + way},
		"another address than the kubeconfig's": {with("https://10.0.0.2:6443"), kubeServer, failure.Precondition,
			"--api-server-url https://10.0.0.2:6443 is not the address in the kubeconfig, https://10.0.0.1:6443: if it is right nevertheless, add --disable-api-server-sanity-check"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			_, err := Detect(test.wishes, Facts{Server: test.server})
			if err == nil || err.Error() != test.want || failure.CodeOf(err) != test.code {
				t.Errorf("got %v (code %d), want %s (code %d)", err, failure.CodeOf(err), test.want, test.code)
			}
		})
	}
}

func pod(ip string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Status: corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning}}
	if change != nil {
		change(&p)
	}
	return p
}

func service(ip string) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: ip}}
}

func TestCheckRanges(t *testing.T) {
	good := Settings{PodCIDRs: []string{"10.1.0.0/16"}, ServiceCIDR: "10.2.0.0/16"}
	cases := map[string]struct {
		settings Settings
		reserved []string
		facts    Facts
		want     string
	}{
		"all in place": {good, []string{"10.3.0.0/16"}, Facts{
			Pods: []corev1.Pod{
				pod("10.1.2.3", nil), pod("192.168.0.1", func(p *corev1.Pod) { p.Spec.HostNetwork = true }), pod("", nil), pod("fd00::1", nil),
				pod("10.9.0.1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
				pod("10.9.0.1", func(p *corev1.Pod) { p.Labels = map[string]string{"liqo.io/shadowPod": "true"} }),
			},
			Services: []corev1.Service{service("10.2.0.1"), service("None"), service("fd01::1")},
		}, ""},
		"a pod elsewhere":                {good, nil, Facts{Pods: []corev1.Pod{pod("10.9.0.1", nil)}}, "pod shop/web has the address 10.9.0.1, which is not in the pod CIDR 10.1.0.0/16: give the right ranges with --pod-cidr (repeat it for several), or add --skip-validation"},
		"a service elsewhere":            {good, nil, Facts{Services: []corev1.Service{service("10.9.0.1")}}, "service shop/web has the address 10.9.0.1, which is not in the service CIDR 10.2.0.0/16: give the right range with --service-cidr, or add --skip-validation"},
		"a pod CIDR that is none":        {Settings{PodCIDRs: []string{"10.1.0.0"}}, nil, Facts{}, "the pod CIDR \"10.1.0.0\" is not a CIDR: write it as ADDRESS/LENGTH, for example --pod-cidr 10.0.0.0/16"},
		"host bits":                      {Settings{PodCIDRs: []string{"10.1.2.3/16"}}, nil, Facts{}, "the pod CIDR 10.1.2.3/16 has host bits set: write it as --pod-cidr 10.1.0.0/16"},
		"pod CIDRs that overlap":         {Settings{PodCIDRs: []string{"10.0.0.0/8", "10.1.0.0/16"}}, nil, Facts{}, "the pod CIDRs 10.0.0.0/8 and 10.1.0.0/16 overlap: correct --pod-cidr"},
		"a service CIDR that is none":    {Settings{ServiceCIDR: "x"}, nil, Facts{}, "the service CIDR \"x\" is not a CIDR: write it as ADDRESS/LENGTH, for example --service-cidr 10.0.0.0/16"},
		"services among pods":            {Settings{PodCIDRs: []string{"10.0.0.0/8"}, ServiceCIDR: "10.2.0.0/16"}, nil, Facts{}, "the pod CIDR 10.0.0.0/8 and the service CIDR 10.2.0.0/16 overlap: correct them with --pod-cidr and --service-cidr"},
		"a reserved subnet that is none": {good, []string{"ten"}, Facts{}, "the reserved subnet \"ten\" is not a CIDR: write it as ADDRESS/LENGTH, for example --reserved-subnets 10.0.0.0/16"},
		"nothing known":                  {Settings{}, nil, Facts{Pods: []corev1.Pod{pod("10.9.0.1", nil)}}, ""},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if err := CheckRanges(test.settings, test.reserved, test.facts); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheckNetwork(t *testing.T) {
	settings := Settings{PodCIDRs: []string{"10.1.0.0/16"}, ServiceCIDR: "10.2.0.0/16"}
	const another = ": choose another one with --set ipam.externalCIDR=CIDR, or leave it out to have a free one found"
	for sentence, test := range map[string]struct {
		ranges Ranges
		want   string
	}{
		"nothing said":                  {Ranges{}, ""},
		"all free":                      {Ranges{External: "10.70.0.0/16", Internal: "10.80.0.0/16", Pools: []string{"10.0.0.0/8"}, Reserved: []string{"10.9.0.0/16"}}, ""},
		"pods are there":                {Ranges{External: "10.1.7.0/24"}, "the external CIDR 10.1.7.0/24 and the pod CIDR 10.1.0.0/16 overlap" + another},
		"Services are there":            {Ranges{External: "10.0.0.0/8"}, "the external CIDR 10.0.0.0/8 and the pod CIDR 10.1.0.0/16 overlap" + another},
		"it is reserved":                {Ranges{External: "10.9.1.0/24", Reserved: []string{"10.9.0.0/16"}}, "the external CIDR 10.9.1.0/24 and the reserved subnet 10.9.0.0/16 overlap" + another},
		"a node is there":               {Ranges{External: "172.18.0.0/16"}, "the external CIDR 172.18.0.0/16 and the address of node cp 172.18.0.2 overlap" + another},
		"the external one is there":     {Ranges{External: "10.70.0.0/16", Internal: "10.70.0.0/24"}, "the internal CIDR 10.70.0.0/24 and the external CIDR 10.70.0.0/16 overlap: choose another one with --set ipam.internalCIDR=CIDR, or leave it out to have a free one found"},
		"an external CIDR that is none": {Ranges{External: "x"}, "the external CIDR \"x\" is not a CIDR: write it as ADDRESS/LENGTH, for example --set ipam.externalCIDR=10.0.0.0/16"},
		"a pool with host bits":         {Ranges{Pools: []string{"10.1.2.3/8"}}, "the pool 10.1.2.3/8 has host bits set: write it as --set ipam.pools[0]=10.0.0.0/8"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if err := CheckNetwork(test.ranges, settings, Facts{Nodes: []corev1.Node{node("cp", controlPlaneNode)}}); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The network carries IPv4. A cluster of two families has it; one of IPv6 alone is told so.
func TestTheNetworkNeedsPodsOfIPv4(t *testing.T) {
	const alone = "the network module carries IPv4 alone, and the pod CIDR is fd00::/56: name a range of IPv4 with --pod-cidr, or install with --set networking.enabled=false"
	for sentence, test := range map[string]struct {
		pods []string
		want string
	}{
		"two families": {[]string{"10.244.0.0/16", "fd00::/56"}, ""}, "IPv6 alone": {[]string{"fd00::/56"}, alone}, "given elsewhere": {nil, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if err := CheckFamily(test.pods); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestManagerFlags(t *testing.T) {
	static := pod("", func(p *corev1.Pod) {
		p.Namespace, p.Labels = "kube-system", map[string]string{"component": "kube-controller-manager", "tier": "control-plane"}
		p.Spec.Containers = []corev1.Container{{Command: []string{"kube-controller-manager"}, Args: []string{"--cluster-cidr", "10.244.0.0/16"}}}
	})
	words := managerFlags([]corev1.Pod{pod("", nil), static})
	if got := flag(words, "cluster-cidr"); got != "10.244.0.0/16" {
		t.Errorf("found %q", got)
	}
	if got := flag(words, "service-cluster-ip-range"); got != "" {
		t.Errorf("found %q", got)
	}
}
