package node

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/netlink"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func hostAddress(device, address string, mtu int, leads bool) netlink.HostAddress {
	parsed := netip.MustParseAddr(address)
	network, _ := parsed.Prefix(24)
	return netlink.HostAddress{Device: device, Address: parsed, Network: network, MTU: mtu, Leads: leads}
}

// usual are the addresses of a node with a bridge of its CNI and kube-proxy in mode ipvs.
var usual = []netlink.HostAddress{
	hostAddress("cni0", "10.244.2.1", 1450, true), hostAddress("kube-ipvs0", "10.96.0.1", 1500, false), hostAddress("lo", "127.0.0.1", 65536, false),
	hostAddress("eth1", "169.254.7.7", 1500, true), hostAddress("eth0", "172.31.1.2", 1400, true), hostAddress("eth0", "172.31.1.2", 1400, true),
}

func TestSources(t *testing.T) {
	own := netip.MustParseAddr("172.31.1.2")
	if got := fmt.Sprint(sources(usual, own)); got != "[10.244.2.1 172.31.1.2]" {
		t.Error(got)
	}
	router := []netlink.HostAddress{hostAddress("lo", "127.0.0.1", 65536, false), hostAddress("lo", "172.31.1.2", 65536, false)}
	if got := fmt.Sprint(sources(router, own)); got != "[172.31.1.2]" {
		t.Error(got)
	}
	var many []netlink.HostAddress
	for i := range 100 {
		many = append(many, hostAddress("eth0", fmt.Sprintf("10.0.0.%d", i), 1500, true))
	}
	got := sources(append(many, hostAddress("eth0", "172.31.1.2", 1500, true)), own)
	if len(got) != maxAddresses || got[maxAddresses-1] != "172.31.1.2" {
		t.Errorf("of a node with many: %v", got)
	}
}

// A node tells which networks it is in, so that no peer is seen there.
func TestNetworks(t *testing.T) {
	alone := hostAddress("vxlan.calico", "10.244.9.0", 1450, true)
	alone.Network = netip.MustParsePrefix("10.244.9.0/32")
	if got := fmt.Sprint(networks(append([]netlink.HostAddress{alone}, usual...))); got != "[10.244.2.0/24 172.31.1.0/24]" {
		t.Error(got)
	}
	var many []netlink.HostAddress
	for i := range 100 {
		many = append(many, hostAddress("eth0", fmt.Sprintf("10.0.%d.1", i), 1500, true))
	}
	if got := networks(many); len(got) != maxAddresses {
		t.Errorf("of a node with many: %v", got)
	}
}

func TestNetworkMTU(t *testing.T) {
	for name, tc := range map[string]struct {
		host []netlink.HostAddress
		own  string
		want int
	}{
		"of the device with the node's address":  {usual, "172.31.1.2", 1400},
		"of a device that leads, if it does not": {append([]netlink.HostAddress{hostAddress("lo", "192.0.2.1", 65536, false)}, usual...), "192.0.2.1", 1400},
		"not known":                              {usual, "192.0.2.1", 0},
	} {
		if got := networkMTU(tc.host, netip.MustParseAddr(tc.own)); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	if got := networkMTU(usual, netip.Addr{}); got != 0 {
		t.Errorf("of a node without address: %d", got)
	}
}

func TestStatusOf(t *testing.T) {
	known := place{[]networkingv1beta1.IP{"172.31.1.2"}, []networkingv1beta1.CIDR{"172.31.1.0/24"}}
	placed := agent.Placement{Placed: true}
	refused := func(err error) agent.Placement { return agent.Placement{Err: fmt.Errorf("add device: %w", err)} }
	for name, tc := range map[string]struct {
		seen observation
		want string
	}{
		"all is in place":      {observation{placement: placed}, "True Programmed"},
		"not yet":              {observation{}, ""},
		"something is missing": {observation{missing: errors.New("its address is not known yet"), placement: placed}, "False Incomplete: Its address is not known yet."},
		"the port is taken":    {observation{placement: refused(syscall.EADDRINUSE)}, "False PortInUse: Something else has the UDP port of the overlay: add device: address already in use"},
		"the kernel cannot":    {observation{placement: refused(syscall.EOPNOTSUPP)}, "False KernelFeatureMissing: The kernel lacks something: add device: operation not supported"},
		"the kernel will not":  {observation{placement: refused(syscall.EPERM)}, "False NotProgrammed: The kernel refuses: add device: operation not permitted"},
		"put back just now": {observation{placement: agent.Placement{Placed: true, Repaired: noon.Add(-time.Minute), PutBack: []string{"rule 1", "route 2"}}},
			"True Overwritten: Somebody else on the node changed what Liqo has in the kernel, and it was put back, last at 11:59 UTC: rule 1; route 2. The agent's log says more."},
		"much put back just now": {observation{placement: agent.Placement{Placed: true, Repaired: noon.Add(-time.Minute), PutBack: []string{"a", "b", "c", "d", "e"}}},
			"True Overwritten: Somebody else on the node changed what Liqo has in the kernel, and it was put back, last at 11:59 UTC: a; b; c; and 2 more."},
		"put back long ago": {observation{placement: agent.Placement{Placed: true, Repaired: noon.Add(-time.Hour)}}, "True Programmed"},
		"silent gateways": {observation{placement: placed, silent: []gateway{{"milan", netip.MustParseAddr("10.244.1.9"), netip.Addr{}}}, port: 7777},
			"False OverlaySilent: This node is not answered through the overlay by the gateway to milan (pod 10.244.1.9): UDP 7777 (networking.genevePort) has to be open"},
		"ranges that overlap":       {observation{placement: placed, problems: []dataplane.Problem{{Kind: dataplane.ProblemOverlap, Message: "a"}, {Message: "b"}}}, "False RouteOverlap: Left out: a; b"},
		"a route that is refused":   {observation{placement: agent.Placement{Placed: true, Left: []string{"a"}}}, "False InputInvalid: Left out: a"},
		"an object that is refused": {observation{placement: placed, problems: []dataplane.Problem{{Kind: dataplane.ProblemInvalid, Message: "a"}}}, "False InputInvalid: Left out: a"},
	} {
		tc.seen.known = known
		self := &networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		got := statusOf(tc.seen, self, noon)
		if got == nil {
			if tc.want != "" {
				t.Errorf("%s: nothing is told", name)
			}
			continue
		}
		text := fmt.Sprintf("%s %s: %s", got.ready.Status, got.ready.Reason, got.ready.Message)
		if !strings.HasPrefix(text, tc.want) || tc.want == "" || got.ready.ObservedGeneration != 3 || got.ready.Type != "Ready" {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
		if silent := strings.HasPrefix(text, "False OverlaySilent"); silent != slices.Equal(got.silent, []string{"milan"}) || !silent && len(got.silent) > 0 {
			t.Errorf("%s: silent are %v", name, got.silent)
		}
		// What was told is not told again, and keeps its time.
		self.Status = networkingv1beta1.InternalNodeStatus{Addresses: known.addresses, Networks: known.networks, Silent: got.silent, Conditions: []metav1.Condition{got.ready}}
		if again := statusOf(tc.seen, self, noon.Add(time.Second)); again != nil {
			t.Errorf("%s is told again: %+v", name, again)
		}
		tc.seen.known.addresses = append(known.addresses, "172.31.1.3")
		if more := statusOf(tc.seen, self, noon.Add(time.Second)); more == nil || !more.ready.LastTransitionTime.Equal(&got.ready.LastTransitionTime) {
			t.Errorf("%s, with another address: %+v", name, more)
		}
	}
}
