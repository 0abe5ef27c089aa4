package dataplane

import (
	"net/netip"
	"strings"
	"testing"
)

// The texts that users see, and by which a change of what is on their nodes shows in a review.
func TestStatesOfTwoClustersWithEqualRanges(t *testing.T) {
	a, b := twins()
	a.ips = []IP{{Address: addr("10.96.0.1"), External: addr("10.70.0.100"), Masquerade: true}, {Address: addr("192.0.2.50"), External: addr("10.70.0.101"), Ports: []Port{{TCP, 631}, {UDP, 53}}}}
	node, problems := Node(a.nodeInput(a.nodes[1]))
	golden(t, "node-a2.txt", node.String())
	gateway, more := Gateway(a.gatewayInput(a.peer(b)))
	golden(t, "gateway-a.txt", gateway.String())
	if len(problems)+len(more) > 0 {
		t.Errorf("problems: %v, %v", problems, more)
	}
}

func TestANodeWithoutGatewaysNeedsNothing(t *testing.T) {
	state, problems := Node(NodeInput{Self: InternalNode{VTEP: addr("172.31.1.2"), External: addr("10.70.0.2")}, MTU: wireMTU, Port: DefaultOverlayPort})
	if text := state.String(); text != "" || problems != nil {
		t.Errorf("%s, %v", text, problems)
	}
}

// What cannot be carried out is said, and the rest is carried out.
func TestProblems(t *testing.T) {
	self := InternalNode{VTEP: addr("172.31.1.2"), External: addr("10.70.0.2"), Pods: prefixes("10.244.2.0/24")}
	fabric := InternalFabric{Gateway: addr("10.244.1.200"), Remote: prefixes("10.61.0.0/16"), MTU: tunnelMTU}
	node := func(change func(*NodeInput)) func() (State, []Problem) {
		input := NodeInput{Self: self, Fabrics: []InternalFabric{fabric}, MTU: wireMTU, Port: DefaultOverlayPort}
		change(&input)
		return func() (State, []Problem) { return Node(input) }
	}
	gateway := func(change func(*GatewayInput)) func() (State, []Problem) {
		input := GatewayInput{Address: fabric.Gateway, External: addr("10.70.0.200"), Peer: []Range{{prefix("10.244.0.0/16"), prefix("10.61.0.0/16")}},
			Reach: prefixes("10.244.0.0/16"), Nodes: []InternalNode{self}, Host: self.VTEP, MTU: wireMTU, TunnelMTU: tunnelMTU, Port: DefaultOverlayPort}
		change(&input)
		return func() (State, []Problem) { return Gateway(input) }
	}
	for name, tc := range map[string]struct {
		make    func() (State, []Problem)
		problem string
		kind    ProblemKind
		has     string
	}{
		"two gateways to one range": {node(func(i *NodeInput) {
			i.Fabrics = append(i.Fabrics, InternalFabric{Gateway: addr("10.244.1.201"), Remote: prefixes("10.61.7.0/24", "10.63.0.0/16"), MTU: tunnelMTU})
		}), "range 10.61.7.0/24 of gateway 10.244.1.201 overlaps 10.61.0.0/16 of gateway 10.244.1.200", ProblemOverlap, "10.63.0.0/16 via 10.244.1.201"},
		"two gateways with one address": {node(func(i *NodeInput) { i.Fabrics = append(i.Fabrics, fabric) }), "two gateways have the address 10.244.1.200", ProblemOverlap, "10.61.0.0/16 via"},
		"a gateway with the node's own address": {node(func(i *NodeInput) {
			i.Fabrics = append(i.Fabrics, InternalFabric{Gateway: self.VTEP, Remote: prefixes("10.63.0.0/16"), MTU: tunnelMTU})
		}), "a gateway has the address 172.31.1.2, which is a node's or this host's", ProblemOverlap, "10.61.0.0/16 via"},
		"a gateway with another address of the node": {node(func(i *NodeInput) {
			i.Self.Addresses = []netip.Addr{addr("10.244.2.1")}
			i.Fabrics = append(i.Fabrics, InternalFabric{Gateway: addr("10.244.2.1"), Remote: prefixes("10.63.0.0/16"), MTU: tunnelMTU})
		}), "a gateway has the address 10.244.2.1, which is a node's or this host's", ProblemOverlap, "10.61.0.0/16 via"},
		"a gateway to another peer with the address of a node": {gateway(func(i *GatewayInput) {
			i.Transit = []InternalFabric{{Gateway: self.VTEP, Remote: prefixes("10.63.0.0/16"), MTU: tunnelMTU}}
		}), "a gateway has the address 172.31.1.2, which is a node's or this host's", ProblemOverlap, "10.244.2.0/24 via 172.31.1.2"},
		"a node with the gateway's own address": {gateway(func(i *GatewayInput) {
			i.Nodes = append(i.Nodes, InternalNode{VTEP: i.Address, External: addr("10.70.0.3")})
		}), "a node has the address 10.244.1.200, which is this gateway's", ProblemOverlap, "10.244.2.0/24 via 172.31.1.2"},
		"a node with the gateway's address towards peers": {gateway(func(i *GatewayInput) {
			i.Nodes = append(i.Nodes, InternalNode{VTEP: i.External, External: addr("10.70.0.3")})
		}), "a node has the address 10.70.0.200, which is this gateway's", ProblemOverlap, "10.244.2.0/24 via 172.31.1.2"},
		"a gateway with an address of IPv6": {node(func(i *NodeInput) { i.Fabrics = append(i.Fabrics, InternalFabric{Gateway: addr("fd00::1")}) }),
			"the gateway's address fd00::1 is not of IPv4", ProblemFamily, "10.61.0.0/16 via"},
		"a peer with a range of IPv6": {node(func(i *NodeInput) { i.Fabrics[0].Remote = append(i.Fabrics[0].Remote, prefix("fd00::/64")) }),
			"range of a peer fd00::/64 is not of IPv4", ProblemFamily, "10.61.0.0/16 via"},
		"a node with pods of both families": {node(func(i *NodeInput) { i.Self.Pods = append(i.Self.Pods, prefix("fd00::/64")) }),
			"pod range fd00::/64 is not of IPv4", ProblemFamily, "set pods { type ipv4_addr; flags interval; elements = { 10.244.2.0/24 }"},
		"a node without an address towards peers": {node(func(i *NodeInput) { i.Self.External = netip.Addr{} }),
			"the node's address towards peers invalid IP is not of IPv4", ProblemFamily, ""},
		"one IP resource twice": {node(func(i *NodeInput) {
			i.IPs = []IP{{Address: addr("192.0.2.1"), External: addr("10.70.0.100")}, {Address: addr("192.0.2.1"), External: addr("10.70.0.101")}}
		}), "two IP resources have 192.0.2.1 or 10.70.0.101", ProblemOverlap, "elements = { 192.0.2.1 }"},
		"ranges of a peer that overlap": {gateway(func(i *GatewayInput) {
			i.Peer = append(i.Peer, Range{prefix("10.244.7.0/24"), prefix("10.71.0.0/24")})
		}), "range 10.244.7.0/24 of the peer, seen as 10.71.0.0/24, overlaps 10.244.0.0/16", ProblemOverlap, "ip saddr 10.244.0.0/16 ip saddr set"},
		"a range that is seen as a smaller one": {gateway(func(i *GatewayInput) {
			i.Peer = append(i.Peer, Range{prefix("10.9.0.0/16"), prefix("10.71.0.0/17")})
		}), "range 10.9.0.0/16 of the peer cannot be seen as 10.71.0.0/17", ProblemFamily, "ip saddr 10.244.0.0/16 ip saddr set"},
		"a node of IPv6": {gateway(func(i *GatewayInput) { i.Nodes = append(i.Nodes, InternalNode{VTEP: addr("fd00::7")}) }),
			"the address of a node fd00::7 is not of IPv4", ProblemFamily, "10.244.2.0/24 via 172.31.1.2"},
		"a gateway of IPv6": {gateway(func(i *GatewayInput) { i.Address = addr("fd00::8") }), "the gateway's address fd00::8 is not of IPv4", ProblemFamily, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state, problems := tc.make()
			if len(problems) != 1 || problems[0].Kind != tc.kind || !strings.Contains(problems[0].Message, tc.problem) {
				t.Errorf("problems are %q", problems)
			}
			if text := state.String(); !strings.Contains(text, tc.has) || tc.has == "" && text != "" {
				t.Errorf("the State has no %q:\n%s", tc.has, text)
			}
		})
	}
}

// A machine that got another name has two Nodes as long as nobody removes the old one, which may come first. What is of either is reached by the one
// address of both; a range that both have, or another node too, is so once.
func TestNodesOfOneAddress(t *testing.T) {
	a, b := twins()
	input := a.gatewayInput(a.peer(b))
	old, renamed := InternalNode{VTEP: a.nodes[1].VTEP, External: addr("10.70.0.77"), Addresses: []netip.Addr{addr("10.244.77.1")},
		Pods: prefixes("10.244.77.0/24", "10.244.2.0/24", "10.244.1.0/24")}, a.nodes[1].InternalNode
	for _, nodes := range [][]InternalNode{{a.nodes[0].InternalNode, old, renamed}, {renamed, old, a.nodes[0].InternalNode}} {
		input.Nodes = nodes
		state, problems := Gateway(input)
		golden(t, "gateway-renamed-node.txt", state.String())
		if len(problems) > 0 {
			t.Error(problems)
		}
	}
}

// A pool that a node does not need is not in its State; ranges within each other are one in sets of intervals, which take no overlaps.
func TestSetsOfIntervalsHaveNoOverlaps(t *testing.T) {
	got := outermost(prefixes("10.0.1.0/24", "10.0.0.0/16", "10.0.0.0/24", "10.1.0.1/32", "10.1.0.0/31", "9.0.0.0/8", "10.0.0.0/16"))
	if text := join(got, " "); text != "9.0.0.0/8 10.0.0.0/16 10.1.0.0/31" {
		t.Error(text)
	}
}

func TestTunnelMTU(t *testing.T) {
	for name, tc := range map[string]struct {
		endpoint string
		limits   []int
		want     int
	}{
		"pods of 1500, nothing else known": {"192.0.2.1", []int{1500, 0}, 1440},
		"over IPv6":                        {"2001:db8::1", []int{1500}, 1408},
		"a narrower path":                  {"192.0.2.1", []int{1500, 1400, 1450}, 1328},
		"nothing known":                    {"192.0.2.1", []int{0}, 0},
	} {
		if got := TunnelMTU(addr(tc.endpoint), tc.limits...); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
