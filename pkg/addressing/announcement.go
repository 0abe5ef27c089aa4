package addressing

import (
	"fmt"
	"net/netip"
	"slices"
)

// The bounds of an announcement.
const (
	// MaxAnnounced is how many ranges one peer may announce.
	MaxAnnounced = 32
	// minBits4 and minBits6 are the widest ranges that are believed.
	minBits4, minBits6 = 8, 16
)

// special are ranges that belong to no cluster, whatever it says: this host, links, multicast, reserved.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/8"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// Protected is what no peer may claim.
type Protected struct {
	// Prefixes of this cluster's pods and Services.
	Prefixes []netip.Prefix
	// Addresses of this cluster's nodes.
	Addresses []netip.Addr
}

// Accept returns, in order and without repetition, the announced ranges that can be a peer's, and why the others cannot. What
// a peer announces is hostile: a range that overlaps what is protected is refused as a whole.
func Accept(announced []string, protected Protected) (accepted []netip.Prefix, refused []string) {
	if len(announced) > MaxAnnounced {
		refused = append(refused, fmt.Sprintf("more than %d ranges", MaxAnnounced))
		announced = announced[:MaxAnnounced]
	}
	for _, text := range announced {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Addr().Is4In6() {
			refused = append(refused, fmt.Sprintf("%.50q is no prefix", text))
			continue
		}
		prefix = prefix.Masked()
		if why := protected.refuse(prefix); why != "" {
			refused = append(refused, prefix.String()+" "+why)
			continue
		}
		accepted = append(accepted, prefix)
	}
	slices.SortFunc(accepted, netip.Prefix.Compare)
	return slices.Compact(accepted), refused
}

func (p Protected) refuse(prefix netip.Prefix) string {
	if widest := map[bool]int{true: minBits4, false: minBits6}[prefix.Addr().Is4()]; prefix.Bits() < widest {
		return fmt.Sprintf("is wider than /%d", widest)
	}
	for _, other := range special {
		if other.Overlaps(prefix) {
			return fmt.Sprintf("overlaps %s, which is no cluster's", other)
		}
	}
	for _, other := range metadata {
		if other.Overlaps(prefix) && other.Bits() <= prefix.Bits() {
			return fmt.Sprintf("lies in %s, where clouds have their metadata services", other)
		}
	}
	for _, other := range p.Prefixes {
		if other.Overlaps(prefix) {
			return fmt.Sprintf("overlaps %s of this cluster", other)
		}
	}
	for _, address := range p.Addresses {
		if prefix.Contains(address.Unmap()) {
			return "holds the address of a node of this cluster"
		}
	}
	return ""
}

// IPv4 returns the prefixes of IPv4, in order: the network carries no others yet.
func IPv4(prefixes []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool { return !p.Addr().Is4() })
}

// Within tells whether an address lies in one of the prefixes and can be a pod's.
func Within(address netip.Addr, prefixes []netip.Prefix) bool {
	address = address.Unmap()
	return address.Zone() == "" && !Reserved(address) && slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}
