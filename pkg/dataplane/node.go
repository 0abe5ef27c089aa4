package dataplane

import (
	"cmp"
	"net/netip"
	"slices"
)

// Names of our sets, maps, chains and counters on a node.
const (
	setPods        = "pods"
	setGateways    = "gateways"
	setPeers       = "peers"
	setExternal    = "external"
	setMasqueraded = "masqueraded"
	// Of what comes by our device, the one has what goes on, the other what is for the node itself.
	chainFromPeers, chainToNode = "from_peers", "to_node"
	// chainFromGateways has what gateways say themselves.
	chainFromGateways = "from_gateways"
	// chainOpening finds the chain that bounds what a peer opens; its name begins with chainOpenedFrom.
	chainOpening, chainOpenedFrom = "opening", "opened_from_"

	// counterSpoofed counts packets that do not come from where they say, counterForeign those that go where nobody may send them.
	counterSpoofed, counterForeign = "spoofed", "foreign"
	// counterCrowded counts those that would open more connections than a peer may.
	counterCrowded = "crowded"
)

// A node has one table of connections, for its kubelet and all tenants; when it is full nobody connects to anything any more. What one peer opens there
// is bounded.
const (
	// mostOpened is how many connections of one peer a node remembers: a twentieth of the smallest table that kube-proxy makes, of 131072. Those of
	// TCP that have ended do not count.
	mostOpened = 131072 / 20
	// mostOpening is how many may begin in a second; twice as many at once. The kernel forgets about as many of those that have ended in that time.
	mostOpening = 2000
)

// NodeInput is what a node's State is made of.
type NodeInput struct {
	// Self is the node itself.
	Self InternalNode
	// Fabrics are all gateways of the cluster.
	Fabrics []InternalFabric
	// IPs are all IP resources.
	IPs []IP
	// MTU is that of the network between the nodes, in bytes.
	MTU int
	// Port is the overlay's, of UDP.
	Port uint16
}

// Node says what a node needs so that its pods, and itself, reach the pods of peers and are reached. A node of a cluster without gateways
// needs nothing.
func Node(input NodeInput) (State, []Problem) {
	var found problems
	if !found.is4("the node's address", input.Self.VTEP) || !found.is4("the node's address towards peers", input.Self.External) {
		return State{}, found
	}
	input.Self.Pods = found.four("pod range", input.Self.Pods)
	input.Fabrics = usable(input.Fabrics, append(slices.Clone(input.Self.Addresses), input.Self.VTEP, input.Self.External), &found)
	input.IPs = usableIPs(input.IPs, &found)
	if len(input.Fabrics) == 0 {
		return State{}, found
	}
	state := State{
		Links: []Link{{
			Name: NodeDevice, Kind: VXLAN, MTU: input.MTU - OverlayOverhead4, Addresses: singles(input.Self.External),
			MAC: macOf(input.Self.VTEP), Local: input.Self.VTEP, VNI: VNI, Port: input.Port,
		}},
		Firewall: []Table{nodeTable(input), withoutIPv6(NodeDevice)},
		Devices:  []Setting{{NodeDevice, forwarding, 1}},
	}
	asked := map[netip.Addr]bool{input.Self.External: true}
	for _, fabric := range input.Fabrics {
		if fabric.Gateway.IsValid() {
			state.Neighbors = append(state.Neighbors, neighbor(NodeDevice, fabric.Gateway))
		}
		if fabric.Gateway.IsValid() && fabric.External.Is4() && !asked[fabric.External] {
			asked[fabric.External] = true
			state.Routes = append(state.Routes, Route{
				Table: LocalTable, Destination: single(fabric.External), Device: NodeDevice, Via: fabric.Gateway, Source: input.Self.External,
			})
		}
		for _, remote := range fabric.Remote {
			state.Routes = append(state.Routes, input.Self.way(fabric, remote))
		}
	}
	state.sort()
	return state, found
}

// way is the route of a node to a range of a peer. If the gateway has no pod what goes there ends at the node, so that none of it comes to whoever
// else has such an address.
func (n InternalNode) way(fabric InternalFabric, remote netip.Prefix) Route {
	if !fabric.Gateway.IsValid() {
		return Route{Table: LocalTable, Destination: remote, Blackhole: true}
	}
	return Route{Table: LocalTable, Destination: remote, Device: NodeDevice, Via: fabric.Gateway, Source: n.External, MTU: fabric.MTU}
}

// usable are the gateways that can be carried out, in order: of those with overlapping ranges, the first; none with an address of the host, which
// the kernel refuses as a next hop. Two may have one address: a kubelet says what it likes of its pods, and what one of them lies takes no way from
// the other. The packets for both go there, where a gateway drops those that are not for its own peer.
func usable(fabrics []InternalFabric, own []netip.Addr, found *problems) []InternalFabric {
	var kept []InternalFabric
	ranges := map[netip.Prefix]netip.Addr{}
	for _, fabric := range slices.SortedFunc(slices.Values(fabrics), inOrder) {
		if fabric.Gateway.IsValid() && !found.is4("the gateway's address", fabric.Gateway) {
			continue
		}
		if slices.Contains(own, fabric.Gateway) {
			found.add(ProblemOverlap, "a gateway has the address %s, which is a node's or this host's", fabric.Gateway)
			continue
		}
		shared := fabric.Gateway.IsValid() && len(kept) > 0 && kept[len(kept)-1].Gateway == fabric.Gateway
		if shared {
			found.add(ProblemOverlap, "two gateways have the address %s", fabric.Gateway)
		}
		var remote []netip.Prefix
		for _, prefix := range found.four("range of a peer", fabric.Remote) {
			if other, holder, ok := overlapping(ranges, prefix); ok && shared && holder == fabric.Gateway {
				continue
			} else if ok {
				if fabric.Gateway.IsValid() {
					found.add(ProblemOverlap, "range %s of gateway %s overlaps %s of gateway %s", prefix, fabric.Gateway, other, holder)
				}
				continue
			}
			remote = append(remote, prefix)
		}
		for _, prefix := range remote {
			ranges[prefix] = fabric.Gateway
		}
		fabric.Remote = remote
		kept = append(kept, fabric)
	}
	return kept
}

// inOrder compares gateways. One without a pod has no address, and stands back behind another one of the same peer.
func inOrder(a, b InternalFabric) int {
	switch {
	case a.Gateway.IsValid() && !b.Gateway.IsValid():
		return -1
	case b.Gateway.IsValid() && !a.Gateway.IsValid():
		return 1
	}
	return cmp.Or(a.Gateway.Compare(b.Gateway), a.External.Compare(b.External), slices.CompareFunc(a.Remote, b.Remote, netip.Prefix.Compare))
}

func overlapping(taken map[netip.Prefix]netip.Addr, prefix netip.Prefix) (other netip.Prefix, holder netip.Addr, ok bool) {
	for other, holder := range taken {
		if other.Overlaps(prefix) {
			return other, holder, true
		}
	}
	return netip.Prefix{}, netip.Addr{}, false
}

// UsableIPs are the IP resources that nodes and gateways carry out.
func UsableIPs(ips []IP) []IP {
	var left problems
	return usableIPs(ips, &left)
}

// usableIPs are the IP resources that can be carried out, in order, each address once on either side. The one that stands for an address is reached at
// the ports of all for that address: peers are told this one's in place of the others'.
func usableIPs(ips []IP, found *problems) []IP {
	sorted := slices.SortedFunc(slices.Values(ips), func(a, b IP) int {
		return cmp.Or(a.External.Compare(b.External), a.Address.Compare(b.Address))
	})
	var kept []IP
	for _, ip := range sorted {
		same := func(other IP) bool { return other.Address == ip.Address || other.External == ip.External }
		switch {
		case !found.is4("the address of an IP resource", ip.Address) || !found.is4("the external address of an IP resource", ip.External):
		case slices.ContainsFunc(kept, same):
			found.add(ProblemOverlap, "two IP resources have %s or %s", ip.Address, ip.External)
			if i := slices.IndexFunc(kept, func(other IP) bool { return other.Address == ip.Address }); i >= 0 {
				kept[i].Ports = portsOfBoth(kept[i].Ports, ip.Ports)
			}
		default:
			kept = append(kept, ip)
		}
	}
	return kept
}

// portsOfBoth are the ports of two IP resources; none stands for all.
func portsOfBoth(one, other []Port) []Port {
	if len(one) == 0 || len(other) == 0 {
		return nil
	}
	both := slices.Concat(one, other)
	slices.SortFunc(both, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
	return slices.Compact(both)
}

// nodeTable is the firewall of a node. Connections are known here and nowhere else on the way: a packet's own node is where all of its
// connection passes.
func nodeTable(input NodeInput) Table {
	var gateways, external, masqueraded []netip.Addr
	var peers []netip.Prefix
	for _, fabric := range input.Fabrics {
		if fabric.Gateway.IsValid() {
			gateways = append(gateways, fabric.Gateway)
		}
		peers = append(peers, fabric.Remote...)
	}
	for _, ip := range input.IPs {
		external = append(external, ip.Address)
		if ip.Masquerade {
			masqueraded = append(masqueraded, ip.Address)
		}
	}
	// A pod that speaks the overlay's language could pretend to be a gateway, and through it a peer.
	injected := when(port(input.Port), in(Source, setPods), notIn(Source, setGateways)).drop(counterSpoofed)
	// So could a peer, where an IP resource is a node: the overlay is not carried in itself.
	nested := when(port(input.Port)).drop(counterForeign)
	table := Table{
		Family: "ip", Name: FirewallTable, Counters: []string{counterCrowded, counterForeign, counterSpoofed},
		Sets: []Set{
			{Name: setPods, Interval: true, Elements: input.Self.Pods},
			{Name: setGateways, Elements: singles(gateways...)},
			{Name: setPeers, Interval: true, Elements: outermost(peers)},
			{Name: setExternal, Elements: singles(external...)},
			{Name: setMasqueraded, Elements: singles(masqueraded...)},
		},
		Chains: []Chain{
			// Before the CNI's and kube-proxy's: of several rules for one connection, the first counts.
			{Name: "postrouting", Hook: Postrouting, Priority: PrioritySrcNAT - 1, NAT: true, Rules: []ChainRule{
				when(oif(NodeDevice), in(Source, setPods)).do(Statement{Do: SNAT, Field: Source}),
				when(oif(NodeDevice)).do(Statement{Do: SNAT, Address: netip.AddrPortFrom(input.Self.External, 0)}),
				when(in(Source, setPeers), in(OriginalDestination, setMasqueraded)).do(Statement{Do: Masquerade}),
			}},
			{Name: "input", Hook: Input, Priority: PriorityFilter, Rules: []ChainRule{
				injected,
				when(iif(NodeDevice)).goTo(chainToNode),
			}},
			{Name: "forward", Hook: Forward, Priority: PriorityFilter, Rules: []ChainRule{
				injected,
				when(oif(NodeDevice), Match{Field: Opening}).clamp(0),
				when(iif(NodeDevice)).goTo(chainFromPeers),
			}},
			{Name: chainToNode, Rules: append(slices.Concat([]ChainRule{nested}, peersOnly()),
				when(icmp(echoRequest)).accept(),
				when(in(OriginalDestination, setExternal)).accept(),
				when().drop(counterForeign),
			)},
			{Name: chainFromPeers, Rules: append(slices.Concat([]ChainRule{nested}, peersOnly()),
				when(in(OriginalDestination, setExternal)).accept(),
				// A Service that leads to a pod is none: kube-proxy serves NodePorts at the node's address towards peers, too.
				when(notIn(OriginalDestination, setPods)).drop(counterForeign),
				when(in(Destination, setPods)).accept(),
				when().drop(counterForeign),
			)},
		},
	}
	table.Chains = append(append(table.Chains, fromGateways(input.Fabrics)), openingChains(input.Fabrics)...)
	return table
}

// openingChains are the chains that bound what peers open, each by itself. That of a peer is the same as long as its first range is: the kernel counts by it.
func openingChains(fabrics []InternalFabric) []Chain {
	// A connection is new until it is answered; datagrams that ask for no answer belong to one all the same.
	find, all := Chain{Name: chainOpening, Rules: []ChainRule{when(Match{Field: Confirmed}).do(Statement{Do: Return})}}, []Chain(nil)
	for _, fabric := range fabrics {
		if len(fabric.Remote) == 0 {
			continue
		}
		bound := Chain{Name: chainOpenedFrom + fabric.Remote[0].Addr().String(), Rules: []ChainRule{
			when().dropOver(RateOver, mostOpening, counterCrowded),
			when().dropOver(CountOver, mostOpened, counterCrowded),
		}}
		for _, remote := range fabric.Remote {
			find.Rules = append(find.Rules, when(within(Source, remote)).goTo(bound.Name))
		}
		all = append(all, bound)
	}
	return append(all, find)
}

// peersOnly are the rules by which a gateway that was taken over speaks for no one but peers, be it in a connection that is known: the node and its
// pods have others.
func peersOnly() []ChainRule {
	rules := append([]ChainRule{when(notIn(Source, setPeers)).goTo(chainFromGateways)}, aboutOthers()...)
	return append(rules, when(state(StateEstablished, StateRelated)).accept(), when(state(StateNew)).do(Statement{Do: Jump, Name: chainOpening}))
}

// fromGateways lets the gateways themselves answer the node's questions, and tell of packets that they cannot pass on.
func fromGateways(fabrics []InternalFabric) Chain {
	rules := aboutOthers()
	for _, fabric := range fabrics {
		if fabric.External.Is4() {
			rules = append(rules, when(within(Source, single(fabric.External)), state(StateEstablished, StateRelated)).accept())
		}
	}
	return Chain{Name: chainFromGateways, Rules: append(rules, when().drop(counterSpoofed))}
}

// aboutOthers drop errors about what went to no peer: they would end, or slow down, what a pod has with others.
func aboutOthers() (rules []ChainRule) {
	for _, kind := range errorTypes {
		rules = append(rules, when(icmp(kind), notIn(QuotedDestination, setPeers)).drop(counterSpoofed))
	}
	return rules
}
