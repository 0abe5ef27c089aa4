package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/mirroring"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
)

// milanIs is the Configuration of cluster milan, whose pods have the addresses of ours; empty ranges are not given yet.
func milanIs(seenPods, seenExternal networkingv1beta1.CIDR) *networkingv1beta1.Configuration {
	ranges := func(pod, external networkingv1beta1.CIDR) networkingv1beta1.ClusterConfig {
		return networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: []networkingv1beta1.CIDR{pod}, External: []networkingv1beta1.CIDR{external}}}
	}
	c := &networkingv1beta1.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}},
		Spec:       networkingv1beta1.ConfigurationSpec{Remote: ranges("10.244.0.0/16", "10.70.0.0/16")},
	}
	if status := ranges(seenPods, seenExternal); seenPods != "" {
		c.Status.Remote = &status
	}
	return c
}

func apiServerIP(name, kind string, status networkingv1beta1.IP) *ipamv1alpha1.IP {
	return &ipamv1alpha1.IP{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{ipamv1alpha1.IPTypeLabel: kind}}, Status: ipamv1alpha1.IPStatus{IP: status}}
}

// milan is the network to cluster milan, of a cluster whose API server is in no namespace.
func milan(changed func(context.Context)) *Network {
	return New(Options{Enabled: true, Provider: "milan", Changed: changed, Addresses: func(translation.Peers, translation.Externals) {}})
}

// shown are the addresses that the local pod of a remote one shows, given what the VirtualNode pins.
func shown(t *testing.T, n *Network, pinned, remote string) string {
	t.Helper()
	own := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{offloadingv1beta1.RemotePodCIDRsAnnotation: pinned}}}
	of := settings.Settings{Node: vn}.OfPods(t.Context(), own)
	n.Apply(&of)
	status, _ := reflection.LocalStatus(&corev1.Pod{}, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: remote, PodIPs: []corev1.PodIP{{IP: remote}}}},
		reflection.StatusInput{PodPrefixes: of.PodPrefixes, OwnPrefixes: of.OwnPrefixes, Reserved: addressing.Reserved, Addresses: of.Addresses})
	if len(status.PodIPs) > 0 && status.PodIPs[0].IP != status.PodIP {
		t.Errorf("podIP %s, podIPs %v", status.PodIP, status.PodIPs)
	}
	return status.PodIP
}

// A pod at the provider is shown where this cluster reaches it, also if it has the address of one of ours. Addresses outside of the
// provider's own ranges are not believed, whatever they would be translated to.
func TestAddressesOfPodsAreTranslated(t *testing.T) {
	mapped := milanIs("10.61.0.0/16", "10.71.0.0/16")
	turin := milanIs("10.61.0.0/16", "10.71.0.0/16")
	turin.Labels[corev1beta1.RemoteClusterIDLabel] = "turin"
	for name, tc := range map[string]struct {
		configurations []*networkingv1beta1.Configuration
		pinned, remote string
		want           string
	}{
		"without a Configuration they are what they are":    {nil, "10.99.0.0/16", "10.99.2.2", "10.99.2.2"},
		"by the provider's Configuration":                   {[]*networkingv1beta1.Configuration{mapped}, "none", "10.244.2.2", "10.61.2.2"},
		"whatever was pinned before":                        {[]*networkingv1beta1.Configuration{mapped}, "10.99.0.0/16", "10.99.2.2", ""},
		"not into what is ours":                             {[]*networkingv1beta1.Configuration{milanIs("10.244.0.0/16", "10.71.0.0/16")}, "none", "10.244.2.2", ""},
		"one of its external range is no pod's":             {[]*networkingv1beta1.Configuration{mapped}, "none", "10.70.0.1", ""},
		"the translated one is not the pod's":               {[]*networkingv1beta1.Configuration{mapped}, "none", "10.61.2.2", ""},
		"another provider's Configuration says nothing":     {[]*networkingv1beta1.Configuration{turin}, "10.99.0.0/16", "10.99.2.2", "10.99.2.2"},
		"nothing is shown before the ranges are given":      {[]*networkingv1beta1.Configuration{milanIs("", "")}, "10.99.0.0/16", "10.99.2.2", ""},
		"a range of another length is none that was given":  {[]*networkingv1beta1.Configuration{milanIs("10.61.0.0/17", "10.71.0.0/16")}, "10.244.0.0/16", "10.244.2.2", ""},
		"an address that belongs to no cluster is nobody's": {[]*networkingv1beta1.Configuration{mapped}, "none", "169.254.169.254", ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := milan(func(context.Context) {})
			n.setConfigurations(t.Context(), tc.configurations)
			if got := shown(t, n, tc.pinned, tc.remote); got != tc.want {
				t.Errorf("shown as %q, want %q", got, tc.want)
			}
		})
	}
}

// What is shown follows the Configuration at once; while that does not say how the provider is seen, what was shown stays.
func TestAddressesOfPodsFollowTheConfiguration(t *testing.T) {
	told := 0
	n := milan(func(context.Context) { told++ })
	var plans []string
	for _, step := range []struct {
		configurations []*networkingv1beta1.Configuration
		want           string
	}{
		{nil, ""}, {[]*networkingv1beta1.Configuration{milanIs("", "")}, ""}, {[]*networkingv1beta1.Configuration{milanIs("10.61.0.0/16", "10.71.0.0/16")}, "10.61.2.2"},
		{[]*networkingv1beta1.Configuration{milanIs("", "")}, "10.61.2.2"}, {[]*networkingv1beta1.Configuration{milanIs("10.62.0.0/16", "10.71.0.0/16")}, "10.62.2.2"}, {nil, ""},
	} {
		n.setConfigurations(t.Context(), step.configurations)
		if got := shown(t, n, "none", "10.244.2.2"); got != step.want {
			t.Errorf("shown as %q, want %q", got, step.want)
		}
		var settings pod.Settings
		n.Apply(&settings)
		plans = append(plans, settings.AddressPlan)
	}
	one, other := "10.244.0.0/16=10.61.0.0/16,10.70.0.0/16=10.71.0.0/16", "10.244.0.0/16=10.62.0.0/16,10.70.0.0/16=10.71.0.0/16"
	if diff := cmp.Diff([]string{"", "", one, one, other, ""}, plans); diff != "" || told != len(plans) {
		t.Errorf("told %d times: %s", told, diff)
	}
}

// Pods are told the address that this cluster's own IP resource was given; the provider translates it. Without a network to the provider
// there is none.
func TestTheAddressOfTheAPIServer(t *testing.T) {
	mapped := []*networkingv1beta1.Configuration{milanIs("10.61.0.0/16", "10.71.0.0/16")}
	server := apiServerIP("api-server", ipamv1alpha1.IPTypeAPIServer, "10.70.0.3")
	endpoint := apiServerIP("a", ipamv1alpha1.IPTypeAPIServer, "10.70.0.4")
	endpoint.Spec.Ports = []ipamv1alpha1.IPPort{{Port: 6443, Protocol: corev1.ProtocolTCP}}
	for name, tc := range map[string]struct {
		configurations []*networkingv1beta1.Configuration
		ips            []*ipamv1alpha1.IP
		want           string
	}{
		"at a port of its own":         {mapped, []*ipamv1alpha1.IP{endpoint}, "10.70.0.4:6443"},
		"its IP resource":              {mapped, []*ipamv1alpha1.IP{apiServerIP("a", "other", "10.70.0.9"), apiServerIP("b", "", "10.70.0.8"), server}, "10.70.0.3:443"},
		"the first of several":         {mapped, []*ipamv1alpha1.IP{server, apiServerIP("a", ipamv1alpha1.IPTypeAPIServer, "10.70.0.7")}, "10.70.0.7:443"},
		"none that waits for one":      {mapped, []*ipamv1alpha1.IP{apiServerIP("a", ipamv1alpha1.IPTypeAPIServer, ""), server}, "10.70.0.3:443"},
		"nothing that is no address":   {mapped, []*ipamv1alpha1.IP{apiServerIP("a", ipamv1alpha1.IPTypeAPIServer, "x")}, ""},
		"none where no network leads":  {nil, []*ipamv1alpha1.IP{server}, ""},
		"none without the IP resource": {mapped, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := milan(func(context.Context) {})
			n.setConfigurations(t.Context(), tc.configurations)
			select {
			case <-n.known:
				t.Error("pods are made before the IP resources are read")
			default:
			}
			n.setIPs(tc.ips)
			<-n.known
			api := reflection.HomeAPI{Enabled: true}.At(n.APIServer)
			got := ""
			if api.Known() {
				got = net.JoinHostPort(api.Address.String(), api.Port)
			}
			if got != tc.want {
				t.Errorf("the API server is at %q, want %q", got, tc.want)
			}
			if named := (reflection.HomeAPI{Host: "api.rome.example"}).At(n.APIServer); named.Address.IsValid() {
				t.Error("a host that was named does not win")
			}
		})
	}
	off := New(Options{})
	<-off.known
	if off.APIServer().Addr().IsValid() {
		t.Error("there is an address without the module")
	}
}

func TestTheNodeTellsOfTheTunnel(t *testing.T) {
	of := func(provider string, value networkingv1beta1.ConnectionStatusValue, message string) *networkingv1beta1.Connection {
		c := &networkingv1beta1.Connection{ObjectMeta: metav1.ObjectMeta{Name: provider, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: provider}}}
		c.Status.Value = value
		c.Status.Conditions = []metav1.Condition{{Type: corev1beta1.ConditionReady, Message: message}}
		return c
	}
	const silent = "the tunnel to the provider does not work"
	mapped := []*networkingv1beta1.Configuration{milanIs("10.61.0.0/16", "10.71.0.0/16")}
	for name, tc := range map[string]struct {
		configurations []*networkingv1beta1.Configuration
		connections    []*networkingv1beta1.Connection
		disabled       bool
		want           node.Network
	}{
		"without a Configuration": {nil, []*networkingv1beta1.Connection{of("milan", networkingv1beta1.ConnectionError, "")}, false, node.Network{}},
		"against the VirtualNode": {mapped, nil, true, node.Network{}},
		"before there is one":     {mapped, nil, false, node.Network{Watched: true, Message: "the gateway has not told of its tunnel to the provider yet: there is no Connection"}},
		"of another provider":     {mapped, []*networkingv1beta1.Connection{of("turin", networkingv1beta1.Connected, "")}, false, node.Network{Watched: true, Message: "the gateway has not told of its tunnel to the provider yet: there is no Connection"}},
		"that answers":            {mapped, []*networkingv1beta1.Connection{of("milan", networkingv1beta1.Connected, "")}, false, node.Network{Watched: true, Connected: true, Message: silent}},
		"that is down":            {mapped, []*networkingv1beta1.Connection{of("milan", networkingv1beta1.ConnectionError, "silence"), of("turin", networkingv1beta1.Connected, "")}, false, node.Network{Watched: true, Down: true, Message: silent + ": silence"}},
		"of which one works":      {mapped, []*networkingv1beta1.Connection{of("milan", networkingv1beta1.ConnectionError, ""), of("milan", networkingv1beta1.Connected, "")}, false, node.Network{Watched: true, Connected: true, Message: silent}},
		"that is down, unwatched": {mapped, []*networkingv1beta1.Connection{of("milan", networkingv1beta1.ConnectionError, "")}, true, node.Network{}},
		"that does not":           {mapped, []*networkingv1beta1.Connection{of("milan", networkingv1beta1.Connecting, "no handshake")}, false, node.Network{Watched: true, Message: silent + ": no handshake"}},
		"before ranges are given": {[]*networkingv1beta1.Configuration{milanIs("", "")}, []*networkingv1beta1.Connection{of("milan", networkingv1beta1.ConnectionError, "")}, false, node.Network{Watched: true, Down: true, Message: silent}},
	} {
		t.Run(name, func(t *testing.T) {
			n := milan(func(context.Context) {})
			n.setConfigurations(t.Context(), tc.configurations)
			n.setConnections(t.Context(), tc.connections)
			vn := &offloadingv1beta1.VirtualNode{Spec: offloadingv1beta1.VirtualNodeSpec{DisableNetworkCheck: &tc.disabled}}
			if diff := cmp.Diff(tc.want, n.State(vn)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// siblings are none.
type siblings struct{ mirroring.Siblings }

func (siblings) Follow(_, _ []string) {}

// engine remembers what it was told of the provider.
type engine struct {
	mirroring.Engine
	running  chan struct{}
	provider reflection.Provider
}

func (e *engine) SetMapping(map[string]string)             {}
func (e *engine) SetNotReflected(reflection.NotReflected)  {}
func (e *engine) SetProvider(provider reflection.Provider) { e.provider = provider }
func (e *engine) Run(ctx context.Context) error {
	close(e.running)
	<-ctx.Done()
	return nil
}

// Endpoints that are no pods are told to the provider by the addresses of their IP resources, in whatever namespace those are, as soon as there are
// any and as long as there are. Where the API server is, only those of Liqo's namespace say.
func TestEndpointsOfIPResources(t *testing.T) {
	told := &engine{running: make(chan struct{})}
	m := mirroring.New(mirroring.Options{Build: func() (mirroring.Engine, error) { return told, nil }, Siblings: siblings{}, Node: "milan", Provider: "milan", Networked: New(Options{}).Known()},
		settings.Settings{})
	m.SetVirtualNodes([]*offloadingv1beta1.VirtualNode{{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"}}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	<-told.running
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	n := New(Options{Enabled: true, Provider: "milan", LiqoNamespace: "liqo", Own: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
		Changed: func(context.Context) {}, Addresses: m.SetAddresses})
	n.setConfigurations(t.Context(), []*networkingv1beta1.Configuration{milanIs("10.61.0.0/16", "10.71.0.0/16")})
	of := func(namespace string, address, external networkingv1beta1.IP) *ipamv1alpha1.IP {
		ip := apiServerIP("database", ipamv1alpha1.IPTypeAPIServer, external)
		ip.Namespace, ip.Spec.IP = namespace, address
		return ip
	}
	kind, _ := reflection.Lookup("endpointslice")
	local := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4,
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "database", Labels: map[string]string{discoveryv1.LabelServiceName: "database"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.168.7.7"}}, {Addresses: []string{"10.244.2.2"}}}}
	plans := map[string]string{}
	for _, step := range []struct {
		ips  []*ipamv1alpha1.IP
		want []string
	}{
		{nil, []string{"10.244.2.2", "192.168.7.7"}},
		{[]*ipamv1alpha1.IP{of("shop", "192.168.7.7", "")}, []string{"10.244.2.2", "192.168.7.7"}},
		{[]*ipamv1alpha1.IP{of("shop", "192.168.7.7", "10.70.0.4"), of("liqo", "10.244.2.2", "10.70.0.5")}, []string{"10.244.2.2", "10.70.0.4"}},
		{[]*ipamv1alpha1.IP{of("shop", "192.168.7.7", "10.70.0.4"), of("bank", "192.168.7.7", "10.70.0.3")}, []string{"10.244.2.2", "10.70.0.3"}},
		{nil, []string{"10.244.2.2", "192.168.7.7"}},
	} {
		n.setIPs(step.ips)
		result := kind.Translate(reflection.Input{Local: local, Parent: &corev1.Service{}, Home: "rome", Remote: "milan", RemoteNamespace: "shop-rome", Provider: told.provider})
		shadow, ok := result.Apply.(*offloadingv1beta1.ShadowEndpointSlice)
		if !ok {
			t.Fatalf("it stays at home: %+v", result.Skip)
		}
		var got []string
		for _, endpoint := range shadow.Spec.Template.Endpoints {
			got = append(got, endpoint.Addresses...)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Error(diff)
		}
		// Slices are looked at again only when the plan is another one.
		if before, there := plans[told.provider.AddressPlan]; there && before != fmt.Sprint(got) {
			t.Errorf("plan %q makes of them %s and %s", told.provider.AddressPlan, before, got)
		}
		plans[told.provider.AddressPlan] = fmt.Sprint(got)
	}
	if at := n.APIServer().Addr().String(); len(plans) != 3 || at != "10.70.0.5" {
		t.Errorf("the API server is at %s; plans: %v", at, plans)
	}
}
