package dataplane

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// Lab is a world that is to be built in the kernel, and what is to be sent there.
type Lab struct {
	Name  string
	World map[Place]State
	// Ours is what of it the agents own.
	Ours map[Place]State
	// Trials are packets that places send themselves, Intruders those that a peer which does what it likes puts into a tunnel.
	Trials    []Trial
	Intruders []Trial
}

// Trial is a packet and where it sets out.
type Trial struct {
	From   Place
	Packet Packet
	// Forged ones have another source than their place.
	Forged bool
}

// Environment is what of a place is not the agents'.
func (l Lab) Environment(place Place) State {
	all, ours := l.World[place], l.Ours[place]
	return State{
		Links: all.Links[:len(all.Links)-len(ours.Links)], Routes: all.Routes[:len(all.Routes)-len(ours.Routes)],
		Rules: all.Rules[:len(all.Rules)-len(ours.Rules)], Firewall: all.Firewall[:len(all.Firewall)-len(ours.Firewall)], Devices: all.Devices,
	}
}

// Intrude walks a packet that comes out of the tunnel at a gateway, whatever the other end would have let through.
func (l Lab) Intrude(trial Trial) []Hop {
	w := newWalker(l.World)
	w.enter(w.hosts[trial.From], TunnelDevice, trial.Packet)
	return w.hops
}

// labOf has every pod and every node of some clusters send to every address that means anything to anybody.
func labOf(t fataler, name string, clusters []*cluster, others map[Place]State) Lab {
	lab := Lab{Name: name, World: worldOf(t, clusters...), Ours: map[Place]State{}}
	addresses := interesting(clusters)
	senders, pods := map[Place]netip.Addr{}, map[Place]bool{}
	for _, c := range clusters {
		for _, n := range c.nodes {
			lab.Ours[n.place], _ = Node(c.nodeInput(n))
			senders[n.place] = netip.Addr{}
			for _, pod := range n.pods {
				senders[c.place(pod)], pods[c.place(pod)] = pod, true
			}
		}
		for _, p := range c.peers {
			lab.Ours[p.gateway], _ = Gateway(c.gatewayInput(p))
			lab.intrude(p, addresses)
		}
		for _, s := range c.services {
			addresses = append(addresses, s.from.Addr())
		}
	}
	for _, c := range clusters {
		lab.inject(c, addresses)
	}
	for place, state := range others {
		lab.World[place] = state
		senders[place] = state.Links[0].Addresses[0].Addr()
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	addresses = slices.Compact(addresses)
	places := slices.Sorted(maps.Keys(senders))
	for i, to := range addresses {
		for j, place := range places {
			lab.try(place, senders[place], to, (i+j)%3)
			// Some pods say that they are somebody else: each by a port of its own, as nodes remember connections.
			if as := addresses[(7*i+13*j)%len(addresses)]; pods[place] && (i+j)%4 == 0 && as != senders[place] {
				packet := Packet{Protocol: UDP, Source: as, Destination: to, SourcePort: uint16(2000 + len(lab.Trials)), DestinationPort: 80, Size: 100} //nolint:gosec // Few.
				lab.Trials = append(lab.Trials, Trial{From: place, Packet: packet, Forged: true})
			}
		}
	}
	for _, c := range clusters {
		for _, p := range c.peers {
			for place, source := range senders {
				lab.ask(place, source, c.gatewayExternal(p))
			}
		}
		for _, s := range c.services {
			for place, source := range senders {
				lab.Trials = append(lab.Trials, Trial{From: place, Packet: Packet{Protocol: TCP, Source: source, Destination: s.from.Addr(), SourcePort: 1000,
					DestinationPort: s.from.Port(), Size: 60, Segment: wireMTU - headers4}})
			}
		}
	}
	return lab
}

// try has a place send to an address: by one protocol if what it sends has no way at all, so that large worlds stay few packets.
func (l *Lab) try(place Place, source, to netip.Addr, only int) {
	for i, protocol := range []string{TCP, UDP, ICMP} {
		p := Packet{Protocol: protocol, Source: source, Destination: to, SourcePort: 1000, DestinationPort: 80, Size: 100}
		switch protocol {
		case TCP:
			p.Size, p.Segment = 60, wireMTU-headers4
		case ICMP:
			p.Type, p.DestinationPort = echoRequest, p.SourcePort
		}
		_, arrives := Arrived(Walk(l.World, place, p).There)
		if arrives && len(l.World) < 20 || i == only {
			l.Trials = append(l.Trials, Trial{From: place, Packet: p})
		}
	}
}

// ask has a place ask a gateway, as nodes do.
func (l *Lab) ask(place Place, source, gateway netip.Addr) {
	packet := Packet{Protocol: TCP, Source: source, Destination: gateway, SourcePort: 1000, DestinationPort: AskedPort, Size: 60, Segment: wireMTU - headers4}
	if !source.IsValid() {
		packet.Segment -= OverlayOverhead4 // as its own device tells it
	}
	l.Trials = append(l.Trials, Trial{From: place, Packet: packet})
}

// intrude has the peer at the other end of a tunnel send from and to whatever means anything to anybody.
func (l *Lab) intrude(p *peering, addresses []netip.Addr) {
	some := 1 + len(addresses)*len(addresses)/400
	for i, from := range addresses {
		for j, to := range addresses {
			if (31*i+17*j)%some == 0 {
				packet := Packet{Protocol: UDP, Source: from, Destination: to, SourcePort: 1000, DestinationPort: 80, Size: 100}
				l.Intruders = append(l.Intruders, Trial{From: p.gateway, Packet: packet})
			}
		}
	}
}

// inject has pods speak the overlay's language to nodes and gateways: as if packets for pods came out of them, from anybody.
func (l *Lab) inject(c *cluster, addresses []netip.Addr) {
	var ends []netip.Addr
	for _, n := range c.nodes {
		ends = append(ends, n.VTEP)
	}
	for _, p := range c.peers {
		ends = append(ends, p.address)
	}
	pods := c.allPods()
	for i, pod := range pods {
		for j, end := range ends {
			for k := range 4 {
				inner := Packet{Protocol: UDP, Source: addresses[(7*i+13*j+29*k)%len(addresses)], Destination: pods[(i+j+k)%len(pods)], SourcePort: 1000,
					DestinationPort: 80, Size: 100}
				l.Trials = append(l.Trials, Trial{From: c.place(pod), Packet: Packet{Protocol: UDP, Source: pod, Destination: end, SourcePort: 1000,
					DestinationPort: DefaultOverlayPort, Size: 150, Inner: &inner, MAC: macOf(end)}})
			}
		}
	}
}

// Labs are the worlds of the walks.
func Labs(t fataler) []Lab {
	a, b := twins()
	a.ips = []IP{
		{Address: addr("10.96.0.1"), External: addr("10.70.0.100"), Masquerade: true},
		{Address: addr("172.31.1.2"), External: addr("10.70.0.101"), Masquerade: true},
		{Address: addr("192.0.2.50"), External: addr("10.70.0.102"), Masquerade: true},
		{Address: addr("192.0.2.51"), External: addr("10.70.0.103")},
	}
	for from, to := range map[string]string{"10.96.0.1:443": "172.31.1.1:6443", "10.96.0.20:80": "10.61.2.2:8080", "172.31.1.2:30080": "10.61.2.2:8080"} {
		a.services = append(a.services, service{netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)})
	}
	unmasked := a.outsider(addr("192.0.2.51"))
	unmasked.Routes = append(unmasked.Routes, Route{Table: MainTable, Destination: prefix("10.61.0.0/16"), Device: "eth0", Via: addr("172.31.1.1")})
	labs := []Lab{labOf(t, "equal ranges", []*cluster{a, b}, map[Place]State{
		"client": a.outsider(addr("198.51.100.9")), "printer": a.outsider(addr("192.0.2.50")), "unmasked": unmasked,
	})}

	a = newCluster("A", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2)
	b = newCluster("B", "10.245.0.0/16", "10.71.0.0/16", "172.31.2.0", 2)
	connect(b, a, func(_, _ *cluster, own netip.Prefix) netip.Prefix { return own })
	labs = append(labs, labOf(t, "no overlap", []*cluster{a, b}, nil))

	a = newCluster("A", "10.200.0.0/16", "10.201.0.0/16", "172.31.1.0", 2)
	b = newCluster("B", "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 1)
	crossed := map[string]string{"10.244.0.0/16": "10.70.0.0/16", "10.70.0.0/16": "10.244.0.0/16", "10.200.0.0/16": "10.201.0.0/16", "10.201.0.0/16": "10.200.0.0/16"}
	connect(b, a, func(_, _ *cluster, own netip.Prefix) netip.Prefix { return prefix(crossed[own.String()]) })
	labs = append(labs, labOf(t, "ranges that cross", []*cluster{a, b}, nil))
	return append(append(append(labs, hubLab(t)), anyLabs(t, 4)...), isolatedLab(t))
}

// isolatedLab has A share one of its two pods with B, and one port of a node.
func isolatedLab(t fataler) Lab {
	a, b := twins()
	a.ips = []IP{
		{Address: addr("192.0.2.50"), External: addr("10.70.0.102"), Masquerade: true},
		{Address: addr("172.31.1.2"), External: addr("10.70.0.101"), Masquerade: true, Ports: []Port{{TCP, 80}}},
	}
	a.peers[0].isolation = Isolation{On: true, Pods: []netip.Addr{a.nodes[1].pods[0]}}
	return labOf(t, "isolated", []*cluster{a, b}, map[Place]State{"printer": a.outsider(addr("192.0.2.50"))})
}

func hubLab(t fataler) Lab {
	var all []*cluster
	for _, name := range []string{"H", "L", "M"} {
		all = append(all, newCluster(name, "10.244.0.0/16", "10.70.0.0/16", "172.31.1.0", 2))
	}
	all[0].transit = true
	number := byte(60)
	seen := func(_, _ *cluster, own netip.Prefix) netip.Prefix {
		number++
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, number}), own.Bits())
	}
	connect(all[0], all[1], seen)
	connect(all[0], all[2], seen)
	carry(all, seen)
	return labOf(t, "hub", all, nil)
}

// anyLabs are worlds as the properties are tried with, of those that are small.
func anyLabs(t fataler, n int) (labs []Lab) {
	worlds := rapid.Custom(anyWorld)
	for seed := 1; len(labs) < n; seed++ {
		clusters := worlds.Example(seed)
		var names []string
		peers := 0
		for _, c := range clusters {
			names = append(names, c.name)
			peers += len(c.peers)
		}
		if world := worldOf(t, clusters...); peers > 0 && len(world) <= 30 {
			labs = append(labs, labOf(t, fmt.Sprintf("example %d of %s", seed, strings.Join(names, ", ")), clusters, nil))
		}
	}
	return labs
}

// Told says whether the sender of a packet that arrives is told if it is refused there, in words that it knows its own packet by.
func (l Lab) Told(trial Trial) bool {
	w := newWalker(l.World)
	trip := w.walk(trial.From, trial.Packet)
	if _, ok := Arrived(trip.There); !ok {
		return false
	}
	sent := trial.Packet
	if !sent.Source.IsValid() {
		sent.Source = trip.There[0].After.Source
	}
	return about(w.refuse(trip), trial.From, sent)
}

// TunnelMTU is that of all tunnels of these worlds.
const LabTunnelMTU = tunnelMTU

// ChangingLab is a world of two clusters with equal ranges, and what the agents own in it after both have changed in everything that leaves
// their pods' ways as they are: further ranges, IP resources, gateways, nodes.
func ChangingLab(t fataler) (lab Lab, changed map[Place]State) {
	a, b := twins()
	lab = labOf(t, "changing", []*cluster{a, b}, nil)
	changed = map[Place]State{}
	for _, c := range []*cluster{a, b} {
		c.ips = []IP{{Address: addr("192.0.2.50"), External: addr("10.70.0.102"), Masquerade: true}}
		c.peers[0].ranges = append(c.peers[0].ranges, Range{prefix("10.99.0.0/16"), prefix("10.98.0.0/16")})
		further := InternalNode{VTEP: addr("172.31.1.77"), External: addr("10.70.0.77"), Pods: prefixes("10.244.77.0/24")}
		for _, n := range c.nodes {
			input := c.nodeInput(n)
			input.Fabrics = append(input.Fabrics, InternalFabric{Gateway: addr("10.244.1.99"), Remote: prefixes("10.97.0.0/16"), MTU: tunnelMTU})
			input.Self.Pods = append(slices.Clone(input.Self.Pods), prefix("10.244.99.0/24"))
			changed[n.place], _ = Node(input)
		}
		for _, p := range c.peers {
			input := c.gatewayInput(p)
			input.Nodes = append(input.Nodes, further)
			changed[p.gateway], _ = Gateway(input)
		}
	}
	return lab, changed
}
