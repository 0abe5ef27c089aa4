package dataplane

import (
	"net/netip"
	"slices"
	"testing"
)

// T24: nodes take nothing from a gateway that has no pod, and what is for its peer ends at the node: it comes neither to the gateway of another peer
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
