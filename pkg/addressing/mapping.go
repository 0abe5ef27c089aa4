package addressing

import (
	"fmt"
	"net/netip"
	"strings"
)

// Pair is a prefix of a cluster and how a peer sees it.
type Pair struct {
	// Own is the prefix in the cluster itself.
	Own netip.Prefix
	// Seen is what the peer reaches it by; it has the same family and length.
	Seen netip.Prefix
}

// Mapping translates the addresses of one cluster into those by which a peer reaches them. The zero value is the identity.
type Mapping struct{ pairs []Pair }

// New makes a Mapping. It fails if the two sides of a pair differ in family or length, or if prefixes of one side overlap.
func New(pairs ...Pair) (Mapping, error) {
	m := Mapping{pairs: make([]Pair, 0, len(pairs))}
	for _, pair := range pairs {
		if !pair.Own.IsValid() || !pair.Seen.IsValid() {
			return Mapping{}, fmt.Errorf("mapping %s to %s: one of them is no prefix", pair.Own, pair.Seen)
		}
		if pair.Own.Addr().Is4In6() || pair.Seen.Addr().Is4In6() {
			return Mapping{}, fmt.Errorf("mapping %s to %s: IPv4 prefixes must be written as such", pair.Own, pair.Seen)
		}
		pair.Own, pair.Seen = pair.Own.Masked(), pair.Seen.Masked()
		if pair.Own.Addr().Is4() != pair.Seen.Addr().Is4() || pair.Own.Bits() != pair.Seen.Bits() {
			return Mapping{}, fmt.Errorf("mapping %s to %s: they differ in family or length", pair.Own, pair.Seen)
		}
		for _, other := range m.pairs {
			if other.Own.Overlaps(pair.Own) {
				return Mapping{}, fmt.Errorf("mapping %s to %s: %s is mapped too, and overlaps", pair.Own, pair.Seen, other.Own)
			}
			if other.Seen.Overlaps(pair.Seen) {
				return Mapping{}, fmt.Errorf("mapping %s to %s: %s is used too, and overlaps", pair.Own, pair.Seen, other.Seen)
			}
		}
		m.pairs = append(m.pairs, pair)
	}
	return m, nil
}

// Remap makes the Mapping of a peer out of its Configuration alone: the ranges that the peer announced (spec.remote.cidr) and those under
// which this cluster sees them (status.remote.cidr), each in the place of its counterpart. It fails as long as one of them has no counterpart,
// and if there are none: without ranges no address of the peer has a meaning here, and the zero Mapping would give it one.
func Remap(announced, seen []netip.Prefix) (Mapping, error) {
	if len(announced) != len(seen) || len(announced) == 0 {
		return Mapping{}, fmt.Errorf("%d ranges are announced and %d have been given", len(announced), len(seen))
	}
	pairs := make([]Pair, 0, len(announced))
	for i := range announced {
		pairs = append(pairs, Pair{Own: announced[i], Seen: seen[i]})
	}
	return New(pairs...)
}

// Translate returns the address by which the peer reaches one of the cluster's; false if it cannot.
func (m Mapping) Translate(address netip.Addr) (netip.Addr, bool) {
	return m.move(address, func(p Pair) (from, to netip.Prefix) { return p.Own, p.Seen })
}

// Restore undoes Translate: it returns the cluster's own address behind one that the peer uses; false if there is none.
func (m Mapping) Restore(address netip.Addr) (netip.Addr, bool) {
	return m.move(address, func(p Pair) (from, to netip.Prefix) { return p.Seen, p.Own })
}

func (m Mapping) move(address netip.Addr, direction func(Pair) (from, to netip.Prefix)) (netip.Addr, bool) {
	address = address.Unmap()
	if !address.IsValid() || address.Zone() != "" {
		return netip.Addr{}, false
	}
	if len(m.pairs) == 0 {
		return address, true
	}
	for _, pair := range m.pairs {
		if from, to := direction(pair); from.Contains(address) {
			return graft(address, to), true
		}
	}
	return netip.Addr{}, false
}

// graft puts the bits of a prefix before the host bits of an address of the same family.
func graft(address netip.Addr, prefix netip.Prefix) netip.Addr {
	host, network := address.AsSlice(), prefix.Addr().AsSlice()
	for i := range host {
		taken := min(max(prefix.Bits()-8*i, 0), 8)
		mask := byte(0xff << (8 - taken))
		host[i] = network[i]&mask | host[i]&^mask
	}
	moved, _ := netip.AddrFromSlice(host)
	return moved
}

// String identifies the mapping: two that answer alike for the same pairs in the same order have the same one.
func (m Mapping) String() string {
	if len(m.pairs) == 0 {
		return "identity"
	}
	texts := make([]string, 0, len(m.pairs))
	for _, pair := range m.pairs {
		texts = append(texts, pair.Own.String()+"="+pair.Seen.String())
	}
	return strings.Join(texts, ",")
}
