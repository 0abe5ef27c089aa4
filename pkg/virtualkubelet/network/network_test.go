package network

import (
	"fmt"
	"net"
	"net/netip"
	"reflect"
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
	"liqo.io/liqo/pkg/reflection"
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
func milan() *Network { return New(Options{Enabled: true, Provider: "milan"}) }

// shown are the addresses that the local pod of a remote one shows, given what the VirtualNode pins.
func shown(t *testing.T, n *Network, pinned, remote string) string {
	t.Helper()
	own := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}
	vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{offloadingv1beta1.RemotePodCIDRsAnnotation: pinned}}}
	of := settings.Settings{Node: vn}.OfPods(t.Context(), own)
	n.View.Get().Apply(&of)
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
			n := milan()
			n.setConfigurations(t.Context(), tc.configurations)
			if got := shown(t, n, tc.pinned, tc.remote); got != tc.want {
				t.Errorf("shown as %q, want %q", got, tc.want)
			}
		})
	}
}

// What is shown, and what ranges are called, follows the Configuration at once; while that does not say how the provider is seen, what was known stays.
func TestAddressesOfPodsFollowTheConfiguration(t *testing.T) {
	n := milan()
	var plans []reflection.Addresses
	one := func(pods, external networkingv1beta1.CIDR) []*networkingv1beta1.Configuration {
		return []*networkingv1beta1.Configuration{milanIs(pods, external)}
	}
	for _, step := range []struct {
		configurations []*networkingv1beta1.Configuration
		want           string
		// ranges is what the provider calls 10.61.2.0/24.
		ranges string
	}{
		{nil, "", "10.61.2.0/24"}, {one("", ""), "", "10.61.2.0/24"}, {one("10.61.0.0/16", "10.71.0.0/16"), "10.61.2.2", "10.244.2.0/24"},
		{one("", ""), "10.61.2.2", "10.244.2.0/24"}, {one("10.62.0.0/16", "10.71.0.0/16"), "10.62.2.2", "10.61.2.0/24"}, {nil, "", "10.61.2.0/24"},
	} {
		n.setConfigurations(t.Context(), step.configurations)
		if got := shown(t, n, "none", "10.244.2.2"); got != step.want {
			t.Errorf("shown as %q, want %q", got, step.want)
		}
		var settings pod.Settings
		n.View.Get().Apply(&settings)
		var provider reflection.Provider
		n.View.Get().Tell(&provider)
		if got, _ := provider.Ranges.Range(netip.MustParsePrefix("10.61.2.0/24")); got.String() != step.ranges {
			t.Errorf("10.61.2.0/24 is called %s, want %s", got, step.ranges)
		}
		plans = append(plans, settings.Addresses)
	}
	fresh := milan()
	fresh.setConfigurations(t.Context(), one("", ""))
	var provider reflection.Provider
	fresh.View.Get().Tell(&provider)
	if got, known := provider.Ranges.Range(netip.MustParsePrefix("10.61.2.0/24")); known {
		t.Errorf("before anything is known 10.61.2.0/24 is called %s", got)
	}
	// Who follows compares by value.
	for i, same := range []bool{true, false, true, false, false} {
		if reflect.DeepEqual(plans[i], plans[i+1]) != same {
			t.Errorf("step %d: %v after %v", i+1, plans[i+1], plans[i])
		}
	}
	if !reflect.DeepEqual(plans[0], plans[5]) {
		t.Errorf("without a Configuration: %v, and then %v", plans[0], plans[5])
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
			n := milan()
			n.setConfigurations(t.Context(), tc.configurations)
			if n.View.Get().Known() {
				t.Error("pods are made before the IP resources are read")
			}
			n.setIPs(tc.ips)
			if !n.View.Get().Known() {
				t.Error("pods wait although all was read")
			}
			api := reflection.HomeAPI{Enabled: true}.At(n.View.Get().APIServer)
			got := ""
			if api.Known() {
				got = net.JoinHostPort(api.Address.String(), api.Port)
			}
			if got != tc.want {
				t.Errorf("the API server is at %q, want %q", got, tc.want)
			}
			if named := (reflection.HomeAPI{Host: "api.rome.example"}).At(n.View.Get().APIServer); named.Address.IsValid() {
				t.Error("a host that was named does not win")
			}
		})
	}
	if off := New(Options{}).View.Get(); !off.Known() || off.APIServer().Addr().IsValid() {
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
			n := milan()
			n.setConfigurations(t.Context(), tc.configurations)
			n.setConnections(tc.connections)
			vn := &offloadingv1beta1.VirtualNode{Spec: offloadingv1beta1.VirtualNodeSpec{DisableNetworkCheck: &tc.disabled}}
			if diff := cmp.Diff(tc.want, n.View.Get().State(vn)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Endpoints that are no pods are told to the provider by the addresses of their IP resources, in whatever namespace those are, as soon as there are
// any and as long as there are. Where the API server is, only those of Liqo's namespace say.
func TestEndpointsOfIPResources(t *testing.T) {
	n := New(Options{Enabled: true, Provider: "milan", LiqoNamespace: "liqo", Own: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}})
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
	type plan struct {
		addresses any
		endpoints string
	}
	var plans []plan
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
		told := reflection.Provider{Nodes: map[string]bool{"milan": true}}
		n.View.Get().Tell(&told)
		result := kind.Translate(reflection.Input{Local: local, Parent: &corev1.Service{}, Home: "rome", Remote: "milan", RemoteNamespace: "shop-rome", Provider: told})
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
		// Slices are looked at again only when the addresses are others.
		now := plan{addresses: told.Addresses, endpoints: fmt.Sprint(got)}
		for _, before := range plans {
			if reflect.DeepEqual(before.addresses, now.addresses) != (before.endpoints == now.endpoints) {
				t.Errorf("by %v they are %s, and by %v %s", before.addresses, before.endpoints, now.addresses, now.endpoints)
			}
		}
		plans = append(plans, now)
	}
	if at := n.View.Get().APIServer().Addr().String(); at != "10.70.0.5" {
		t.Errorf("the API server is at %s; plans: %v", at, plans)
	}
}
