package network

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func options() Options {
	return Options{
		ClusterID: "rome", Namespace: "liqo", Pods: prefixes("10.244.0.0/16"), Services: prefixes("10.96.0.0/16"), Reserved: prefixes("10.9.0.0/16"),
		Pools: prefixes("10.0.0.0/8"),
	}
}

// network makes a Network that is as many seconds old as its age says.
func network(namespace, name string, age int, want, has string, labels map[string]string) ipamv1alpha1.Network {
	return ipamv1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: metav1.NewTime(time.Unix(int64(10000-age), 0)),
		},
		Spec:   ipamv1alpha1.NetworkSpec{CIDR: networkingv1beta1.CIDR(want)},
		Status: ipamv1alpha1.NetworkStatus{CIDR: networkingv1beta1.CIDR(has)},
	}
}

func own(kind, cidr string) ipamv1alpha1.Network {
	return network("liqo", kind, 100, cidr, cidr, map[string]string{ipamv1alpha1.NetworkTypeLabel: kind, corev1beta1.ManagedLabel: "true"})
}

func peers(peer, name string, age int, want, has string) ipamv1alpha1.Network {
	return network("liqo-tenant-"+peer, name, age, want, has, map[string]string{corev1beta1.RemoteClusterIDLabel: peer})
}

// leads are the ways to a peer.
func leads(peer string, to ...networkingv1beta1.CIDR) []networkingv1beta1.InternalFabric {
	return []networkingv1beta1.InternalFabric{{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer}}, Spec: networkingv1beta1.InternalFabricSpec{RemoteCIDRs: to},
	}}
}

// What has an address of its own counts, whichever object tells of it.
func TestWhatIsAround(t *testing.T) {
	node := func(name, address string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeExternalIP, Address: "10.66.0.1"}}}}
	}
	virtual := node("milan", "10.1.1.1")
	virtual.Labels = map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}
	apiServers := []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"172.16.0.2"}}, {Addresses: []string{"x", "172.16.0.3"}}}}}
	if got := fmt.Sprint(addressesOf([]corev1.Node{node("a", "172.31.1.2"), virtual}, apiServers)); got != "[172.31.1.2 172.16.0.2 172.16.0.3]" {
		t.Errorf("addresses %s", got)
	}
	internal := func(address networkingv1beta1.IP, networks ...networkingv1beta1.CIDR) networkingv1beta1.InternalNode {
		return networkingv1beta1.InternalNode{Status: networkingv1beta1.InternalNodeStatus{NodeIP: networkingv1beta1.InternalNodeStatusNodeIP{Remote: &address}, Networks: networks}}
	}
	unknown := internal("", "10.6.0.0/16")
	unknown.Status.NodeIP.Remote = nil
	all := []networkingv1beta1.InternalNode{internal("172.31.1.1", "172.31.0.0/20", "x"), internal("172.31.1.2"), internal("10.5.0.1", "172.31.0.0/20", "10.5.0.0/16", "10.0.0.0/8", "8.0.0.0/7"),
		unknown, internal("x", "10.6.0.0/16")}
	if got := fmt.Sprint(networksOf(all)); got != "[172.31.0.0/20 10.5.0.0/16 10.0.0.0/8]" {
		t.Errorf("networks %s", got)
	}
	// Beside that of its address, for storage say, a node has some others, none of them wide.
	beside := internal("172.31.1.1", "172.31.0.0/20", "10.0.0.0/12", "10.80.0.0/16", "10.81.0.0/24", "10.82.0.0/24", "10.83.0.0/24", "10.84.0.0/24")
	if got := fmt.Sprint(networksOf([]networkingv1beta1.InternalNode{beside})); got != "[172.31.0.0/20 10.80.0.0/16 10.81.0.0/24 10.82.0.0/24]" {
		t.Errorf("networks %s", got)
	}
}

// Of several nodes in a peer's range the same one is named each time, in whatever order they come: what is told is written.
func TestTheSameNodeInARangeIsNamed(t *testing.T) {
	network := peers("milan", "a", 9, "10.61.0.0/16", "10.61.0.0/16")
	one, two := netip.MustParseAddr("10.61.0.1"), netip.MustParseAddr("10.61.0.2")
	for _, nodes := range [][]netip.Addr{{one, two}, {two, one}, {netip.MustParseAddr("10.1.1.1"), two, one}} {
		if got, inside := (surroundings{nodes: nodes}).inside(&network); !inside || got != one {
			t.Errorf("of %v, %v is named", nodes, got)
		}
	}
	if got, inside := (surroundings{nodes: []netip.Addr{netip.MustParseAddr("10.1.1.1")}}).inside(&network); inside {
		t.Errorf("%v is in the range", got)
	}
}

// Whoever has the rights of one kubelet writes into the status of its Node what addresses it likes. A Node that was there before the peers does
// not have them seen elsewhere by that, again and again: each time no connection to them survives.
func TestOneKubeletDoesNotDrivePeersFromTheirRanges(t *testing.T) {
	external, internal := own("external-cidr", "10.70.0.0/16"), own("internal-cidr", "10.80.0.0/16")
	for name, tc := range map[string]struct {
		kind   corev1.NodeAddressType
		made   time.Duration
		counts bool
	}{
		"addresses outside":                     {corev1.NodeExternalIP, -time.Hour, false},
		"internal ones":                         {corev1.NodeInternalIP, -time.Hour, true},
		"internal ones of a Node that is new":   {corev1.NodeInternalIP, time.Hour, true},
		"names that are addresses":              {corev1.NodeInternalDNS, -time.Hour, false},
		"names of a Node that are addresses":    {corev1.NodeHostName, -time.Hour, false},
		"names outside of a Node that is newer": {corev1.NodeExternalDNS, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			all := []ipamv1alpha1.Network{external, internal, peers("milan", "a", 9, "10.61.0.0/16", "10.61.0.0/16"), peers("turin", "b", 8, "10.62.0.0/16", "10.62.0.0/16")}
			hostile := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-7", CreationTimestamp: metav1.NewTime(all[0].CreationTimestamp.Add(tc.made))}}
			for i := range all[2:] {
				prefix, _ := given(&all[2+i])
				hostile.Status.Addresses = append(hostile.Status.Addresses, corev1.NodeAddress{Type: tc.kind, Address: prefix.Addr().Next().String()})
			}
			s := surroundings{networks: all, nodes: addressesOf([]corev1.Node{hostile}, nil)}
			for i := range all[2:] {
				network := &all[2+i]
				before := network.Status.CIDR
				if err := s.decide(network, options()); err != nil || network.Status.CIDR != before {
					t.Errorf("peer %s was seen under %s; now it is seen under %q (%v)", peerOf(network), before, network.Status.CIDR, err)
				}
				inside, told := s.inside(network)
				summarize(network, inside, nil)
				if ready := network.Status.Conditions[0]; told != tc.counts || ready.Status != metav1.ConditionTrue || (ready.Reason == ipamv1alpha1.ReasonNodeInRange) != tc.counts {
					t.Errorf("inside: %s; the condition is %+v", inside, ready)
				}
			}
			// By the word of an administrator, who deletes the Network, the peer is seen elsewhere.
			again := peers("milan", "c", 1, "10.61.0.0/16", "")
			s.networks = append(slices.Delete(slices.Clone(all), 2, 3), again)
			if err := s.decide(&again, options()); err != nil || (again.Status.CIDR != "10.61.0.0/16") != tc.counts {
				t.Errorf("anew it is seen under %s (%v)", again.Status.CIDR, err)
			}
		})
	}
}

// The agents of all nodes have one account, and each kubelet writes the addresses of its node. Neither leaves no room for new peers.
func TestOneNodeKeepsNoPeersAway(t *testing.T) {
	address := networkingv1beta1.IP("172.31.1.1")
	everywhere := corev1.Node{}
	for i := range 256 {
		everywhere.Status.Addresses = append(everywhere.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.0.1", i)})
	}
	for name, tc := range map[string]struct {
		told  networkingv1beta1.InternalNodeStatus
		nodes []corev1.Node
	}{
		"a network of all":                      {told: networkingv1beta1.InternalNodeStatus{Networks: []networkingv1beta1.CIDR{"0.0.0.0/0"}}},
		"a network of all, around its address":  {told: networkingv1beta1.InternalNodeStatus{Networks: []networkingv1beta1.CIDR{"0.0.0.0/0", "128.0.0.0/1", "160.0.0.0/4"}}},
		"networks elsewhere":                    {told: networkingv1beta1.InternalNodeStatus{Networks: []networkingv1beta1.CIDR{"10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9"}}},
		"a /7 that is more than the pool":       {told: networkingv1beta1.InternalNodeStatus{Networks: []networkingv1beta1.CIDR{"10.0.0.0/7"}}},
		"an address in each range of the pools": {nodes: []corev1.Node{everywhere}},
	} {
		t.Run(name, func(t *testing.T) {
			told := networkingv1beta1.InternalNode{Status: tc.told}
			for _, known := range []*networkingv1beta1.IP{nil, &address} {
				told.Status.NodeIP.Remote = known
				network := peers("milan", "a", 1, "10.61.0.0/16", "")
				s := surroundings{networks: []ipamv1alpha1.Network{own("external-cidr", "10.70.0.0/16"), own("internal-cidr", "10.80.0.0/16"), network},
					nodes: append(addressesOf(tc.nodes, nil), netip.MustParseAddr("172.31.1.1")), around: networksOf([]networkingv1beta1.InternalNode{told})}
				if err := s.decide(&network, options()); err != nil {
					t.Errorf("a new peer gets no range: %v", err)
				}
			}
		})
	}
}

func TestDecide(t *testing.T) {
	external, internal := own("external-cidr", "10.70.0.0/16"), own("internal-cidr", "10.80.0.0/16")
	for name, tc := range map[string]struct {
		self   ipamv1alpha1.Network
		others []ipamv1alpha1.Network
		around surroundings
		// want is the range that it has afterwards; not is one that it must not overlap, where the search decides on the range.
		want   networkingv1beta1.CIDR
		not    string
		reason string
	}{
		"a free range is seen as itself":       {self: peers("milan", "a", 1, "10.61.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal}, want: "10.61.0.0/16"},
		"one that overlaps our pods is moved":  {self: peers("milan", "a", 1, "10.244.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal}, not: "10.244.0.0/16"},
		"one that overlaps the external range": {self: peers("milan", "a", 1, "10.70.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal}, not: "10.70.0.0/16"},
		"one that overlaps the internal range": {self: peers("milan", "a", 1, "10.80.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal}, not: "10.80.0.0/16"},
		"one that is reserved":                 {self: peers("milan", "a", 1, "10.9.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal}, not: "10.9.0.0/16"},
		"one around a node": {
			self: peers("milan", "a", 1, "10.61.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal}, around: surroundings{nodes: []netip.Addr{netip.MustParseAddr("10.61.7.9")}}, not: "10.61.0.0/16"},
		"one beside a node, in its network": {
			self: peers("milan", "a", 1, "10.61.0.0/24", ""), others: []ipamv1alpha1.Network{external, internal}, around: surroundings{around: prefixes("10.61.0.0/20")}, not: "10.61.0.0/20"},
		"one that somebody else reserves": {
			self: peers("milan", "a", 1, "10.61.0.0/16", ""), not: "10.61.0.0/16", others: []ipamv1alpha1.Network{external, internal,
				network("liqo", "databases", 9, "10.61.3.0/24", "10.61.3.0/24", map[string]string{ipamv1alpha1.NetworkTypeLabel: "reserved"})}},
		"one that leads to another peer": {
			self: peers("milan", "a", 1, "10.61.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal}, around: surroundings{fabrics: leads("turin", "10.61.0.0/17")}, not: "10.61.0.0/16"},
		"one that leads to the peer itself": {
			self: peers("milan", "a", 1, "10.61.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal}, around: surroundings{fabrics: leads("milan", "10.61.0.0/16")}, want: "10.61.0.0/16"},
		"one that another peer has": {
			self: peers("milan", "a", 1, "10.61.0.0/16", ""), others: []ipamv1alpha1.Network{external, internal, peers("turin", "b", 5, "10.61.0.0/16", "10.61.0.0/16")}, not: "10.61.0.0/16"},
		"what was given stays, also if it is this cluster's now": {
			self: peers("milan", "a", 1, "10.61.0.0/16", "10.244.0.0/16"), others: []ipamv1alpha1.Network{external, internal}, want: "10.244.0.0/16"},
		"also if a node has come to be beside it": {
			self: peers("milan", "a", 1, "10.61.0.0/24", "10.61.0.0/24"), others: []ipamv1alpha1.Network{external, internal}, around: surroundings{
				nodes: []netip.Addr{netip.MustParseAddr("10.61.1.9")}, around: prefixes("10.61.0.0/16")}, want: "10.61.0.0/24"},
		"also if a node has come to be in it": {
			self: peers("milan", "a", 1, "10.61.0.0/16", "10.61.0.0/16"), others: []ipamv1alpha1.Network{external, internal}, around: surroundings{nodes: []netip.Addr{netip.MustParseAddr("10.61.7.9")}}, want: "10.61.0.0/16"},
		"of two holders the elder keeps": {
			self: peers("milan", "a", 9, "10.61.0.0/16", "10.61.0.0/16"), others: []ipamv1alpha1.Network{external, internal, peers("turin", "b", 5, "10.61.0.0/16", "10.61.0.0/16")}, want: "10.61.0.0/16"},
		"the younger one gets another": {
			self: peers("milan", "a", 1, "10.61.0.0/16", "10.61.0.0/16"), others: []ipamv1alpha1.Network{external, internal, peers("turin", "b", 5, "10.61.0.0/17", "10.61.0.0/17")}, not: "10.61.0.0/17"},
		"nothing before the external range is known": {self: peers("milan", "a", 1, "10.61.0.0/16", ""), others: []ipamv1alpha1.Network{internal}, reason: "ExternalRangePending"},
		"nothing before the internal range is known": {self: peers("milan", "a", 1, "10.61.0.0/16", ""), others: []ipamv1alpha1.Network{external}, reason: "ExternalRangePending"},
		"no room": {self: peers("milan", "a", 1, "10.0.0.0/8", ""), others: []ipamv1alpha1.Network{external, internal}, reason: "PoolExhausted"},
		"no room for the younger one": {
			self: peers("milan", "a", 1, "10.0.0.0/8", "10.0.0.0/8"), others: []ipamv1alpha1.Network{external, internal, peers("turin", "b", 5, "10.61.0.0/17", "10.61.0.0/17")}, reason: "PoolExhausted"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.around.networks = append(tc.others, tc.self)
			err := tc.around.decide(&tc.self, options())
			if tc.reason != "" {
				if err == nil || reconcile.ReasonOf(err) != tc.reason || tc.self.Status.CIDR != "" {
					t.Fatalf("has %q, error %v; want reason %s", tc.self.Status.CIDR, err, tc.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := netip.MustParsePrefix(string(tc.self.Status.CIDR))
			if tc.want != "" && tc.self.Status.CIDR != tc.want {
				t.Errorf("has %s, want %s", got, tc.want)
			}
			if tc.not != "" && got.Overlaps(netip.MustParsePrefix(tc.not)) {
				t.Errorf("has %s, which overlaps %s", got, tc.not)
			}
		})
	}
}

func TestOwnNetworks(t *testing.T) {
	o := options()
	o.Pods = append(o.Pods, prefixes("10.245.0.0/16")...)
	o.External = prefixes("10.71.0.0/16")
	got := map[string]string{}
	for name, one := range ownNetworks(o) {
		got[name] = one.kind + " " + one.prefix.String()
	}
	want := map[string]string{
		"pod-cidr": "pod-cidr 10.244.0.0/16", "pod-cidr-2": "pod-cidr 10.245.0.0/16", "service-cidr": "service-cidr 10.96.0.0/16",
		"external-cidr": "external-cidr 10.71.0.0/16", "internal-cidr": "internal-cidr invalid Prefix", "reserved": "reserved 10.9.0.0/16",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A range that nobody named is found once: the Network that was made of it is kept whatever comes later.
func TestAnOwnRangeIsFound(t *testing.T) {
	o := options()
	for name, tc := range map[string]struct {
		kind   string
		others []ipamv1alpha1.Network
		want   networkingv1beta1.CIDR
		moved  bool
	}{
		"the default if it is free":     {kind: "external-cidr", want: "10.70.0.0/16"},
		"the default of the other kind": {kind: "internal-cidr", want: "10.80.0.0/16"},
		"another one if it is not":      {kind: "external-cidr", others: []ipamv1alpha1.Network{own("internal-cidr", "10.70.0.0/16")}, want: "10.70.0.0/16", moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			self := network("liqo", tc.kind, 0, "", "", nil)
			used, _ := surroundings{networks: tc.others}.usedWithout(&self, o)
			got, err := findOwn(ownNetworks(o)[tc.kind], o, used)
			if err != nil || (got == tc.want) == tc.moved {
				t.Errorf("found %s, %v", got, err)
			}
		})
	}
}

func TestIsOutdated(t *testing.T) {
	o := options()
	for name, tc := range map[string]struct {
		network ipamv1alpha1.Network
		want    bool
	}{
		"the one that is configured":        {own("pod-cidr", "10.244.0.0/16"), false},
		"one whose range was changed":       {own("pod-cidr", "10.1.0.0/16"), true},
		"one that is configured no more":    {own("pod-cidr-2", "10.1.0.0/16"), true},
		"a range that was found":            {own("external-cidr", "10.99.0.0/16"), false},
		"a Network of a peer":               {peers("milan", "pod-cidr-2", 1, "10.1.0.0/16", ""), false},
		"a Network that somebody else made": {network("liqo", "pod-cidr", 1, "10.1.0.0/16", "", map[string]string{ipamv1alpha1.NetworkTypeLabel: "pod-cidr"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			one, wanted := ownNetworks(o)[tc.network.Name]
			if got := isOutdated(&tc.network, one, wanted && tc.network.Namespace == "liqo", "liqo"); got != tc.want {
				t.Errorf("is %v", got)
			}
		})
	}
}

func TestTheExternalRangeIsNoPodRange(t *testing.T) {
	o := options()
	o.External = prefixes("10.244.128.0/17")
	if why := whyNotOwn(ownNetworks(o)["external-cidr"], o); why == "" {
		t.Error("an external range inside the pods' is taken")
	}
	o.External = prefixes("10.70.0.0/16")
	if why := whyNotOwn(ownNetworks(o)["external-cidr"], o); why != "" {
		t.Error(why)
	}
}

func TestWhyNotPeers(t *testing.T) {
	for cidr, refused := range map[string]bool{"10.244.0.0/16": false, "127.0.0.0/8": true, "0.0.0.0/0": true, "10.0.0.0/7": true, "169.254.0.0/16": true} {
		if why := whyNotPeers(cidr); (why != "") != refused {
			t.Errorf("%s: %q", cidr, why)
		}
	}
}
