package networking

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"liqo.io/liqo/pkg/addressing"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/configuration"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/networking/inputs"
)

// All that a peer writes of the network of another cluster, once liqoctl has carried it there: the ranges that it announces and its key. Its
// certificates have no right to any object of the network.
type announcement struct {
	pods, external []networkingv1beta1.CIDR
	key            []byte
}

var (
	ownPods, ownExternal = netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.70.0.0/16")
	ownServices          = netip.MustParsePrefix("10.96.0.0/12")
	ownNodes             = []netip.Addr{netip.MustParseAddr("172.31.1.1"), netip.MustParseAddr("172.31.1.2")}
	otherPeer            = netip.MustParsePrefix("10.63.0.0/16")
	hostilePools         = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16")}
)

// errRefused is what becomes of an announcement that goes no further; why stands in a condition.
var errRefused = errors.New("refused")

// take does what the controllers do with what a peer announces: judge it, and give it ranges.
func (a announcement) take() (*networkingv1beta1.Configuration, error) {
	announced := networkingv1beta1.ClusterConfigCIDR{Pod: a.pods, External: a.external}
	if err := configuration.Judge(announced); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errRefused, networkingv1beta1.ReasonRangeRefused, err)
	}
	used := addressing.Used{
		Pods: []netip.Prefix{ownPods}, Services: []netip.Prefix{ownServices}, External: []netip.Prefix{ownExternal}, Nodes: ownNodes,
		Peers: map[string][]netip.Prefix{"turin": {otherPeer}},
	}
	seen := &networkingv1beta1.ClusterConfig{}
	for _, kind := range []struct{ from, to *[]networkingv1beta1.CIDR }{{&announced.Pod, &seen.CIDR.Pod}, {&announced.External, &seen.CIDR.External}} {
		for _, text := range *kind.from {
			own, err := text.Prefix()
			if err != nil {
				return nil, fmt.Errorf("what was judged is no range: %w", err)
			}
			given, err := addressing.Allocate("milan", own, hostilePools, used)
			if err != nil {
				return nil, fmt.Errorf("%w: %s: %w", errRefused, networkingv1beta1.ReasonPoolExhausted, err)
			}
			used.Peers["milan"] = append(used.Peers["milan"], given)
			*kind.to = append(*kind.to, networkingv1beta1.CIDR(given.String()))
		}
	}
	return &networkingv1beta1.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"},
		Spec: networkingv1beta1.ConfigurationSpec{
			Local: &networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
				Pod: []networkingv1beta1.CIDR{"10.244.0.0/16"}, External: []networkingv1beta1.CIDR{"10.70.0.0/16"},
			}},
			Remote: networkingv1beta1.ClusterConfig{CIDR: announced},
		},
		Status: networkingv1beta1.ConfigurationStatus{Remote: seen},
	}, nil
}

func fabricOf(peer, gateway, external string, remote ...networkingv1beta1.CIDR) networkingv1beta1.InternalFabric {
	fabric := networkingv1beta1.InternalFabric{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + peer, Name: peer}}
	fabric.Spec.GatewayIP, fabric.Spec.MTU, fabric.Spec.RemoteCIDRs = networkingv1beta1.IP(gateway), 1440, remote
	fabric.Spec.Interface.Gateway.IP = networkingv1beta1.IP(external)
	return fabric
}

func nodesOfVictim() (all []networkingv1beta1.InternalNode) {
	for i, address := range ownNodes {
		node := networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i+1)}}
		ip := networkingv1beta1.IP(address.String())
		node.Status.NodeIP.Remote = &ip
		node.Spec.Interface.Node.IP = networkingv1beta1.IP(fmt.Sprintf("10.70.255.25%d", i))
		node.Status.PodRanges = []networkingv1beta1.CIDR{networkingv1beta1.CIDR(fmt.Sprintf("10.244.%d.0/24", i+1))}
		all = append(all, node)
	}
	return all
}

// check has a victim take an announcement, and says what of it is where it may not be.
func (a announcement) check() (taken bool, wrong string) {
	taking, err := a.take()
	if errors.Is(err, errRefused) {
		return false, ""
	}
	if err != nil {
		return false, err.Error()
	}
	seen := slices.Concat(taking.Status.Remote.CIDR.Pod, taking.Status.Remote.CIDR.External)
	turin := fabricOf("turin", "10.244.1.201", "10.70.255.253", "10.63.0.0/16")
	// Of two that overlap, the one with the lower address would count.
	milan := fabricOf("milan", "10.244.1.200", "10.70.255.254", seen...)
	nodes := nodesOfVictim()
	if why := checkNode(nodes, turin, milan); why != "" {
		return true, why
	}
	if why := checkOther(nodes, turin, milan); why != "" {
		return true, why
	}
	return true, a.checkOwn(taking, nodes, turin, milan)
}

// checkNode says what a peer changes on a node besides the way to itself.
func checkNode(nodes []networkingv1beta1.InternalNode, turin, milan networkingv1beta1.InternalFabric) string {
	state := func(fabrics ...networkingv1beta1.InternalFabric) dataplane.State {
		input, _, err := inputs.Node(inputs.NodeObjects{Self: &nodes[0], Fabrics: fabrics, MTU: 1500, Port: 6091})
		if err != nil {
			panic(err)
		}
		made, _ := dataplane.Node(input)
		return made
	}
	before, after := state(turin), state(turin, milan)
	for _, route := range after.Routes {
		if route.Destination.String() == string(milan.Spec.Interface.Gateway.IP)+"/32" {
			continue // the gateway itself, which goes no further
		}
		via := route.Via.String()
		for _, taken := range append([]netip.Prefix{ownPods, ownExternal, ownServices, otherPeer}, around(ownNodes)...) {
			if via == string(milan.Spec.GatewayIP) && route.Destination.Overlaps(taken) {
				return fmt.Sprintf("a node sends %s to the peer", route.Destination)
			}
		}
	}
	lines := strings.Split(after.String(), "\n")
	for line := range strings.Lines(before.String()) {
		line = strings.TrimSuffix(line, "\n")
		// The sets of all peers and gateways have the peer's elements too.
		if strings.Contains(line, "set peers ") || strings.Contains(line, "set gateways ") {
			continue
		}
		if !slices.Contains(lines, line) {
			return "a node loses " + line
		}
	}
	// One leads to the gateway itself.
	if more := len(after.Routes) - len(before.Routes); more > len(milan.Spec.RemoteCIDRs)+1 || len(after.Neighbors) != len(before.Neighbors)+1 {
		return fmt.Sprintf("a node has %d routes more", more)
	}
	return ""
}

func around(addresses []netip.Addr) (all []netip.Prefix) {
	for _, address := range addresses {
		all = append(all, netip.PrefixFrom(address, 24).Masked())
	}
	return all
}

// checkOther says what a peer changes in the gateway of another one.
func checkOther(nodes []networkingv1beta1.InternalNode, turin, milan networkingv1beta1.InternalFabric) string {
	of := &networkingv1beta1.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-turin", Name: "turin"}}
	of.Spec.Local = &networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: []networkingv1beta1.CIDR{"10.244.0.0/16"}}}
	of.Spec.Remote.CIDR.Pod = []networkingv1beta1.CIDR{"10.63.0.0/16"}
	of.Status.Remote = &of.Spec.Remote
	state := func(fabrics ...networkingv1beta1.InternalFabric) string {
		input, _, err := inputs.Gateway(inputs.GatewayObjects{
			Configuration: of, PublicKey: &networkingv1beta1.PublicKey{Spec: networkingv1beta1.PublicKeySpec{PublicKey: make([]byte, 32)}},
			Fabric: &turin, Fabrics: fabrics, Nodes: nodes, Pod: inputs.GatewayPod{Address: netip.MustParseAddr("10.244.1.201"), MTU: 1500, Port: 6091},
		})
		if err != nil {
			panic(err)
		}
		made, _ := dataplane.Gateway(input)
		return made.String()
	}
	if state(turin) != state(turin, milan) {
		return "the gateway of another peer is changed"
	}
	return ""
}

// checkOwn says what a peer does to its own gateway that it may not: reach more than it is told, announce what it may not be, or be without bounds.
func (a announcement) checkOwn(of *networkingv1beta1.Configuration, nodes []networkingv1beta1.InternalNode, turin, milan networkingv1beta1.InternalFabric) string {
	input, _, err := inputs.Gateway(inputs.GatewayObjects{
		Configuration: of, PublicKey: &networkingv1beta1.PublicKey{Spec: networkingv1beta1.PublicKeySpec{PublicKey: a.key}},
		Fabric: &milan, Fabrics: []networkingv1beta1.InternalFabric{turin, milan}, Nodes: nodes,
		Pod: inputs.GatewayPod{Address: netip.MustParseAddr("10.244.1.200"), MTU: 1500, Port: 6091},
	})
	if err != nil {
		if len(a.key) != 32 && errors.Is(err, inputs.ErrIncomplete) {
			return "" // What is no key is none.
		}
		return err.Error()
	}
	state, problems := dataplane.Gateway(input)
	if len(problems) > 0 {
		return fmt.Sprintf("what was given cannot be carried out: %v", problems)
	}
	if size := len(state.String()); size > 1<<16 {
		return fmt.Sprintf("its gateway's State has %d bytes", size)
	}
	for _, set := range state.Firewall[0].Sets {
		for _, element := range set.Elements {
			if set.Name == "reach" && !ownPods.Contains(element.Addr()) && !ownExternal.Contains(element.Addr()) {
				return fmt.Sprintf("it reaches %s", element)
			}
		}
	}
	for _, peer := range state.Peers {
		for _, allowed := range peer.Allowed {
			if allowed.Bits() < 8 || allowed.Addr().IsLoopback() || allowed.Addr().IsMulticast() {
				return fmt.Sprintf("it may send from %s", allowed)
			}
		}
	}
	return ""
}

// FuzzHostilePeer has a peer announce whatever it likes: ranges parted by commas, those of pods before those that are external, and a key.
func FuzzHostilePeer(f *testing.F) {
	for _, seed := range []struct{ pods, external string }{
		{"10.244.0.0/16", "10.70.0.0/16"}, {"0.0.0.0/0", ""}, {"10.63.0.0/16,10.63.1.0/24", "172.31.1.0/24"}, {"127.0.0.0/8", "224.0.0.0/4"}, {"::/0", "fe80::/10"},
		{"10.244.0.1/16", "10.0.0.0/8"}, {"169.254.169.254/32", "169.254.18.0/30"}, {"::ffff:10.0.0.0/112", "10.0.0.0/33"}, {strings.Repeat("10.1.0.0/16,", 100), "1e9"},
	} {
		f.Add(seed.pods, seed.external, []byte(strings.Repeat("k", 32)))
	}
	f.Fuzz(func(t *testing.T, pods, external string, key []byte) {
		a := announcement{ranges(pods), ranges(external), key}
		if _, wrong := a.check(); wrong != "" {
			t.Error(wrong)
		}
	})
}

func ranges(text string) (all []networkingv1beta1.CIDR) {
	for part := range strings.SplitSeq(text, ",") {
		if part != "" {
			all = append(all, networkingv1beta1.CIDR(part))
		}
	}
	return all
}

// A thousand announcements as a peer would make them that knows what hurts: this cluster's ranges and those around, special ones, what is almost a
// range, many, and keys of any length. Those that are taken change nothing but the way to the peer; both kinds are there.
func TestAThousandAnnouncementsOfAHostilePeer(t *testing.T) {
	interesting := []string{
		"10.244.0.0/16", "10.244.1.0/24", "10.70.0.0/16", "10.63.0.0/16", "10.0.0.0/8", "10.96.0.0/12", "172.31.1.0/24", "172.16.0.0/12", "192.168.0.0/16", "8.8.8.0/24",
		"0.0.0.0/0", "127.0.0.0/8", "169.254.0.0/16", "169.254.18.0/30", "224.0.0.0/4", "240.0.0.0/4", "100.64.0.0/10", "fd00::/8", "::/0", "10.1.2.3/16", "10.0.0.0/33", "ten", "",
	}
	cidr := rapid.OneOf(rapid.SampledFrom(interesting), rapid.Custom(func(t *rapid.T) string {
		address := netip.AddrFrom4([4]byte{rapid.Byte().Draw(t, "a"), rapid.Byte().Draw(t, "b"), rapid.Byte().Draw(t, "c"), 0})
		prefix := netip.PrefixFrom(address, rapid.IntRange(0, 32).Draw(t, "bits"))
		if rapid.Bool().Draw(t, "exact") {
			prefix = prefix.Masked()
		}
		return prefix.String()
	}), rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("10.%d.%d.0/24", rapid.IntRange(0, 255).Draw(t, "a"), rapid.IntRange(0, 255).Draw(t, "b"))
	}))
	list := func(t *rapid.T, name string) (all []networkingv1beta1.CIDR) {
		for _, text := range rapid.SliceOfN(cidr, 0, rapid.SampledFrom([]int{1, 2, 40}).Draw(t, "number of "+name)).Draw(t, name) {
			all = append(all, networkingv1beta1.CIDR(text))
		}
		return all
	}
	taken, tried := 0, 0
	for tried < 1000 {
		rapid.Check(t, func(t *rapid.T) {
			a := announcement{list(t, "pods"), list(t, "external"), rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "key")}
			if rapid.Bool().Draw(t, "sound key") {
				a.key = make([]byte, 32)
			}
			ok, wrong := a.check()
			if wrong != "" {
				t.Fatal(wrong)
			}
			tried++
			if ok {
				taken++
			}
		})
	}
	if t.Logf("%d of %d are taken", taken, tried); taken < 20 || taken > tried-20 {
		t.Error("it is not tried what it should")
	}
}

// What clusters behind a hub may take from the pools is bounded, so that the next peer finds room. So is what a peer announces as its own.
func TestOnePeerLeavesRoomForTheNext(t *testing.T) {
	// 32 ranges at most. None is this cluster's, none is wider than /8, none overlaps another one.
	many := ranges("20.0.0.0/9,21.0.0.0/10,22.0.0.0/10,23.0.0.0/11,24.0.0.0/11,25.0.0.0/12,26.0.0.0/12,27.0.0.0/12,28.0.0.0/13,29.0.0.0/13,30.0.0.0/13,31.0.0.0/13," +
		"32.0.0.0/14,33.0.0.0/14,34.0.0.0/14,35.0.0.0/14,36.0.0.0/15,37.0.0.0/15,38.0.0.0/15,39.0.0.0/15,40.0.0.0/16,41.0.0.0/16,42.0.0.0/16,43.0.0.0/16,44.0.0.0/16," +
		"45.0.0.0/16,46.0.0.0/16,47.0.0.0/16,48.0.0.0/16,49.0.0.0/16,50.0.0.0/16")
	for name, tc := range map[string]struct {
		pods, external []networkingv1beta1.CIDR
		refused        bool
	}{
		"pods everywhere":                     {many, ranges("11.70.0.0/16"), true},
		"pods nowhere, and the rest anywhere": {ranges("11.70.0.0/16"), many, true},
		"one range as wide as may be":         {ranges("20.0.0.0/8"), nil, true},
		"the most that is taken":              {ranges("20.0.0.0/13,21.0.0.0/14"), ranges("22.0.0.0/14,23.0.0.0/12,24.0.0.0/12"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := configuration.Judge(networkingv1beta1.ClusterConfigCIDR{Pod: tc.pods, External: tc.external}); (err != nil) != tc.refused {
				t.Fatalf("refused: %v", err)
			}
			if tc.refused {
				return
			}
			used := addressing.Used{
				Pods: []netip.Prefix{ownPods}, Services: []netip.Prefix{ownServices}, External: []netip.Prefix{ownExternal}, Nodes: ownNodes,
				Peers: map[string][]netip.Prefix{},
			}
			for _, text := range slices.Concat(tc.pods, tc.external) {
				own, err := text.Prefix()
				if err != nil {
					t.Fatal(err)
				}
				// Each range is a Network of its own: what finds no room waits, and holds what the others got.
				if given, err := addressing.Allocate("turin", own, hostilePools, used); err == nil {
					used.Peers["turin"] = append(used.Peers["turin"], given)
				}
			}
			for _, next := range []string{"10.244.0.0/16", "10.0.0.0/12"} {
				if _, err := addressing.Allocate("milan", netip.MustParsePrefix(next), hostilePools, used); err != nil {
					t.Errorf("the next peer, with %s, gets none: %.300v", next, err)
				}
			}
		})
	}
}
