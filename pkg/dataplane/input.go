package dataplane

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// InternalNode is a node of this cluster, as the others see it.
type InternalNode struct {
	// VTEP is the address that packets of the overlay go to: the node's own.
	VTEP netip.Addr
	// External is the node's address towards peers, from the external range.
	External netip.Addr
	// Addresses are all that the node may send from, those of the CNI's devices included.
	Addresses []netip.Addr
	// Pods are the ranges of its pods, and single pods that are in no such range.
	Pods []netip.Prefix
}

// InternalFabric is a gateway of this cluster, as nodes and other gateways see it.
type InternalFabric struct {
	// Gateway is the address of the gateway's pod; invalid if it has none: what is for its peer goes nowhere then, and nothing is taken from it.
	Gateway netip.Addr
	// External is the gateway's own address towards peers, at which nodes ask whether it hears them; invalid if it is not known.
	External netip.Addr
	// Remote are the ranges under which this cluster sees the peer.
	Remote []netip.Prefix
	// MTU is the largest packet that reaches the peer, in bytes.
	MTU int
}

// IP is something that is no pod and that peers may reach: an IP resource.
type IP struct {
	// Address is where it is (spec.ip), External where peers find it (status.ip, from the external range).
	Address, External netip.Addr
	// Masquerade has it see the address of the gateway's node in place of the peer's.
	Masquerade bool
	// Ports are those at which peers reach it; none stands for all.
	Ports []Port
}

// Port is a port of TCP or UDP.
type Port struct {
	// Protocol is TCP or UDP.
	Protocol string
	Number   uint16
}

// Range is a range of a peer and how this cluster sees it; both have the same length.
type Range struct{ Own, Seen netip.Prefix }

// TunnelMTU returns the largest packet that a tunnel carries, in bytes: the smallest of the limits (the path's MTU between the gateways, that
// of the pods, that of the user; 0 is none) without what the tunnel adds on its way to the endpoint. It is one that WireGuard does not fill up
// at an end whose device takes larger ones.
func TunnelMTU(endpoint netip.Addr, limits ...int) int {
	overhead, smallest := TunnelOverhead4, 0
	if !endpoint.Unmap().Is4() {
		overhead = TunnelOverhead6
	}
	for _, limit := range limits {
		if limit > 0 && (smallest == 0 || limit < smallest) {
			smallest = limit
		}
	}
	smallest = max(smallest-overhead, 0)
	return smallest - smallest%Padding
}

// problems collects what is left out.
type problems []Problem

func (p *problems) add(kind ProblemKind, format string, args ...any) {
	*p = append(*p, Problem{kind, fmt.Sprintf(format, args...)})
}

// four returns the prefixes of IPv4, masked, in order, none within another one. The others are problems.
func (p *problems) four(what string, prefixes []netip.Prefix) []netip.Prefix {
	var kept []netip.Prefix
	for _, prefix := range prefixes {
		if !prefix.IsValid() || !prefix.Addr().Is4() {
			p.add(ProblemFamily, "%s %s is not of IPv4", what, prefix)
			continue
		}
		kept = append(kept, prefix.Masked())
	}
	return outermost(kept)
}

// is4 tells whether an address is of IPv4; if not, that is a problem.
func (p *problems) is4(what string, address netip.Addr) bool {
	if !address.Is4() {
		p.add(ProblemFamily, "%s %s is not of IPv4", what, address)
	}
	return address.Is4()
}

// outermost sorts prefixes and leaves out those that lie within another one: sets of intervals take no overlaps.
func outermost(prefixes []netip.Prefix) []netip.Prefix {
	sorted := slices.Clone(prefixes)
	// Before those within it comes the widest of those that begin at the same address.
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	var kept []netip.Prefix
	for _, prefix := range sorted {
		if len(kept) == 0 || !kept[len(kept)-1].Overlaps(prefix) {
			kept = append(kept, prefix)
		}
	}
	return kept
}

// single is the prefix of one address.
func single(address netip.Addr) netip.Prefix { return netip.PrefixFrom(address, address.BitLen()) }

// singles are the prefixes of addresses, in order, each once.
func singles(addresses ...netip.Addr) []netip.Prefix {
	all := make([]netip.Prefix, 0, len(addresses))
	for _, address := range addresses {
		all = append(all, single(address))
	}
	return outermost(all)
}

// neighbor is the entry for one VTEP.
func neighbor(device string, vtep netip.Addr) Neighbor {
	return Neighbor{Device: device, Address: vtep, MAC: macOf(vtep), VTEP: vtep}
}

// sorted puts a State in the order of its text, so that the order of inputs does not matter.
func (s *State) sort() {
	slices.SortFunc(s.Neighbors, func(a, b Neighbor) int { return cmp.Or(cmp.Compare(a.Device, b.Device), a.Address.Compare(b.Address)) })
	// Two that say that they have one address are one neighbour.
	s.Neighbors = slices.Compact(s.Neighbors)
	slices.SortFunc(s.Routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), a.Destination.Addr().Compare(b.Destination.Addr()), cmp.Compare(a.Destination.Bits(), b.Destination.Bits()))
	})
	for _, table := range s.Firewall {
		for _, m := range table.Maps {
			slices.SortFunc(m.Elements, func(a, b Element) int { return a.Key.Compare(b.Key) })
		}
	}
}
