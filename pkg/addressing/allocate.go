package addressing

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Used is the sum of what stands in the way of a range for a peer. Ranges may overlap each other and may be of both families.
type Used struct {
	// Pods, Services, External and Internal are this cluster's own ranges; Reserved are those that its administrator keeps free.
	Pods, Services, External, Internal, Reserved []netip.Prefix
	// Nodes are the addresses of this cluster's nodes and API servers. The networks around them (/24, /64) count as used.
	Nodes []netip.Addr
	// Networks are those that nodes are in, as far as they tell, with whatever else is there.
	Networks []netip.Prefix
	// Peers are the ranges under which this cluster sees its peers, by cluster ID: status.cidr of all Networks, and what gateways still use.
	Peers map[string][]netip.Prefix
}

// holder is one range in the way, and whose it is.
type holder struct {
	prefix netip.Prefix
	name   string
}

// holders are all ranges in the way, in a fixed order.
func (u Used) holders() []holder {
	var all []holder
	add := func(name string, prefixes []netip.Prefix) {
		for _, prefix := range prefixes {
			all = append(all, holder{prefix.Masked(), name})
		}
	}
	add("pods", u.Pods)
	add("Services", u.Services)
	add("the external range", u.External)
	add("the internal range", u.Internal)
	add("reserved ranges", u.Reserved)
	add("networks of nodes", slices.Concat(u.Networks, around(u.Nodes)))
	peers := make([]string, 0, len(u.Peers))
	for peer := range u.Peers {
		peers = append(peers, peer)
	}
	slices.Sort(peers)
	for _, peer := range peers {
		add("peer "+peer, u.Peers[peer])
	}
	add("ranges that are no cluster's", special)
	add("metadata services of clouds", metadata)
	return all
}

// FullError says that no pool has room for a range.
type FullError struct {
	// Want is the range of the peer. What was looked for is a free one of its length.
	Want netip.Prefix
	// Pools tells of each pool, in order, why there is no room in it.
	Pools []string
}

func (e *FullError) Error() string {
	if len(e.Pools) == 0 {
		return fmt.Sprintf("no free range for %s: there are no pools", e.Want)
	}
	return fmt.Sprintf("no free range for %s: %s", e.Want, strings.Join(e.Pools, "; "))
}

// Allocate chooses the range under which this cluster sees a range of a peer: the same one if it is free, otherwise the first free one of
// its length. A range is free if it lies in a pool and overlaps nothing that is used. Pools are searched in their order, each from a place
// on that depends on nothing but the peer's cluster ID and its range, and then around: a peer that comes back finds its range again as long
// as it is free, whoever came or went elsewhere. The error is a *FullError when nothing is free.
func Allocate(peer string, want netip.Prefix, pools []netip.Prefix, used Used) (netip.Prefix, error) {
	if !want.IsValid() || want.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("finding a range for %q of cluster %s: it is no prefix", want, peer)
	}
	want = want.Masked()
	taken := used.holders()
	full := &FullError{Want: want}
	var fitting []netip.Prefix
	for _, pool := range pools {
		pool = pool.Masked()
		switch {
		case !pool.IsValid() || pool.Addr().Is4() != want.Addr().Is4():
			full.Pools = append(full.Pools, fmt.Sprintf("pool %s is of the other family", pool))
		case pool.Bits() > want.Bits():
			full.Pools = append(full.Pools, fmt.Sprintf("pool %s is smaller than /%d", pool, want.Bits()))
		default:
			fitting = append(fitting, pool)
			full.Pools = append(full.Pools, fmt.Sprintf("pool %s is full: %s", pool, whoHolds(pool, taken)))
		}
	}
	for _, pool := range fitting {
		if _, ok := inTheWay(want, taken); pool.Contains(want.Addr()) && !ok {
			return want, nil
		}
	}
	seed := sha256.Sum256([]byte(peer + "\x00" + want.String()))
	for _, pool := range fitting {
		if free, ok := firstFree(pool, want.Bits(), seed, taken); ok {
			return free, nil
		}
	}
	return netip.Prefix{}, full
}

// firstFree searches a pool from the place that the seed says, to its end and then from its beginning. Each range in the way is jumped over
// as a whole, so the effort depends on how many there are and not on the size of the pool.
func firstFree(pool netip.Prefix, bits int, seed [sha256.Size]byte, taken []holder) (netip.Prefix, bool) {
	start, _ := netip.AddrFromSlice(seed[:len(pool.Addr().AsSlice())])
	first := netip.PrefixFrom(graft(start, pool), bits).Masked()
	for candidate, wrapped := first, false; ; {
		other, ok := inTheWay(candidate, taken)
		if !ok {
			return candidate, true
		}
		end := Last(candidate)
		if other.Bits() < bits {
			end = Last(other)
		}
		next := end.Next()
		if !next.IsValid() || !pool.Contains(next) {
			if wrapped {
				return netip.Prefix{}, false
			}
			wrapped, next = true, pool.Addr()
		}
		candidate = netip.PrefixFrom(next, bits)
		if wrapped && candidate.Addr().Compare(first.Addr()) >= 0 {
			return netip.Prefix{}, false
		}
	}
}

// inTheWay returns the widest range that overlaps the candidate, if there is one.
func inTheWay(candidate netip.Prefix, taken []holder) (netip.Prefix, bool) {
	var widest netip.Prefix
	for _, other := range taken {
		if other.prefix.Overlaps(candidate) && (!widest.IsValid() || other.prefix.Bits() < widest.Bits()) {
			widest = other.prefix
		}
	}
	return widest, widest.IsValid()
}

// maxHolders is how many of those that fill a pool are named.
const maxHolders = 8

// whoHolds names those that have ranges in a pool, each once, with how many.
func whoHolds(pool netip.Prefix, taken []holder) string {
	var names []string
	count := map[string]int{}
	for _, other := range taken {
		if !other.prefix.Overlaps(pool) {
			continue
		}
		if count[other.name]++; count[other.name] == 1 {
			names = append(names, other.name)
		}
	}
	texts := make([]string, 0, maxHolders)
	for i, name := range names {
		if i == maxHolders {
			texts = append(texts, fmt.Sprintf("%d more", len(names)-i))
			break
		}
		texts = append(texts, fmt.Sprintf("%s (%d)", name, count[name]))
	}
	return strings.Join(texts, ", ")
}

// Last returns the last address of a prefix.
func Last(prefix netip.Prefix) netip.Addr {
	raw := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < 8*len(raw); bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(raw)
	return address
}
