package dataplane

import (
	"net/netip"
	"slices"
	"testing"
)

// Nodes take nothing from a gateway that has no pod, and what is for its peer ends at the node: it comes neither to the gateway of another peer
// nor to whoever has such an address outside.
func TestAGatewayWithoutAPodIsNobody(t *testing.T) {
	self := InternalNode{VTEP: addr("172.31.1.2"), External: addr("10.70.0.2"), Pods: prefixes("10.244.2.0/24")}
	lost := InternalFabric{External: addr("10.70.255.254"), Remote: prefixes("10.61.0.0/16"), MTU: tunnelMTU}
	other := InternalFabric{Gateway: addr("10.244.1.201"), External: addr("10.70.255.253"), Remote: prefixes("10.62.0.0/16"), MTU: tunnelMTU}
	second := InternalFabric{External: addr("10.70.255.252"), Remote: prefixes("10.63.0.0/16"), MTU: tunnelMTU}
	for name, fabrics := range map[string][]InternalFabric{"alone": {lost}, "beside another one": {other, lost}, "both lost": {second, lost}} {
		state, problems := Node(NodeInput{Self: self, Fabrics: fabrics, MTU: wireMTU, Port: DefaultOverlayPort})
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		if !slices.Contains(state.Routes, Route{Table: LocalTable, Destination: lost.Remote[0], Blackhole: true}) {
			t.Errorf("%s: what is for the peer does not end at the node: %v", name, state.Routes)
		}
		for _, neighbor := range state.Neighbors {
			if neighbor.Address != other.Gateway {
				t.Errorf("%s: %v is a neighbour", name, neighbor)
			}
		}
		for _, set := range state.Firewall[0].Sets {
			if set.Name == setGateways && slices.ContainsFunc(set.Elements, func(p netip.Prefix) bool { return p.Addr() != other.Gateway }) {
				t.Errorf("%s: these speak the overlay: %v", name, set.Elements)
			}
		}
		if slices.ContainsFunc(state.Routes, func(r Route) bool { return r.Destination == single(lost.External) }) {
			t.Errorf("%s: there is a way to the lost gateway itself", name)
		}
	}
}

// The address of a gateway is what the kubelet of its node says. One that gives its gateway's pod the address of another peer's gateway takes
// no way from that peer, in whichever order they come: nodes go on as they were. So does a gateway that passes packets on.
func TestAGatewayTakesNoOthersAddress(t *testing.T) {
	self := InternalNode{VTEP: addr("172.31.1.2"), External: addr("10.70.0.2"), Pods: prefixes("10.244.2.0/24")}
	victim := InternalFabric{Gateway: addr("10.244.1.200"), External: addr("10.70.255.254"), Remote: prefixes("10.61.0.0/16"), MTU: tunnelMTU}
	way := Route{Table: LocalTable, Destination: victim.Remote[0], Device: NodeDevice, Via: victim.Gateway, Source: self.External, MTU: tunnelMTU}
	liar := InternalFabric{Gateway: victim.Gateway, Remote: prefixes("10.62.0.0/16"), MTU: tunnelMTU}
	lowest := liar
	lowest.External = addr("10.70.0.9")
	for name, other := range map[string]InternalFabric{"one": liar, "one that is asked at a lower address": lowest} {
		for order, fabrics := range map[string][]InternalFabric{"first": {other, victim}, "last": {victim, other}} {
			state, problems := Node(NodeInput{Self: self, Fabrics: fabrics, MTU: wireMTU, Port: DefaultOverlayPort})
			if !slices.Contains(state.Routes, way) {
				t.Errorf("%s, %s: nodes have no way to 10.61.0.0/16 any more: %v", name, order, problems)
			}
			if len(state.Neighbors) != 1 || len(problems) != 1 {
				t.Errorf("%s, %s: neighbours %v, problems %v", name, order, state.Neighbors, problems)
			}
		}
	}
	// A node, too, says what address it has.
	nodes := []InternalNode{self, {VTEP: victim.Gateway, External: addr("10.70.0.3"), Pods: prefixes("10.244.3.0/24")}}
	state, _ := Gateway(GatewayInput{Address: addr("10.244.1.201"), External: addr("10.70.0.200"), Reach: prefixes("10.244.0.0/16"), Nodes: nodes, Host: self.VTEP,
		Peer: []Range{{prefix("10.244.0.0/16"), prefix("10.62.0.0/16")}}, Transit: []InternalFabric{victim}, MTU: wireMTU, TunnelMTU: tunnelMTU, Port: DefaultOverlayPort})
	if !slices.Contains(state.Routes, Route{Table: InsideTable, Destination: victim.Remote[0], Device: GatewayDevice, Via: victim.Gateway}) {
		t.Error("a node with the address of the gateway to another peer takes its way")
	}
	if len(state.Neighbors) != 2 {
		t.Errorf("the neighbours are %v", state.Neighbors)
	}
}

// Of two gateways of one peer the one without a pod takes no way from the other; without the other, nothing for the peer leaves.
func TestADeadGatewayStandsBackBehindALivingOne(t *testing.T) {
	self := InternalNode{VTEP: netip.MustParseAddr("172.31.1.2"), External: netip.MustParseAddr("10.70.0.2"), Pods: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24")}}
	remote := []netip.Prefix{netip.MustParsePrefix("10.61.0.0/16")}
	living, dead := InternalFabric{Gateway: netip.MustParseAddr("10.244.1.200"), Remote: remote, MTU: 1440}, InternalFabric{Remote: remote, MTU: 1440}
	for name, tc := range map[string]struct {
		fabrics []InternalFabric
		via     netip.Addr
	}{
		"the dead first":   {[]InternalFabric{dead, living}, living.Gateway},
		"the living first": {[]InternalFabric{living, dead}, living.Gateway},
		"the dead alone":   {[]InternalFabric{dead}, netip.Addr{}},
	} {
		state, problems := Node(NodeInput{Self: self, Fabrics: tc.fabrics, MTU: 1500, Port: DefaultOverlayPort})
		var ways []netip.Addr
		for _, r := range state.Routes {
			if r.Destination == remote[0] {
				ways = append(ways, r.Via)
			}
		}
		if len(ways) != 1 || ways[0] != tc.via || len(problems) > 0 {
			t.Errorf("%s: ways %v, problems %v", name, ways, problems)
		}
	}
}

// Peers are told one IP resource of several for an address, which has the ports of all of them then.
func TestPortsOfSeveralIPResourcesForOneAddress(t *testing.T) {
	at := func(external string, ports ...Port) IP {
		return IP{Address: addr("192.0.2.1"), External: addr(external), Ports: ports}
	}
	api, database := Port{TCP, 6443}, Port{TCP, 5432}
	for name, tc := range map[string]struct {
		ips  []IP
		want []Port
	}{
		"other ports":          {[]IP{at("10.70.0.101", database), at("10.70.0.100", api)}, []Port{database, api}},
		"the same":             {[]IP{at("10.70.0.100", api), at("10.70.0.101", api)}, []Port{api}},
		"all, by the first":    {[]IP{at("10.70.0.100"), at("10.70.0.101", api)}, nil},
		"all, by the second":   {[]IP{at("10.70.0.100", api), at("10.70.0.101")}, nil},
		"of another address":   {[]IP{at("10.70.0.100", api), {Address: addr("192.0.2.2"), External: addr("10.70.0.100"), Ports: []Port{database}}}, []Port{api}},
		"and once all, always": {[]IP{at("10.70.0.100", api), at("10.70.0.101"), at("10.70.0.102", database)}, nil},
	} {
		kept := UsableIPs(tc.ips)
		if len(kept) != 1 || !slices.Equal(kept[0].Ports, tc.want) {
			t.Errorf("%s: %v, want ports %v", name, kept, tc.want)
		}
	}
}
