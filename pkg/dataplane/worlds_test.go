package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"liqo.io/liqo/pkg/addressing"
)

// pools are where ranges for peers are taken from.
var pools = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")

// layouts are ranges of a cluster, by themselves sound and with each other in every kind of conflict: equal, one within the other, pods here
// and external range there, nodes in somebody's pods.
var layouts = []struct {
	pods          []string
	external, lan string
}{
	{[]string{"10.244.0.0/16"}, "10.70.0.0/16", "172.31.1.0"},
	{[]string{"10.244.0.0/16"}, "10.70.0.0/16", "172.31.1.0"},
	{[]string{"10.244.0.0/15"}, "10.71.0.0/16", "172.31.1.0"},
	{[]string{"10.244.0.0/20", "10.245.0.0/16"}, "10.70.0.0/16", "10.246.1.0"},
	{[]string{"10.70.0.0/16"}, "10.244.0.0/16", "10.61.1.0"},
	{[]string{"172.31.0.0/16"}, "10.70.0.0/16", "10.244.1.0"},
	{[]string{"192.168.0.0/17", "10.61.0.0/16"}, "10.70.0.0/17", "172.31.1.0"},
}

// anyWorld draws 1–5 clusters of 1–5 nodes, and who peers with whom and who is a hub.
func anyWorld(t *rapid.T) []*cluster {
	var all []*cluster
	for i := range rapid.IntRange(1, 5).Draw(t, "clusters") {
		layout := layouts[rapid.IntRange(0, len(layouts)-1).Draw(t, "layout")]
		c := newCluster(string(rune('A'+i)), layout.pods[0], layout.external, layout.lan, rapid.IntRange(1, 5).Draw(t, "nodes"))
		c.pods = prefixes(layout.pods...)
		c.lax = rapid.Bool().Draw(t, "rp_filter 0")
		c.transit = rapid.Bool().Draw(t, "hub")
		anyPods(t, c)
		if rapid.Bool().Draw(t, "IP resource") {
			c.ips = []IP{{Address: addr("198.18.0.1"), External: offset(c.external.Addr(), 100), Masquerade: true}, {Address: c.nodes[0].VTEP, External: offset(c.external.Addr(), 101)}}
		}
		all = append(all, c)
	}
	for i, one := range all {
		for _, other := range all[:i] {
			if rapid.Bool().Draw(t, "peered") {
				connect(one, other, allocated)
			}
		}
	}
	carry(all, allocated)
	return all
}

// anyPods gives some nodes of a cluster pods of another of its ranges, by range or one by one, and some pods of other nodes' ranges.
func anyPods(t *rapid.T, c *cluster) {
	// One has the address that a gateway may have in another cluster.
	first := c.nodes[0]
	first.pods = append(first.pods, offset(first.InternalNode.Pods[0].Addr(), gatewayNumber(string(c.name[0]+1))))
	for i, n := range c.nodes {
		switch rapid.IntRange(0, 3).Draw(t, "pods") {
		case 1:
			second := netip.PrefixFrom(offset(c.pods[len(c.pods)-1].Addr(), 256*(i+10)), 24)
			n.InternalNode.Pods, n.pods = append(n.InternalNode.Pods, second), append(n.pods, offset(second.Addr(), 2))
		case 2:
			n.InternalNode.Pods = singles(n.pods...)
			if i == 0 { // where gateways run
				n.InternalNode.Pods = append(n.InternalNode.Pods, netip.PrefixFrom(offset(c.pods[0].Addr(), 256), 24))
			}
		case 3:
			guest := offset(c.pods[0].Addr(), 256*(1+(i+1)%len(c.nodes))+50+i)
			n.InternalNode.Pods, n.pods = append(n.InternalNode.Pods, single(guest)), append(n.pods, guest)
		}
	}
}

// allocated is how a cluster sees a range of a peer, by what it uses at that time.
func allocated(by, of *cluster, own netip.Prefix) netip.Prefix {
	used := addressing.Used{Pods: by.pods, External: []netip.Prefix{by.external}, Services: prefixes("10.96.0.0/12"), Peers: map[string][]netip.Prefix{}}
	for _, n := range by.nodes {
		used.Nodes = append(used.Nodes, n.VTEP)
	}
	for _, p := range by.peers {
		used.Peers[p.with.name] = p.remote()
	}
	seen, err := addressing.Allocate(of.name, own, pools, used)
	if err != nil {
		panic(err)
	}
	return seen
}

// seenAs translates an address as a cluster sees it that a peer announced; false if it did not.
func (p *peering) seenAs(own netip.Addr) (netip.Addr, bool) {
	for _, r := range p.ranges {
		if r.Own.Contains(own) {
			return graft(own, r.Seen), true
		}
	}
	return netip.Addr{}, false
}

// path is how one cluster may reach another one: the address by which it sees one of the other's, directly or through a hub.
type path struct {
	name string
	see  func(own netip.Addr) netip.Addr
}

// paths are all ways from one cluster to another one, each with the one back. This is the specification: by what each announced.
func paths(from, to *cluster) (there, back []path) {
	direct := func(by, of *cluster) path {
		return path{"direct", func(own netip.Addr) netip.Addr {
			seen, _ := by.peer(of).seenAs(own)
			return seen
		}}
	}
	through := func(by, hub, of *cluster) path {
		return path{"through " + hub.name, func(own netip.Addr) netip.Addr {
			middle, _ := hub.peer(of).seenAs(own)
			seen, _ := by.peer(hub).seenAs(middle)
			return seen
		}}
	}
	if from == to {
		return nil, nil
	}
	if from.peer(to) != nil {
		there, back = append(there, direct(from, to)), append(back, direct(to, from))
	}
	for _, p := range from.peers {
		if hub := p.with; hub != to && hub.transit && hub.peer(to) != nil {
			there, back = append(there, through(from, hub, to)), append(back, through(to, hub, from))
		}
	}
	return there, back
}

func (c *cluster) allPods() (all []netip.Addr) {
	for _, n := range c.nodes {
		all = append(all, n.pods...)
	}
	return all
}

// Every pod reaches every pod that it may, by TCP, UDP and echo, however the ranges overlap and by every way; it is seen as what the other
// cluster gave it; the answer comes from the address that was asked, and is as large as the tunnel takes.
func TestEveryPodReachesEveryPodThatItMay(t *testing.T) {
	reached := 0
	rapid.Check(t, func(t *rapid.T) {
		all := anyWorld(t)
		w := newWalker(worldOf(t, all...))
		protocol := rapid.SampledFrom([]string{TCP, UDP, ICMP}).Draw(t, "protocol")
		for _, from := range all {
			for _, to := range all {
				there, back := paths(from, to)
				for i := range there {
					for _, a := range some(t, from.allPods()) {
						for _, b := range some(t, to.allPods()) {
							p := Packet{Protocol: protocol, Source: a, Destination: there[i].see(b), SourcePort: 1000, DestinationPort: 80, Size: tunnelMTU}
							switch protocol {
							case TCP:
								p.Segment = wireMTU - headers4
							case ICMP:
								p.Type, p.DestinationPort = echoRequest, p.SourcePort
							}
							trip := w.walk(from.place(a), p)
							if why := wrong(trip, p, from.place(a), to.place(b), back[i].see(a), b); why != "" {
								t.Fatalf("%s of %s to %s of %s %s: %s\n%s", a, from.name, b, to.name, there[i].name, why, trip)
							}
							if hops := w.refuse(trip); protocol != ICMP && !about(hops, from.place(a), p) {
								t.Fatalf("%s of %s is not told about %s:\n%s", a, from.name, p, Trip{There: hops})
							}
							w.knowsNoConnections(t, from, to)
							reached++
						}
					}
				}
			}
		}
	})
	if reached == 0 {
		t.Error("no world has a way")
	}
	t.Log(reached, "pairs")
}

// knowsNoConnections checks that gateways remember nothing but the overlay: so their restart costs nobody a connection.
func (w *walker) knowsNoConnections(t fataler, clusters ...*cluster) {
	for _, c := range clusters {
		for _, p := range c.peers {
			for _, connection := range w.hosts[p.gateway].connections {
				if connection.original.destination.Port() != DefaultOverlayPort {
					t.Fatalf("%s remembers %v", p.gateway, connection.original)
				}
			}
		}
	}
}

// some are up to two of several pods: more of them would be further worlds.
func some(t *rapid.T, pods []netip.Addr) []netip.Addr {
	return []netip.Addr{rapid.SampledFrom(pods).Draw(t, "pod"), rapid.SampledFrom(pods).Draw(t, "other pod")}
}

// wrong says what is wrong with a trip; nothing if it is right.
func wrong(trip Trip, p Packet, from, to Place, source, destination netip.Addr) string {
	there, ok := Arrived(trip.There)
	back, again := Arrived(trip.Back)
	switch {
	case !ok || there.Place != to:
		return "it does not arrive"
	case there.After.Source != source || there.After.Destination != destination:
		return fmt.Sprintf("it arrives as %s, not from %s", there.After, source)
	case !again || back.Place != from:
		return "the answer does not come back"
	case back.After.tuple() != p.tuple().inverse():
		return fmt.Sprintf("the answer is %s", back.After)
	case p.Segment > 0 && (there.After.Segment > tunnelMTU-headers4 || back.After.Segment > tunnelMTU-headers4):
		return fmt.Sprintf("segments of %d and %d bytes are offered", there.After.Segment, back.After.Segment)
	default:
		return ""
	}
}

// interesting are addresses that mean something to somebody in a world: pods, nodes, gateways, IP resources, as everybody sees them.
func interesting(all []*cluster) []netip.Addr {
	found := []netip.Addr{addr("169.254.18.1"), addr("169.254.18.2"), addr("198.18.0.1"), addr("10.96.0.1"), addr("8.8.8.8")}
	for _, c := range all {
		found = append(found, c.allPods()...)
		for _, n := range c.nodes {
			found = append(found, n.VTEP, n.External)
		}
		for i, p := range c.peers {
			found = append(found, p.address, c.gatewayExternal(c.peers[i]))
		}
		for _, ip := range c.ips {
			found = append(found, ip.External)
		}
	}
	own := slices.Clone(found)
	for _, c := range all {
		for _, p := range c.peers {
			for _, address := range own {
				if seen, ok := p.seenAs(address); ok {
					found = append(found, seen)
				}
			}
		}
	}
	return found
}

// owner is the cluster that a place is in.
func owner(all []*cluster, place Place) *cluster {
	return all[slices.IndexFunc(all, func(c *cluster) bool {
		return c.name == string(place[:1]) || place[0] == 'g' && c.name == string(place[1:2])
	})]
}

// permitted says why a packet of TCP should not have been delivered where it was; nothing if it may.
func permitted(all []*cluster, from *cluster, last Hop) string {
	to := owner(all, last.Place)
	if to == from {
		return ""
	}
	there, back := paths(from, to)
	if len(there) == 0 {
		return "the clusters do not know each other"
	}
	exported := slices.ContainsFunc(to.ips, func(ip IP) bool { return ip.Address == last.After.Destination })
	gateway := slices.ContainsFunc(to.peers, func(p *peering) bool { return p.address == last.After.Destination })
	if !slices.Contains(to.allPods(), last.After.Destination) && !exported && !gateway {
		return "it is neither a pod nor an IP resource"
	}
	// What comes from whom, as the receiver is to see it: the pods and nodes of those that have a way here.
	known := func(p path) bool {
		for _, address := range interesting([]*cluster{from}) {
			if p.see(address) == last.After.Source {
				return true
			}
		}
		return false
	}
	masqueraded := exported && slices.ContainsFunc(to.nodes, func(n *node) bool { return n.VTEP == last.After.Source })
	if !slices.ContainsFunc(back, known) && !masqueraded {
		return fmt.Sprintf("its source is %s", last.After.Source)
	}
	return ""
}

// Each node is answered by each gateway of its own cluster, by the overlay alone: so it notices that a firewall between them lets nothing of
// that pass. The answer does not come by another way.
func TestNodesAreAnsweredByGateways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := anyWorld(t)
		w := newWalker(worldOf(t, all...))
		for _, c := range all {
			for _, n := range c.nodes {
				for _, p := range c.peers {
					trip := w.walk(n.place, Packet{Protocol: TCP, Destination: c.gatewayExternal(p), SourcePort: 1000, DestinationPort: AskedPort, Size: 60})
					there, heard := Arrived(trip.There)
					back, answered := Arrived(trip.Back)
					if !heard || !answered || there.Place != p.gateway || there.In != GatewayDevice || back.Place != n.place || back.In != NodeDevice {
						t.Fatalf("%s asks gateway %s:\n%s", n.place, p.gateway, trip)
					}
				}
			}
		}
	})
}

// Whatever a pod sends to whatever address that means anything to anybody: in another cluster it arrives at pods and IP resources alone, and
// only in clusters that its own has a way to.
func TestNothingElsePasses(t *testing.T) {
	foreign := 0
	rapid.Check(t, func(t *rapid.T) {
		all := anyWorld(t)
		w := newWalker(worldOf(t, all...))
		addresses := interesting(all)
		from := rapid.SampledFrom(all).Draw(t, "from")
		pod := rapid.SampledFrom(from.allPods()).Draw(t, "pod")
		for _, to := range addresses {
			hops := w.send(from.place(pod), Packet{Protocol: TCP, Source: pod, Destination: to, SourcePort: 1000, DestinationPort: anyPort(t), Size: 60})
			if last, ok := Arrived(hops); ok {
				if why := permitted(all, from, last); why != "" {
					t.Fatalf("from %s of %s to %s: %s\n%s", pod, from.name, to, why, Trip{There: hops})
				}
				if owner(all, last.Place) != from {
					foreign++
				}
			}
		}
	})
	if foreign == 0 {
		t.Error("nothing passes at all")
	}
}

func TestStatesDoNotDependOnTheOrderOfInputs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, c := range anyWorld(t) {
			input := c.nodeInput(c.nodes[0])
			one, _ := Node(input)
			input.Self.Pods, input.Fabrics, input.IPs = reversed(input.Self.Pods), reversed(input.Fabrics), reversed(input.IPs)
			if other, _ := Node(input); one.String() != other.String() {
				t.Fatalf("two States of a node:\n%s\n%s", one, other)
			}
			for _, p := range c.peers {
				input := c.gatewayInput(p)
				one, _ := Gateway(input)
				input.Peer, input.Reach, input.IPs, input.Nodes, input.Transit =
					reversed(input.Peer), reversed(input.Reach), reversed(input.IPs), reversed(input.Nodes), reversed(input.Transit)
				if other, _ := Gateway(input); one.String() != other.String() {
					t.Fatalf("two States of a gateway:\n%s\n%s", one, other)
				}
			}
		}
	})
}

func reversed[T any](values []T) []T {
	turned := slices.Clone(values)
	slices.Reverse(turned)
	return turned
}
