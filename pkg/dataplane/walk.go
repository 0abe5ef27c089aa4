package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
)

// maxHops is after how many hops a packet is taken to go in circles.
const maxHops = 64

// Walk sends a packet through a world of States, and then its answer, and returns the way of both. A world is closed: besides what the agents
// own, its States hold the devices, routes and rules of the CNI, of kube-proxy and of the pods that the answer is to take account of; With
// puts both into one State. The datagrams of a tunnel are not followed: they arrive at the end that has the key, wherever it is.
func Walk(world map[Place]State, from Place, packet Packet) Trip {
	return newWalker(world).walk(from, packet)
}

// walk does that in a world in which nothing has been sent yet.
func (w *walker) walk(from Place, packet Packet) Trip {
	for _, h := range w.hosts {
		h.connections = nil
	}
	there := w.send(from, packet)
	if last, ok := Arrived(there); ok {
		return Trip{There: there, Back: w.send(last.Place, last.After.answer())}
	}
	if w.told != nil {
		return Trip{There: there, Back: w.send(w.teller, *w.told)}
	}
	return Trip{There: there}
}

// With returns the State of a place that has what is in both, the other's devices after its own.
func (s State) With(other State) State {
	return State{
		Links: slices.Concat(s.Links, other.Links), Neighbors: slices.Concat(s.Neighbors, other.Neighbors), Routes: slices.Concat(s.Routes, other.Routes),
		Rules: slices.Concat(s.Rules, other.Rules), Firewall: slices.Concat(s.Firewall, other.Firewall), Peers: slices.Concat(s.Peers, other.Peers),
		Devices: slices.Concat(s.Devices, other.Devices), Kept: slices.Concat(s.Kept, other.Kept),
	}
}

// end is a device at a place.
type end struct {
	host *host
	link Link
}

// walker walks packets, one after the other, through a world that remembers connections.
type walker struct {
	hosts map[Place]*host
	wires map[string][]end
	keys  map[Key]end
	hops  []Hop
	// told is the ICMP error about the last packet, if somebody refused it, and teller who.
	told   *Packet
	teller Place
}

func newWalker(world map[Place]State) *walker {
	w := &walker{hosts: map[Place]*host{}, wires: map[string][]end{}, keys: map[Key]end{}}
	for place, state := range world {
		h := newHost(place, state)
		w.hosts[place] = h
		for _, link := range state.Links {
			switch link.Kind {
			case Ethernet:
				w.wires[link.Wire] = append(w.wires[link.Wire], end{h, link})
			case WireGuard:
				w.keys[link.Key] = end{h, link}
			}
		}
	}
	return w
}

// send walks a packet that a place sends itself.
func (w *walker) send(from Place, packet Packet) []Hop {
	w.hops, w.told = nil, nil
	if h, ok := w.hosts[from]; ok {
		w.enter(h, "", packet)
	}
	return w.hops
}

// enter walks a packet from where it comes in at a place, or is sent by it, to its end.
func (w *walker) enter(h *host, in string, packet Packet) {
	v := &visit{host: h, in: in, packet: packet}
	hop := Hop{Place: h.place, In: in, Before: packet}
	hop.Outcome, hop.Why = v.decide()
	hop.After, hop.Out = v.packet, v.out
	var next func()
	switch hop.Outcome {
	case Sent:
		next, hop.Why = w.beyond(h, v)
	case Delivered:
		if v.packet.Inner != nil {
			hop.Outcome = Unpacked
			next, hop.Why = w.unpacked(h, v.packet)
		}
	case TooLong:
		if in != "" {
			w.teller, w.told = h.place, &Packet{Protocol: ICMP, Type: unreachable, Destination: v.packet.Source, Size: 576, Quoted: &v.packet}
		}
	}
	if len(w.hops) == maxHops {
		next, hop.Why = nil, "it goes in circles"
	}
	if hop.Outcome != TooLong && hop.Why != "" {
		hop.Outcome = Dropped
	}
	w.hops = append(w.hops, hop)
	if next != nil {
		next()
	}
}

// beyond finds who hears what a place sends by a device.
func (w *walker) beyond(h *host, v *visit) (next func(), why string) {
	link, hop := h.links[v.out], v.packet.Destination
	if v.route.Via.IsValid() {
		hop = v.route.Via
	}
	switch link.Kind {
	case VXLAN:
		return w.overlay(h, link, hop, v.packet)
	case WireGuard:
		return w.tunnel(h, link, v.packet)
	default:
		var others []end
		for _, other := range w.wires[link.Wire] {
			if other.host != h {
				others = append(others, other)
			}
		}
		i := slices.IndexFunc(others, func(e end) bool { return e.host.local[hop] })
		if i < 0 && len(others) == 1 {
			i = 0
		}
		if i < 0 {
			return nil, fmt.Sprintf("nobody on %s has %s", link.Wire, hop)
		}
		return func() { w.enter(others[i].host, others[i].link.Name, v.packet) }, ""
	}
}

// overlay packs a packet for the VTEP behind a next hop.
func (w *walker) overlay(h *host, link Link, hop netip.Addr, packet Packet) (next func(), why string) {
	i := slices.IndexFunc(h.state.Neighbors, func(n Neighbor) bool { return n.Device == link.Name && n.Address == hop })
	if i < 0 {
		return nil, fmt.Sprintf("%s is no neighbour on %s", hop, link.Name)
	}
	neighbor := h.state.Neighbors[i]
	outer := Packet{
		Protocol: UDP, Source: link.Local, Destination: neighbor.VTEP, SourcePort: OverlaySource, DestinationPort: link.Port,
		Size: packet.Size + OverlayOverhead4, Inner: &packet, MAC: neighbor.MAC,
	}
	return func() { w.enter(h, "", outer) }, ""
}

// unpacked finds the device of the overlay that a packet which has arrived is for.
func (w *walker) unpacked(h *host, outer Packet) (next func(), why string) {
	for _, link := range h.state.Links {
		if link.Kind == VXLAN && link.Port == outer.DestinationPort {
			if link.MAC != outer.MAC {
				return nil, "it is for another device"
			}
			return func() { w.enter(h, link.Name, *outer.Inner) }, ""
		}
	}
	return nil, "there is no overlay"
}

// tunnel sends a packet to the end of the tunnel that has its destination.
func (w *walker) tunnel(h *host, link Link, packet Packet) (next func(), why string) {
	peer, ok := allowed(h.state.Peers, link.Name, packet.Destination)
	other, there := w.keys[peer.Key]
	if !ok || !there {
		return nil, fmt.Sprintf("no tunnel leads to %s", packet.Destination)
	}
	return func() {
		if back, ok := allowed(other.host.state.Peers, other.link.Name, packet.Source); !ok || back.Key != link.Key {
			w.hops = append(w.hops, Hop{Place: other.host.place, In: other.link.Name, Before: packet, After: packet, Outcome: Dropped,
				Why: "the other end of the tunnel may not send from this address"})
			return
		}
		w.enter(other.host, other.link.Name, packet)
	}, ""
}

// allowed returns the peer with the longest prefix for an address.
func allowed(peers []Peer, device string, address netip.Addr) (peer Peer, ok bool) {
	longest := -1
	for _, p := range peers {
		for _, prefix := range p.Allowed {
			if p.Device == device && prefix.Contains(address) && prefix.Bits() > longest {
				peer, longest = p, prefix.Bits()
			}
		}
	}
	return peer, longest >= 0
}
