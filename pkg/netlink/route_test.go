package netlink

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"liqo.io/liqo/pkg/dataplane"
)

// The address of a node, or of a gateway, is what one kubelet says. One that the kernel takes for no next hop keeps that node's pods away, or that
// gateway's peer, and nothing else: all that changes besides is in the kernel, and who keeps the State is told what was left out.
func TestTheAddressOfOneNodeStopsNothingElse(t *testing.T) {
	const honest = "10.244.78.0/24"
	for name, liar := range map[string]string{
		"the last address of a network of the host":      "10.244.9.255",
		"an address of the host that it tells nobody of": "10.244.9.7",
		"the same, elsewhere":                            "192.0.2.7",
	} {
		for kind, p := range places(t) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				foreign(t, p.namespace, "ip link add eth5 type bridge; ip link set eth5 up; ip addr add 10.244.9.7/24 dev eth5; ip addr add 192.0.2.7/32 dev eth5")
				apply(t, p.kernel, p.state)
				if kind == "node" {
					p.state = nodeState(t, func(i *dataplane.NodeInput) {
						i.Fabrics = append(slices.Clone(i.Fabrics), dataplane.InternalFabric{Gateway: parsed(liar), Remote: prefixList("10.244.77.0/24"), MTU: 1440},
							dataplane.InternalFabric{Gateway: parsed("172.31.1.99"), Remote: prefixList(honest), MTU: 1440})
					})
				} else {
					p.state = gatewayState(t, func(i *dataplane.GatewayInput) {
						i.Nodes = append(slices.Clone(i.Nodes), dataplane.InternalNode{VTEP: parsed(liar), External: parsed("10.70.0.77"), Pods: prefixList("10.244.77.0/24")},
							dataplane.InternalNode{VTEP: parsed("172.31.1.99"), External: parsed("10.70.0.78"), Pods: prefixList(honest)})
					})
				}
				r, complaint, _ := p.kernel.report(p.state)
				if r.Err != nil || len(r.Left) == 0 || !strings.Contains(complaint, "route to 10.244.77.0/24") {
					t.Errorf("the pass comes to %v; left out are %q", r.Err, r.Left)
				}
				read, err := p.kernel.Read(p.state)
				if err != nil {
					t.Fatal(err)
				}
				for _, route := range p.state.Routes {
					there := slices.Contains(read.Routes, route)
					if lies := route.Via == parsed(liar); there == lies {
						t.Errorf("in the kernel: %v, %s", there, route)
					}
				}
				if !slices.ContainsFunc(read.Routes, func(r dataplane.Route) bool { return r.Destination == netip.MustParsePrefix(honest) }) {
					t.Error("the honest one is not reached")
				}
				// What is refused again is no news, and no repair.
				if again, _, _ := p.kernel.report(p.state); len(again.Changes) > 0 || again.pause() != later {
					t.Errorf("again it changes %q, and waits for %s", again.Changes, again.pause())
				}
			})
		}
	}
}
