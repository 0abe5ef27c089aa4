package dataplane

import (
	"cmp"
	"net/netip"
	"slices"
)

// Names of our sets, maps and chains in a gateway.
const (
	setPeer  = "peer"
	setReach = "reach"
	setNodes = "nodes"
	mapIn    = "in_ips"
	mapOut   = "out_ips"

	chainFromPeer, chainToPeer             = "from_peer", "to_peer"
	chainErrorsFromPeer, chainErrorsToPeer = "errors_from_peer", "errors_to_peer"
)

// Types of ICMP.
const (
	echoReply, unreachable, echoRequest, timeExceeded, parameterProblem = 0, 3, 8, 11, 12
)

// errorTypes are those types of ICMP that quote the packet that they are about.
var errorTypes = []uint16{unreachable, timeExceeded, parameterProblem}

// tunnelLink is the network between the ends of a tunnel: the server has its first address, the client the second.
var tunnelLink = netip.MustParsePrefix("169.254.18.0/30")

// GatewayInput is what the State of a gateway to one peer is made of.
type GatewayInput struct {
	// Address is that of the gateway's pod, External its address from the external range.
	Address, External netip.Addr
	// Server tells which end of the tunnel this is.
	Server bool
	// Key is this end's public key, PeerKey the other's; Endpoint is where the other one is reached, if it need not come first.
	Key, PeerKey Key
	Endpoint     netip.AddrPort
	// ListenPort is the UDP port of this end; 0: any.
	ListenPort uint16

	// Peer are the peer's ranges: its pods, its external ranges, and those of others that it carries packets for.
	Peer []Range
	// Reach is what of ours the peer may reach, and what may reach it: ranges, or single pods.
	Reach []netip.Prefix
	// Isolation narrows that down.
	Isolation Isolation
	// IPs are all IP resources. What is no pod is reached through the gateway's own node.
	IPs []IP
	// Nodes are all nodes of the cluster; Host is the VTEP of the one that the gateway runs on.
	Nodes []InternalNode
	Host  netip.Addr
	// Transit are the gateways to other peers that this one may reach through us.
	Transit []InternalFabric

	// MTU is that of the gateway's pod, TunnelMTU that of the tunnel's device, PathMTU the largest packet that reaches the peer if that is less (0:
	// it is not), all in bytes. The device takes more than the path, so that it can be seen when the path does, too.
	MTU, TunnelMTU, PathMTU int
	// Port is the overlay's, of UDP.
	Port uint16
}

// Gateway says what a gateway needs to carry packets between the nodes of its cluster and its peer. It knows no connections: each packet is
// translated by itself, and only the peer's addresses are.
func Gateway(input GatewayInput) (State, []Problem) {
	var found problems
	if !found.is4("the gateway's address", input.Address) || !found.is4("the gateway's address towards peers", input.External) {
		return State{}, found
	}
	input.Peer = usableRanges(input.Peer, &found)
	input.Reach = found.four("range", input.Reach)
	input.IPs = usableIPs(input.IPs, &found)
	own := []netip.Addr{input.Address, input.External}
	input.Nodes = usableNodes(input.Nodes, own, &found)
	input.Transit = usable(input.Transit, own, &found)
	for _, fabric := range input.Transit {
		// It keeps its way: what is a node's address the node's kubelet says.
		if slices.Contains(vteps(input.Nodes), fabric.Gateway) {
			found.add(ProblemOverlap, "a gateway has the address %s, which is a node's or this host's", fabric.Gateway)
		}
	}

	if input.PathMTU >= input.TunnelMTU {
		input.PathMTU = 0
	}
	here, there := TunnelEnds(input.Server)
	state := State{
		Links: []Link{
			{Name: GatewayDevice, Kind: VXLAN, MTU: input.MTU - OverlayOverhead4, Addresses: singles(input.External),
				MAC: macOf(input.Address), Local: input.Address, VNI: VNI, Port: input.Port},
			{Name: TunnelDevice, Kind: WireGuard, MTU: input.TunnelMTU, Addresses: []netip.Prefix{netip.PrefixFrom(here, tunnelLink.Bits())},
				Port: input.ListenPort, Key: input.Key},
		},
		// A pod of the peer may have an address that is the gateway's own: what is carried must not look for its way in the local table.
		Rules: []Rule{
			{Priority: 0, Table: LocalTable, Absent: true},
			{Priority: linkPriority, To: tunnelLink, Table: LocalTable},
			{Priority: linkPriority, In: GatewayDevice, Mark: askedMark, Table: LocalTable},
			{Priority: insidePriority, In: TunnelDevice, Table: InsideTable},
			{Priority: outsidePriority, In: GatewayDevice, Table: OutsideTable},
			{Priority: gatewayLocalRule, Table: LocalTable},
			{Priority: answersPriority, From: single(input.External), Table: InsideTable},
		},
		Firewall: []Table{gatewayTable(input), withoutIPv6(TunnelDevice, GatewayDevice)},
		Devices:  []Setting{{GatewayDevice, forwarding, 1}, {TunnelDevice, forwarding, 1}},
	}
	peer := Peer{Device: TunnelDevice, Key: input.PeerKey, Endpoint: input.Endpoint, Allowed: singles(there), Keepalive: keepalive}
	for _, r := range input.Peer {
		peer.Allowed = append(peer.Allowed, r.Own)
	}
	peer.Allowed = outermost(peer.Allowed)
	state.Peers = []Peer{peer}
	for _, address := range vteps(input.Nodes) {
		state.Neighbors = append(state.Neighbors, neighbor(GatewayDevice, address))
	}
	for _, fabric := range input.Transit {
		state.Neighbors = append(state.Neighbors, neighbor(GatewayDevice, fabric.Gateway))
	}
	state.Routes = gatewayRoutes(input)
	state.sort()
	return state, found
}

// TunnelEnds are the addresses of a gateway's end of the tunnel and of the other one.
func TunnelEnds(server bool) (here, there netip.Addr) {
	first := tunnelLink.Addr().Next()
	if server {
		return first, first.Next()
	}
	return first.Next(), first
}

// gatewayRoutes are the ways to the nodes, by what is on them, and to the peer.
func gatewayRoutes(input GatewayInput) []Route {
	everything := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	routes := []Route{
		{Table: InsideTable, Destination: everything, Blackhole: true},
		{Table: OutsideTable, Destination: everything, Device: TunnelDevice, MTU: input.PathMTU},
	}
	known := map[netip.Prefix]bool{}
	inside := func(to netip.Prefix, via netip.Addr) {
		if !known[to] {
			known[to] = true
			routes = append(routes, Route{Table: InsideTable, Destination: to, Device: GatewayDevice, Via: via})
		}
	}
	var pods []netip.Prefix
	for _, node := range input.Nodes {
		inside(single(node.External), node.VTEP)
		for _, prefix := range node.Pods {
			inside(prefix, node.VTEP)
		}
		pods = append(pods, node.Pods...)
	}
	for _, fabric := range input.Transit {
		for _, remote := range fabric.Remote {
			inside(remote, fabric.Gateway)
		}
	}
	for _, ip := range input.IPs {
		// Both: packets are looked up with the one before, and their answers, for the check of sources, with the other.
		inside(single(ip.External), input.Host)
		if !slices.ContainsFunc(pods, func(p netip.Prefix) bool { return p.Contains(ip.Address) }) {
			inside(single(ip.Address), input.Host)
		}
	}
	return routes
}

// usableRanges are the peer's ranges that can be carried out, in order; of those that overlap, the first.
func usableRanges(ranges []Range, found *problems) []Range {
	sorted := slices.SortedFunc(slices.Values(ranges), func(a, b Range) int { return a.Own.Compare(b.Own) })
	var kept []Range
	for _, r := range sorted {
		if !r.Own.IsValid() || !r.Seen.IsValid() || !r.Own.Addr().Is4() || !r.Seen.Addr().Is4() || r.Own.Bits() != r.Seen.Bits() {
			found.add(ProblemFamily, "range %s of the peer cannot be seen as %s", r.Own, r.Seen)
			continue
		}
		r.Own, r.Seen = r.Own.Masked(), r.Seen.Masked()
		crosses := func(other Range) bool { return other.Own.Overlaps(r.Own) || other.Seen.Overlaps(r.Seen) }
		if i := slices.IndexFunc(kept, crosses); i >= 0 {
			found.add(ProblemOverlap, "range %s of the peer, seen as %s, overlaps %s, seen as %s", r.Own, r.Seen, kept[i].Own, kept[i].Seen)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// usableNodes are the nodes that can be carried out, in order. Several may have one address: a machine that got another name, whose old Node is still
// there. All that is theirs is reached there. The kernel refuses a next hop that is its host's own.
func usableNodes(nodes []InternalNode, own []netip.Addr, found *problems) []InternalNode {
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b InternalNode) int {
		return cmp.Or(a.VTEP.Compare(b.VTEP), a.External.Compare(b.External))
	})
	var kept []InternalNode
	for _, node := range sorted {
		if !found.is4("the address of a node", node.VTEP) || !found.is4("the address towards peers of a node", node.External) {
			continue
		}
		if slices.Contains(own, node.VTEP) {
			found.add(ProblemOverlap, "a node has the address %s, which is this gateway's", node.VTEP)
			continue
		}
		node.Pods = found.four("pod range", node.Pods)
		kept = append(kept, node)
	}
	return kept
}

// vteps are the addresses of nodes that are in order, each once.
func vteps(nodes []InternalNode) []netip.Addr {
	all := make([]netip.Addr, 0, len(nodes))
	for _, node := range nodes {
		all = append(all, node.VTEP)
	}
	return slices.Compact(all)
}

// gatewayTable is the firewall of a gateway.
func gatewayTable(input GatewayInput) Table {
	table := Table{Family: "ip", Name: FirewallTable, Counters: []string{counterForeign, counterSpoofed}}
	var own []netip.Prefix
	for _, r := range input.Peer {
		own = append(own, r.Own)
	}
	reach := slices.Clone(input.Reach)
	var overlay []netip.Addr
	for _, node := range input.Nodes {
		reach = append(reach, single(node.External))
		overlay = append(append(overlay, node.VTEP), node.Addresses...)
	}
	for _, fabric := range input.Transit {
		overlay = append(overlay, fabric.Gateway)
	}
	in, out := Map{Name: mapIn}, Map{Name: mapOut}
	for _, ip := range input.IPs {
		reach = append(reach, single(ip.External))
		in.Elements = append(in.Elements, Element{ip.External, ip.Address})
		out.Elements = append(out.Elements, Element{ip.Address, ip.External})
	}
	table.Sets = []Set{
		{Name: setPeer, Interval: true, Elements: outermost(own)},
		{Name: setReach, Interval: true, Elements: outermost(reach)},
		{Name: setNodes, Elements: singles(slices.DeleteFunc(overlay, func(a netip.Addr) bool { return !a.Is4() })...)},
	}
	isolate(&table, input)
	table.Maps = []Map{in, out}
	table.Chains = slices.Concat(portChains(input.IPs), fromPeer(input), toPeer(input))
	table.Chains = append(table.Chains,
		Chain{Name: "prerouting", Hook: Prerouting, Priority: PriorityRaw, Rules: []ChainRule{
			when(iif(TunnelDevice)).goTo(chainFromPeer),
			when(iif(GatewayDevice)).goTo(chainToPeer),
		}},
		Chain{Name: "input", Hook: Input, Priority: PriorityFilter, Rules: []ChainRule{
			when(port(input.Port), notIn(Source, setNodes)).drop(counterSpoofed),
			when(iif(TunnelDevice), icmp(echoRequest)).accept(),
			when(iif(TunnelDevice), state(StateEstablished)).accept(),
			when(iif(TunnelDevice)).drop(counterForeign),
		}})
	return table
}

// fromPeer are the chains for what comes out of the tunnel. Its source is the peer's own address, and becomes the one by which we see it.
func fromPeer(input GatewayInput) []Chain {
	translations, errors := rewriting(Source, QuotedDestination, input.Peer, func(r Range) (from, to netip.Prefix) { return r.Own, r.Seen })
	rules := []ChainRule{
		when(within(Source, tunnelLink), within(Destination, tunnelLink)).accept(),
		when().do(Statement{Do: Notrack}),
		when(notIn(Source, setPeer)).drop(counterSpoofed),
		// An IP resource may be a node: what that unpacks has passed none of these rules.
		when(port(input.Port)).drop(counterForeign),
		// Before the next: the peer knows an IP resource by its external address alone.
		when(notIn(Destination, setReach)).drop(counterForeign),
	}
	rules = append(rules, isolation(input.Isolation, Destination)...)
	for _, ip := range input.IPs {
		if len(ip.Ports) > 0 {
			rules = append(rules, when(within(Destination, single(ip.External))).do(Statement{Do: Jump, Name: portChain(ip)}))
		}
	}
	rules = append(rules,
		when().do(Statement{Do: Lookup, Field: Destination, Name: mapIn}),
		// The gateway itself is none of the pods that a peer may reach. What goes to its own address would come back to it by its node; the
		// kernel knows its own connections when they first pass, and does not forward what belongs to one.
		when(within(Destination, single(input.Address))).drop(counterForeign),
		when(Match{Field: Opening}).clamp(cmp.Or(input.PathMTU, input.TunnelMTU)-headers4),
	)
	// An error about what never went to the peer would end, or slow down, what a pod has with others.
	for _, kind := range errorTypes {
		rules = append(rules, when(icmp(kind), notIn(QuotedDestination, setPeer)).drop(counterSpoofed))
	}
	return withErrors(chainFromPeer, chainErrorsFromPeer, rules, translations, errors)
}

// portChain is the name of the chain of an IP resource that is reached at some ports alone.
func portChain(ip IP) string { return "ports_of_" + ip.External.String() }

// portChains are these chains. Errors pass, which no port has: without them the ends would not learn how large packets may be.
func portChains(ips []IP) (chains []Chain) {
	for _, ip := range ips {
		if len(ip.Ports) == 0 {
			continue
		}
		var rules []ChainRule
		for _, p := range ip.Ports {
			field := TCPPort
			if p.Protocol == UDP {
				field = UDPPort
			}
			rules = append(rules, when(Match{Field: field, Number: p.Number}).do(Statement{Do: Return}))
		}
		for _, kind := range errorTypes {
			rules = append(rules, when(icmp(kind)).do(Statement{Do: Return}))
		}
		chains = append(chains, Chain{Name: portChain(ip), Rules: append(rules, when().drop(counterForeign))})
	}
	return chains
}

// toPeer are the chains for what nodes send to the peer. Its destination is the address by which we see the peer, and becomes the peer's own.
func toPeer(input GatewayInput) []Chain {
	translations, errors := rewriting(Destination, QuotedSource, input.Peer, func(r Range) (from, to netip.Prefix) { return r.Seen, r.Own })
	for _, r := range input.Peer {
		if r.Own == r.Seen {
			translations = append(translations, when(within(Destination, r.Seen)).accept())
		}
	}
	rules := []ChainRule{
		when().do(Statement{Do: Lookup, Field: Source, Name: mapOut}),
		when().do(Statement{Do: Notrack}),
		when(notIn(Source, setReach)).drop(counterSpoofed),
	}
	rules = append(append(rules, isolation(input.Isolation, Source)...),
		// A node that asks whether the gateway hears it.
		when(within(Destination, single(input.External)), Match{Field: TCPPort, Number: AskedPort}).do(Statement{Do: Mark, Mark: askedMark}, Statement{Do: Accept}))
	return withErrors(chainToPeer, chainErrorsToPeer, rules, append(translations, when().drop(counterForeign)), errors)
}

// withErrors is a chain that begins with rules, and ends with translations; in between, if there are any, ICMP errors pass those of what they
// quote.
func withErrors(name, errorsName string, rules, translations, errors []ChainRule) []Chain {
	if len(errors) == 0 {
		return []Chain{{Name: name, Rules: append(rules, translations...)}}
	}
	for _, kind := range errorTypes {
		rules = append(rules, when(icmp(kind)).do(Statement{Do: Jump, Name: errorsName}))
	}
	return []Chain{{Name: errorsName, Rules: errors}, {Name: name, Rules: append(rules, translations...)}}
}

// rewriting is a rule for each range that is not seen as it is, and the one that does the same to the packet that an ICMP error quotes. Each
// address is rewritten once: what one range becomes may be another range. These are plain rules, and no map of verdicts: while the kernel puts
// rules in the place of others, a map that belongs to one of them is empty for a moment.
func rewriting(field, quoted Field, peer []Range, direction func(Range) (from, to netip.Prefix)) (rules, errors []ChainRule) {
	for _, r := range peer {
		if r.Own == r.Seen {
			continue
		}
		from, to := direction(r)
		rules = append(rules, when(within(field, from)).do(Statement{Do: Rewrite, Field: field, Prefix: to}, Statement{Do: Return}))
		errors = append(errors, when(within(quoted, from)).do(Statement{Do: Rewrite, Field: quoted, Prefix: to}, Statement{Do: Return}))
	}
	return rules, errors
}
