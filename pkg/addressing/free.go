package addressing

import (
	"net/netip"
	"slices"
)

// private are the ranges that a cluster takes its pods' addresses from, unless it announces another one: those of RFC 1918, of RFC 6598,
// and of RFC 4193.
var private = []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("172.16.0.0/12"),
	netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
}

// The networks that nodes are taken to be in, with whatever else is there, and how many prefixes are enough to say what is free.
const (
	nodeBits4, nodeBits6 = 24, 64
	maxFree              = 1024
)

// Free returns the private ranges without what is protected and the networks around the nodes: where the pods of a peer may be that
// announced nothing. It is empty if so much is taken that it cannot be written down.
func Free(protected Protected) []netip.Prefix {
	free := slices.Clone(private)
	for _, taken := range slices.Concat(protected.Prefixes, metadata, around(protected.Addresses)) {
		var left []netip.Prefix
		for _, prefix := range free {
			left = append(left, without(prefix, taken)...)
		}
		if free = left; len(free) > maxFree {
			return nil
		}
	}
	slices.SortFunc(free, netip.Prefix.Compare)
	return free
}

// around are the networks of nodes.
func around(nodes []netip.Addr) []netip.Prefix {
	var networks []netip.Prefix
	for _, node := range nodes {
		node = node.Unmap().WithZone("")
		bits := nodeBits6
		if node.Is4() {
			bits = nodeBits4
		}
		if network, err := node.Prefix(bits); err == nil && !slices.Contains(networks, network) {
			networks = append(networks, network)
		}
	}
	return networks
}

// without cuts a prefix out of another one.
func without(prefix, taken netip.Prefix) []netip.Prefix {
	switch {
	case !prefix.Overlaps(taken):
		return []netip.Prefix{prefix}
	case taken.Bits() <= prefix.Bits():
		return nil
	}
	low := netip.PrefixFrom(prefix.Addr(), prefix.Bits()+1)
	raw := prefix.Addr().AsSlice()
	raw[prefix.Bits()/8] |= 0x80 >> (prefix.Bits() % 8)
	middle, _ := netip.AddrFromSlice(raw)
	return append(without(low, taken), without(netip.PrefixFrom(middle, prefix.Bits()+1), taken)...)
}
