package addressing

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestAllocate(t *testing.T) {
	private := prefixes("10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "fd00::/16")
	for name, tc := range map[string]struct {
		want  string
		pools []netip.Prefix
		used  Used
		got   string
		fails string
	}{
		"what is free stays as it is":        {"10.61.0.0/16", private, Used{Pods: prefixes("10.244.0.0/16")}, "10.61.0.0/16", ""},
		"so does a range of IPv6":            {"fd00:61::/48", private, Used{}, "fd00:61::/48", ""},
		"host bits do not count":             {"10.61.3.4/16", private, Used{}, "10.61.0.0/16", ""},
		"no pool has it":                     {"100.64.0.0/16", prefixes("192.168.0.0/16"), Used{}, "192.168.0.0/16", ""},
		"our pods have it":                   {"10.244.0.0/16", prefixes("10.244.0.0/15"), Used{Pods: prefixes("10.244.0.0/16")}, "10.245.0.0/16", ""},
		"part of it is our Services'":        {"10.244.0.0/16", prefixes("10.244.0.0/15"), Used{Services: prefixes("10.244.7.0/24")}, "10.245.0.0/16", ""},
		"it holds a node":                    {"10.244.0.0/16", prefixes("10.244.0.0/15"), Used{Nodes: []netip.Addr{netip.MustParseAddr("10.244.9.9")}}, "10.245.0.0/16", ""},
		"it holds a metadata service":        {"100.100.0.0/16", prefixes("100.100.0.0/15"), Used{}, "100.101.0.0/16", ""},
		"the last one of several pools":      {"10.0.0.0/24", prefixes("fd00::/8", "10.1.0.0/25", "10.2.0.0/24", "10.3.0.0/24"), Used{Internal: prefixes("10.2.0.128/25")}, "10.3.0.0/24", ""},
		"a single address":                   {"10.0.0.0/32", prefixes("10.0.0.0/31"), Used{Reserved: prefixes("10.0.0.0/32")}, "10.0.0.1/32", ""},
		"the end of all addresses":           {"fd00::/128", prefixes("fdff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"), Used{External: prefixes("fdff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/128")}, "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", ""},
		"full, by a range and by two peers":  {"10.0.0.0/24", prefixes("10.0.0.0/23"), Used{Pods: prefixes("10.0.0.0/24"), Peers: map[string][]netip.Prefix{"rome": prefixes("10.0.1.0/25"), "milan": prefixes("10.0.1.128/26", "10.0.1.192/26")}}, "", "no free range for 10.0.0.0/24: pool 10.0.0.0/23 is full: pods (1), peer milan (2), peer rome (1)"},
		"full, by something wider":           {"10.0.0.0/24", prefixes("10.0.0.0/23"), Used{Reserved: prefixes("10.0.0.0/8")}, "", "reserved ranges (1)"},
		"pools that are too small, or other": {"10.0.0.0/16", prefixes("192.168.0.0/17", "fd00::/8"), Used{}, "", "pool 192.168.0.0/17 is smaller than /16; pool fd00::/8 is of the other family"},
		"no pools":                           {"10.0.0.0/16", nil, Used{}, "", "there are no pools"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Allocate("milan", netip.MustParsePrefix(tc.want), tc.pools, tc.used)
			if tc.fails == "" && (err != nil || got.String() != tc.got) {
				t.Fatalf("%s becomes %s, %v; want %s", tc.want, got, err, tc.got)
			}
			var full *FullError
			if tc.fails != "" && (!errors.As(err, &full) || !strings.Contains(err.Error(), tc.fails)) {
				t.Fatalf("%s becomes %s, %v; want an error with %q", tc.want, got, err, tc.fails)
			}
		})
	}
	for _, none := range []netip.Prefix{{}, netip.MustParsePrefix("::ffff:10.0.0.0/112")} {
		if got, err := Allocate("milan", none, private, Used{}); err == nil {
			t.Errorf("%s becomes %s", none, got)
		}
	}
}

// The place where the search begins is part of what users see: a version that changes it moves all peers that peer anew.
func TestTheSameRangeOnEveryMachine(t *testing.T) {
	used := Used{Pods: prefixes("10.244.0.0/16", "fd00:244::/48")}
	pools := prefixes("10.0.0.0/8", "fd00::/8")
	var got []string
	for _, peer := range []string{"milan", "rome"} {
		for _, want := range used.Pods {
			seen, err := Allocate(peer, want, pools, used)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, peer+" "+seen.String())
		}
	}
	want := []string{"milan 10.230.0.0/16", "milan fded:11cb:b41f::/48", "rome 10.170.0.0/16", "rome fdc3:5f42:9304::/48"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// anyPrefix draws a range in 10.0.0.0/8 or fd00::/8.
func anyPrefix(t *rapid.T, six bool, low, high int, name string) netip.Prefix {
	block, size := netip.MustParsePrefix("10.0.0.0/8"), 4
	if six {
		block, size = netip.MustParsePrefix("fd00::/8"), 16
	}
	address, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, name))
	return netip.PrefixFrom(graft(address, block), rapid.IntRange(low, high).Draw(t, name+" bits")).Masked()
}

// Peers with up to 32 ranges each come one after the other: nobody's ranges overlap anything, each has its counterpart's length, and
// who asks again with all others in place is given the same.
func TestAllocationsNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		six := rapid.Bool().Draw(t, "IPv6")
		pools := []netip.Prefix{anyPrefix(t, six, 8, 10, "pool"), anyPrefix(t, six, 8, 16, "other pool")}
		used := Used{Pods: []netip.Prefix{anyPrefix(t, six, 9, 20, "pods")}, Services: []netip.Prefix{anyPrefix(t, six, 9, 20, "Services")},
			Nodes: []netip.Addr{anyPrefix(t, six, 32, 32, "node").Addr()}, Networks: []netip.Prefix{anyPrefix(t, six, 9, 26, "network of a node")}, Peers: map[string][]netip.Prefix{}}
		for p := range rapid.IntRange(1, 3).Draw(t, "peers") {
			peer := fmt.Sprint("peer", p)
			for range rapid.IntRange(1, MaxAnnounced).Draw(t, "ranges") {
				want := anyPrefix(t, six, 12, 28, "want")
				seen, err := Allocate(peer, want, pools, used)
				if err != nil {
					continue
				}
				if again, _ := Allocate(peer, want, pools, used); again != seen {
					t.Fatalf("%s of %s becomes %s, and %s", want, peer, seen, again)
				}
				taken := slices.Concat(used.Pods, used.Services, used.Networks, []netip.Prefix{netip.PrefixFrom(used.Nodes[0], used.Nodes[0].BitLen())})
				for _, given := range used.Peers {
					taken = append(taken, given...)
				}
				if i := slices.IndexFunc(taken, seen.Overlaps); i >= 0 {
					t.Fatalf("%s of %s becomes %s, which overlaps %s", want, peer, seen, taken[i])
				}
				if seen.Bits() != want.Bits() || seen != seen.Masked() {
					t.Fatalf("%s of %s becomes %s", want, peer, seen)
				}
				if !slices.ContainsFunc(pools, func(pool netip.Prefix) bool { return pool.Contains(seen.Addr()) && pool.Bits() <= seen.Bits() }) {
					t.Fatalf("%s is in none of %s", seen, pools)
				}
				used.Peers[peer] = append(used.Peers[peer], seen)
			}
		}
	})
}

// The order in which a peer prefers ranges does not depend on what is used: the first free one of the order is taken. So more use never makes
// another range the choice while the chosen one is free, and a peer whose range was freed has it again.
func TestTheOrderOfPreferenceIsStable(t *testing.T) {
	pools, want := prefixes("10.0.0.0/12", "10.128.0.0/13"), netip.MustParsePrefix("192.168.0.0/16")
	rapid.Check(t, func(t *rapid.T) {
		peer := rapid.StringMatching("[a-z]{1,8}").Draw(t, "peer")
		var order []netip.Prefix
		used := Used{}
		for {
			next, err := Allocate(peer, want, pools, used)
			if err != nil {
				break
			}
			order = append(order, next)
			used.Reserved = append(used.Reserved, next)
		}
		if len(order) != 16+8 || len(slices.Compact(slices.SortedFunc(slices.Values(order), netip.Prefix.Compare))) != len(order) {
			t.Fatalf("of 24 ranges, in this order: %s", order)
		}
		var some Used
		left := slices.DeleteFunc(slices.Clone(order), func(p netip.Prefix) bool {
			gone := rapid.Bool().Draw(t, "used")
			if gone {
				some.Services = append(some.Services, p)
			}
			return gone
		})
		got, err := Allocate(peer, want, pools, some)
		if len(left) == 0 {
			if err == nil {
				t.Fatalf("all is used, and %s is given", got)
			}
		} else if got != left[0] {
			t.Fatalf("%s is given, of %s", got, left)
		}
	})
}

func TestRemap(t *testing.T) {
	mapping, err := Remap(prefixes("10.244.0.0/16", "10.70.0.0/16"), prefixes("10.61.0.0/16", "10.71.0.0/16"))
	if err != nil {
		t.Fatal(err)
	}
	for own, seen := range map[string]string{"10.244.2.2": "10.61.2.2", "10.70.0.2": "10.71.0.2"} {
		got, ok := mapping.Translate(netip.MustParseAddr(own))
		if back, again := mapping.Restore(got); !ok || !again || got.String() != seen || back.String() != own {
			t.Errorf("%s becomes %s and then %s", own, got, back)
		}
	}
	for name, tc := range map[string]struct{ announced, seen []netip.Prefix }{
		"nothing":                  {},
		"not all have been given":  {prefixes("10.244.0.0/16", "10.70.0.0/16"), prefixes("10.61.0.0/16")},
		"one of them is too small": {prefixes("10.244.0.0/16"), prefixes("10.61.0.0/17")},
	} {
		if mapping, err := Remap(tc.announced, tc.seen); err == nil {
			t.Errorf("%s: %s", name, mapping)
		}
	}
}
