package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
)

// What Walk needs of a cluster besides our States: nodes on one wire, a CNI that routes between nodes and masquerades what leaves the
// cluster, as flannel, Calico and AWS do, and kube-proxy.

const (
	wireMTU   = 1500
	tunnelMTU = wireMTU - TunnelOverhead4
)

func prefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }
func addr(text string) netip.Addr     { return netip.MustParseAddr(text) }

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, prefix(text))
	}
	return all
}

// service is a ClusterIP or a NodePort, and where kube-proxy sends its connections.
type service struct{ from, to netip.AddrPort }

// cluster is a cluster of a world.
type cluster struct {
	name     string
	pods     []netip.Prefix // the whole cluster's
	external netip.Prefix
	nodes    []*node
	ips      []IP
	services []service
	peers    []*peering
	transit  bool
	// lax clusters do not check sources (rp_filter 0): the others check strictly, on all devices.
	lax bool
}

type node struct {
	place Place
	InternalNode
	pods []netip.Addr // those that run, gateways aside
}

// peering is how a cluster sees one of its peers.
type peering struct {
	with *cluster
	// ranges of the peer, its own first; those from carried on belong to others, which the peer passes packets on to.
	ranges  []Range
	carried int
	// gateway to the peer, on the first node, and the address of its pod.
	gateway Place
	address netip.Addr
	key     Key
	server  bool
	// isolation is what of the cluster's own pods the peer reaches.
	isolation Isolation
}

// remote are the ranges under which the cluster sees the peer.
func (p *peering) remote() []netip.Prefix {
	var all []netip.Prefix
	for _, r := range p.ranges {
		all = append(all, r.Seen)
	}
	return all
}

// announced are the cluster's ranges as a peer is told: its own, and how it sees its other peers if it carries packets for them.
func (c *cluster) announced(to *cluster) (own, others []netip.Prefix) {
	own = append(slices.Clone(c.pods), c.external)
	for _, p := range c.peers {
		if c.transit && p.with != to {
			for _, r := range p.ranges[:p.carried] {
				others = append(others, r.Seen)
			}
		}
	}
	return own, others
}

func (c *cluster) peer(with *cluster) *peering {
	i := slices.IndexFunc(c.peers, func(p *peering) bool { return p.with == with })
	if i < 0 {
		return nil
	}
	return c.peers[i]
}

func (c *cluster) fabrics(but *peering) []InternalFabric {
	var all []InternalFabric
	for _, p := range c.peers {
		if p != but {
			all = append(all, InternalFabric{p.address, c.gatewayExternal(p), p.remote(), tunnelMTU})
		}
	}
	return all
}

func (c *cluster) internalNodes() []InternalNode {
	var all []InternalNode
	for _, n := range c.nodes {
		all = append(all, n.InternalNode)
	}
	return all
}

func (c *cluster) nodeInput(n *node) NodeInput {
	return NodeInput{Self: n.InternalNode, Fabrics: c.fabrics(nil), IPs: c.ips, MTU: wireMTU, Port: DefaultOverlayPort}
}

func (c *cluster) gatewayInput(p *peering) GatewayInput {
	back := p.with.peer(c)
	input := GatewayInput{
		Address: p.address, External: c.gatewayExternal(p), Server: p.server, Key: p.key, PeerKey: back.key,
		Peer: p.ranges, IPs: c.ips, Nodes: c.internalNodes(), Host: c.nodes[0].VTEP,
		MTU: wireMTU, TunnelMTU: tunnelMTU, Port: DefaultOverlayPort, Isolation: p.isolation,
	}
	if p.server {
		input.ListenPort = 51820
	} else {
		input.Endpoint = netip.MustParseAddrPort("203.0.113.7:51820")
	}
	own, others := c.announced(p.with)
	input.Reach = append(own, others...)
	if c.transit {
		for _, other := range c.peers {
			if other != p {
				fabric := InternalFabric{Gateway: other.address, MTU: tunnelMTU}
				for _, r := range other.ranges[:other.carried] {
					fabric.Remote = append(fabric.Remote, r.Seen)
				}
				input.Transit = append(input.Transit, fabric)
			}
		}
	}
	return input
}

func (c *cluster) gatewayExternal(p *peering) netip.Addr {
	return offset(c.external.Addr(), 200+slices.Index(c.peers, p))
}

// offset is the n-th address after another one.
func offset(address netip.Addr, n int) netip.Addr {
	raw := address.As4()
	sum := int(raw[2])<<8 + int(raw[3]) + n
	raw[2], raw[3] = raw[2]+byte(sum>>8)-raw[2], byte(sum)
	return netip.AddrFrom4(raw)
}

// fataler is a test, or one example of a property.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// addTo puts the cluster's places into a world.
func (c *cluster) addTo(t fataler, world map[Place]State) {
	sound := func(state State, problems []Problem) State {
		if len(problems) > 0 {
			t.Helper()
			t.Fatalf("cluster %s: %v", c.name, problems)
		}
		return state
	}
	for _, p := range c.peers {
		world[p.gateway] = c.checked(c.pod(p.address).With(sound(Gateway(c.gatewayInput(p)))))
	}
	for i, n := range c.nodes {
		here := slices.Clone(n.pods)
		for _, p := range c.peers {
			if i == 0 {
				here = append(here, p.address)
			}
		}
		world[n.place] = c.checked(c.environment(n, here).With(sound(Node(c.nodeInput(n)))))
		for _, pod := range n.pods {
			world[c.place(pod)] = c.pod(pod)
		}
	}
}

// checked has all devices of a place check sources.
func (c *cluster) checked(state State) State {
	for _, link := range state.Links {
		if !c.lax {
			state.Devices = append(state.Devices, Setting{link.Name, reversePath, 1})
		}
	}
	return state
}

// place is where a pod is.
func (c *cluster) place(pod netip.Addr) Place { return Place(fmt.Sprintf("%s pod %s", c.name, pod)) }

func (c *cluster) wire(pod netip.Addr) string { return fmt.Sprintf("%s veth %s", c.name, pod) }

func (c *cluster) pod(address netip.Addr) State {
	return State{
		Links:  []Link{{Name: "eth0", Kind: Ethernet, MTU: wireMTU, Addresses: singles(address), Wire: c.wire(address)}},
		Routes: []Route{{Table: MainTable, Destination: prefix("0.0.0.0/0"), Device: "eth0"}},
	}
}

// outsider is a machine in the network of a cluster's nodes.
func (c *cluster) outsider(address netip.Addr) State {
	state := c.pod(address)
	state.Links[0].Wire = c.name + " lan"
	return state
}

// environment is what the CNI and kube-proxy have on a node.
func (c *cluster) environment(n *node, pods []netip.Addr) State {
	state := State{
		Links:    []Link{{Name: "eth0", Kind: Ethernet, MTU: wireMTU, Addresses: singles(n.VTEP), Wire: c.name + " lan"}},
		Routes:   []Route{{Table: MainTable, Destination: prefix("0.0.0.0/0"), Device: "eth0"}},
		Devices:  []Setting{{"eth0", forwarding, 1}},
		Firewall: []Table{c.masquerade(), c.kubeProxy()},
	}
	for i, pod := range pods {
		device := fmt.Sprintf("veth%d", i)
		state.Links = append(state.Links, Link{Name: device, Kind: Ethernet, MTU: wireMTU, Wire: c.wire(pod)})
		state.Routes = append(state.Routes, Route{Table: MainTable, Destination: single(pod), Device: device})
		state.Devices = append(state.Devices, Setting{device, forwarding, 1})
	}
	for _, other := range c.nodes {
		for _, pods := range other.Pods {
			if other != n {
				state.Routes = append(state.Routes, Route{Table: MainTable, Destination: pods, Device: "eth0", Via: other.VTEP})
			}
		}
	}
	return state
}

func (c *cluster) masquerade() Table {
	return Table{
		Family: "ip", Name: "cni", Sets: []Set{{Name: "cluster", Interval: true, Elements: outermost(c.pods)}},
		Chains: []Chain{{Name: "postrouting", Hook: Postrouting, Priority: PrioritySrcNAT, NAT: true, Rules: []ChainRule{
			when(in(Source, "cluster"), notIn(Destination, "cluster")).do(Statement{Do: Masquerade}),
		}}},
	}
}

func (c *cluster) kubeProxy() Table {
	var rules []ChainRule
	for _, s := range c.services {
		rules = append(rules, when(within(Destination, single(s.from.Addr())), Match{Field: TCPPort, Number: s.from.Port()}).
			do(Statement{Do: DNAT, Address: s.to}))
	}
	return Table{Family: "ip", Name: "kube-proxy", Chains: []Chain{
		{Name: "prerouting", Hook: Prerouting, Priority: PriorityDstNAT, NAT: true, Rules: rules},
		{Name: "output", Hook: Output, Priority: PriorityDstNAT, NAT: true, Rules: rules},
	}}
}

// newCluster makes one whose n-th node has the n-th /24 of its pods, the n-th address of its network and of its external range.
func newCluster(name, pods, external, lan string, nodes int) *cluster {
	c := &cluster{name: name, pods: prefixes(pods), external: prefix(external)}
	for i := range nodes {
		n := &node{place: Place(fmt.Sprintf("%s%d", name, i+1))}
		n.VTEP, n.External = offset(addr(lan), i+1), offset(c.external.Addr(), i+1)
		n.InternalNode.Pods = []netip.Prefix{netip.PrefixFrom(offset(c.pods[0].Addr(), 256*(i+1)), 24)}
		n.pods = []netip.Addr{offset(n.InternalNode.Pods[0].Addr(), 2)}
		n.Addresses = []netip.Addr{n.VTEP}
		c.nodes = append(c.nodes, n)
	}
	return c
}

// gatewayNumber is where the addresses of a cluster's gateways begin in the first node's range: in each cluster of a world elsewhere.
func gatewayNumber(cluster string) int { return 200 + int(cluster[0]-'A')%5*10 }

// connect peers two clusters; seen gives, for a range, how the one sees the other's.
func connect(one, other *cluster, seen func(by, of *cluster, own netip.Prefix) netip.Prefix) {
	for i, pair := range [][2]*cluster{{one, other}, {other, one}} {
		by, of := pair[0], pair[1]
		p := &peering{with: of, gateway: Place(fmt.Sprintf("g%s-%s", by.name, of.name)), key: Key{by.name[0], of.name[0]}, server: i == 0}
		p.address = offset(by.nodes[0].InternalNode.Pods[0].Addr(), gatewayNumber(by.name)+len(by.peers))
		by.peers = append(by.peers, p)
		own, _ := of.announced(by)
		for _, r := range own {
			p.ranges = append(p.ranges, Range{r, seen(by, of, r)})
		}
		p.carried = len(own)
	}
}

// carry tells all peers of hubs of each other.
func carry(clusters []*cluster, seen func(by, of *cluster, own netip.Prefix) netip.Prefix) {
	for _, hub := range clusters {
		for _, p := range hub.peers {
			leaf := p.with
			if _, others := hub.announced(leaf); len(others) > 0 {
				back := leaf.peer(hub)
				for _, r := range others {
					back.ranges = append(back.ranges, Range{r, seen(leaf, hub, r)})
				}
			}
		}
	}
}
