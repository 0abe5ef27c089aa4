package dataplane

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A hostile peer is the other end of a tunnel: it sends what it likes. N1, N2, F12: sources that are not its own and destinations that it may
// not reach end in our gateway, whatever the ranges, and so does what pretends to be of our overlay.
func TestAHostilePeerReachesNothingElse(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		all := anyWorld(t)
		w := newWalker(worldOf(t, all...))
		addresses := interesting(all)
		for _, attacker := range all {
			for _, p := range attacker.peers {
				h := w.hosts[p.gateway]
				sources := [][]netip.Addr{addresses, tunnelEnds, attacker.allPods()}
				here := []netip.Addr{addr("198.18.0.1"), p.with.nodes[0].VTEP, p.with.peer(attacker).address, p.with.gatewayExternal(p.with.peer(attacker))}
				for _, ip := range p.with.ips {
					here = append(here, ip.External)
				}
				targets := [][]netip.Addr{addresses, p.with.allPods(), here}
				for range 20 {
					packet := Packet{Protocol: TCP, Source: oneOf(t, sources), Destination: oneOf(t, targets), SourcePort: 1000, DestinationPort: anyPort(t), Size: 60}
					if rapid.Bool().Draw(t, "overlay") {
						packet.Protocol, packet.DestinationPort, packet.MAC = UDP, DefaultOverlayPort, macOf(oneOf(t, [][]netip.Addr{{packet.Destination, p.with.nodes[0].VTEP}}))
						packet.Inner = &Packet{Protocol: TCP, Source: oneOf(t, sources), Destination: oneOf(t, targets), Size: 60}
					}
					w.hops = nil
					if next, why := w.tunnel(h, h.links[TunnelDevice], packet); why == "" {
						next()
					}
					if rapid.Bool().Draw(t, "the tunnel lets everything through") {
						w.hops = nil
						w.enter(w.hosts[p.with.peer(attacker).gateway], TunnelDevice, packet)
					}
					last, ok := Arrived(w.hops)
					if why := hostile(all, attacker, p, packet, last); ok && why != "" {
						t.Fatalf("%s sends %s into the tunnel to %s: %s\n%s", attacker.name, packet, p.with.name, why, Trip{There: w.hops})
					}
					if ok {
						passed++
					}
					if unpacked(w.hops, packet.Inner) {
						t.Fatalf("%s injects into the overlay of %s:\n%s", attacker.name, p.with.name, Trip{There: w.hops})
					}
				}
			}
		}
	})
	if passed == 0 {
		t.Error("nothing passes at all")
	}
}

var tunnelEnds = []netip.Addr{addr("169.254.18.1"), addr("169.254.18.2")}

// anyPort draws that of an application, or the one at which nodes ask gateways.
func anyPort(t *rapid.T) uint16 { return rapid.SampledFrom([]uint16{80, AskedPort}).Draw(t, "port") }

// oneOf draws an address from one of several groups.
func oneOf(t *rapid.T, groups [][]netip.Addr) netip.Addr {
	return rapid.SampledFrom(rapid.SampledFrom(groups).Draw(t, "group")).Draw(t, "address")
}

// unpacked tells whether somebody took a packet out of another one.
func unpacked(hops []Hop, inner *Packet) bool {
	return inner != nil && slices.ContainsFunc(hops, func(h Hop) bool { return h.Outcome == Unpacked && h.Before.Inner == inner })
}

// hostile says why what came out of a tunnel should not have arrived.
func hostile(all []*cluster, attacker *cluster, p *peering, sent Packet, last Hop) string {
	if last.Outcome != Delivered {
		return ""
	}
	among := func(c, peer *cluster, address netip.Addr) bool {
		own, others := c.announced(peer)
		return slices.ContainsFunc(append(own, others...), func(r netip.Prefix) bool { return r.Contains(address) })
	}
	to := owner(all, last.Place)
	exported := slices.ContainsFunc(to.ips, func(ip IP) bool { return ip.Address == last.After.Destination })
	gateway := slices.ContainsFunc(to.peers, func(p *peering) bool { return p.address == last.After.Destination })
	switch {
	case !among(attacker, p.with, sent.Source):
		return "its source is not among what the attacker announced"
	case !among(p.with, attacker, sent.Destination):
		return "its destination is not among what was announced to the attacker"
	case to != p.with && (!p.with.transit || p.with.peer(to) == nil):
		return "it is in a cluster that the peer does not carry packets to"
	case !slices.Contains(to.allPods(), last.After.Destination) && !exported && !gateway:
		return "it is neither a pod nor an IP resource"
	default:
		return ""
	}
}

// A gateway speaks with whoever is outside. Should it be taken over, a node still takes from it nothing but packets for its own pods, and for
// IP resources: none for itself, for Services, for other nodes, or for the pods of others.
func TestNodesTakeNothingElseFromGateways(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		all := anyWorld(t)
		w := newWalker(worldOf(t, all...))
		addresses := interesting(all)
		for _, c := range all {
			for _, p := range c.peers {
				n := rapid.SampledFrom(c.nodes).Draw(t, "node")
				for range 20 {
					to := oneOf(t, [][]netip.Addr{addresses, n.pods, {n.VTEP, n.External, c.nodes[0].VTEP}})
					source := graft(oneOf(t, [][]netip.Addr{addresses}), p.ranges[0].Seen)
					packet := Packet{Protocol: TCP, Source: source, Destination: to, SourcePort: 1000, DestinationPort: anyPort(t), Size: 60}
					if rapid.Bool().Draw(t, "overlay") {
						packet.Protocol, packet.DestinationPort, packet.MAC = UDP, DefaultOverlayPort, macOf(c.nodes[0].VTEP)
						packet.Inner = &Packet{Protocol: TCP, Source: source, Destination: oneOf(t, [][]netip.Addr{c.allPods()}), Size: 60}
					}
					w.hops = nil
					w.enter(w.hosts[n.place], NodeDevice, packet)
					if unpacked(w.hops, packet.Inner) {
						t.Fatalf("%s lets a gateway inject:\n%s", n.place, Trip{There: w.hops})
					}
					last, ok := Arrived(w.hops)
					if !ok {
						continue
					}
					passed++
					pods := slices.ContainsFunc(n.InternalNode.Pods, func(r netip.Prefix) bool { return r.Contains(to) })
					if exported := slices.ContainsFunc(c.ips, func(ip IP) bool { return ip.Address == to }); !exported && !pods {
						t.Fatalf("%s takes %s:\n%s", n.place, last.After, Trip{There: w.hops})
					}
				}
			}
		}
	})
	if passed == 0 {
		t.Error("nothing passes at all")
	}
}

// An IP resource that is a node has all ports of that node but the overlay's: what a node unpacks there has passed no gateway's rules. The
// gateway lets none pass, and neither does a node whose gateway was taken over.
func TestTheOverlayIsNotCarriedInItself(t *testing.T) {
	a, b := twins()
	node, seen := a.nodes[1].VTEP, addr("10.70.0.100")
	a.ips = []IP{{Address: node, External: seen, Masquerade: true}}
	w := newWalker(worldOf(t, a, b))
	for name, tc := range map[string]struct {
		at       Place
		by       string
		from, to string
		port     uint16
		dropped  bool
	}{
		"by the tunnel":                            {"gA-B", TunnelDevice, "10.244.2.2", "10.70.0.100", DefaultOverlayPort, true},
		"by a gateway, to another node":            {"A1", NodeDevice, "10.61.2.2", "172.31.1.2", DefaultOverlayPort, true},
		"by a gateway, to the node":                {"A2", NodeDevice, "10.61.2.2", "172.31.1.2", DefaultOverlayPort, true},
		"to another port, by the tunnel":           {"gA-B", TunnelDevice, "10.244.2.2", "10.70.0.100", 53, false},
		"to another port, by a gateway, elsewhere": {"A1", NodeDevice, "10.61.2.2", "172.31.1.2", 53, false},
		"to another port, by a gateway":            {"A2", NodeDevice, "10.61.2.2", "172.31.1.2", 53, false},
	} {
		packet := Packet{Protocol: UDP, Source: addr(tc.from), Destination: addr(tc.to), SourcePort: 1000, DestinationPort: tc.port, Size: 110}
		if tc.dropped {
			packet.MAC, packet.Inner = macOf(node), &Packet{Protocol: UDP, Source: addr("10.61.9.9"), Destination: a.nodes[1].pods[0], Size: 60}
		}
		w.hops = nil
		w.enter(w.hosts[tc.at], tc.by, packet)
		last, arrived := Arrived(w.hops)
		if tc.dropped && (len(w.hops) != 1 || !strings.HasSuffix(w.hops[0].Why, "as "+counterForeign)) || !tc.dropped && (!arrived || last.Place != "A2") {
			t.Errorf("%s:\n%s", name, Trip{There: w.hops})
		}
	}
}

// A pod that speaks the language of the overlay could pretend to be a gateway, and put packets of any source before any pod.
func TestNoPodSpeaksOnTheOverlay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := anyWorld(t)
		w := newWalker(worldOf(t, all...))
		addresses := interesting(all)
		for _, c := range all {
			pod := rapid.SampledFrom(c.allPods()).Draw(t, "pod")
			for range 20 {
				to, victim := rapid.SampledFrom(addresses).Draw(t, "to"), rapid.SampledFrom(addresses).Draw(t, "victim")
				inner := Packet{Protocol: UDP, Source: victim, Destination: pod, SourcePort: 53, DestinationPort: 53, Size: 60}
				for _, vtep := range []netip.Addr{to, c.nodes[0].VTEP, c.nodes[len(c.nodes)-1].VTEP} {
					hops := w.send(c.place(pod), Packet{Protocol: UDP, Source: pod, Destination: to, SourcePort: 1000, DestinationPort: DefaultOverlayPort,
						Size: 110, Inner: &inner, MAC: macOf(vtep)})
					if unpacked(hops, &inner) {
						t.Fatalf("pod %s of %s injects a packet:\n%s", pod, c.name, Trip{There: hops})
					}
				}
			}
		}
	})
}
