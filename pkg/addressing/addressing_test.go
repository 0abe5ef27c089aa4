package addressing

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func pair(own, seen string) Pair {
	return Pair{Own: netip.MustParsePrefix(own), Seen: netip.MustParsePrefix(seen)}
}

func TestWhatCannotBeMapped(t *testing.T) {
	for name, tc := range map[string]struct {
		pairs []Pair
		want  string
	}{
		"lengths differ":       {[]Pair{pair("10.0.0.0/16", "10.1.0.0/17")}, "differ"},
		"families differ":      {[]Pair{pair("10.0.0.0/16", "fd00::/16")}, "differ"},
		"one prefix twice":     {[]Pair{pair("10.0.0.0/16", "10.1.0.0/16"), pair("10.0.0.0/24", "10.2.0.0/24")}, "overlaps"},
		"one counterpart":      {[]Pair{pair("10.0.0.0/16", "10.1.0.0/16"), pair("10.5.0.0/24", "10.1.9.0/24")}, "overlaps"},
		"nothing":              {[]Pair{{}}, "no prefix"},
		"IPv4 written as IPv6": {[]Pair{{Own: netip.MustParsePrefix("::ffff:10.0.0.0/112"), Seen: netip.MustParsePrefix("::ffff:10.1.0.0/112")}}, "IPv4"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(tc.pairs...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestTranslate(t *testing.T) {
	mapping, err := New(pair("10.244.0.0/16", "10.80.0.0/16"), pair("10.80.0.0/16", "10.244.0.0/16"), pair("fd00:1::/64", "fd00:2::/64"), pair("10.9.4.0/23", "100.64.2.0/23"))
	if err != nil {
		t.Fatal(err)
	}
	for own, want := range map[string]string{
		"10.244.3.4": "10.80.3.4", "10.80.3.4": "10.244.3.4", "fd00:1::7": "fd00:2::7", "10.9.5.1": "100.64.3.1",
		"::ffff:10.244.3.4": "10.80.3.4", "8.8.8.8": "", "fd00:3::1": "", "fd00:1::7%eth0": "",
	} {
		got, ok := mapping.Translate(netip.MustParseAddr(own))
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s becomes %s, %v; want %q", own, got, ok, want)
		}
	}
	for _, address := range []string{"8.8.8.8", "fd00::1"} {
		if got, ok := (Mapping{}).Translate(netip.MustParseAddr(address)); !ok || got.String() != address {
			t.Errorf("the identity makes %s of %s", got, address)
		}
	}
	if _, ok := (Mapping{}).Translate(netip.Addr{}); ok {
		t.Error("the zero address has a counterpart")
	}
	if mapping.String() == (Mapping{}).String() {
		t.Error("two mappings have one name")
	}
}

// anyMapping draws pairs of random lengths in disjoint blocks, the counterparts in other order.
func anyMapping(t *rapid.T) (Mapping, []Pair) {
	six := rapid.Bool().Draw(t, "IPv6")
	count := rapid.IntRange(1, 6).Draw(t, "count")
	order := rapid.Permutation([]int{0, 1, 2, 3, 4, 5}).Draw(t, "order")
	var pairs []Pair
	for i := range count {
		own, seen, bits := fmt.Sprintf("10.%d.0.0", i), fmt.Sprintf("100.%d.0.0", order[i]), rapid.IntRange(16, 32).Draw(t, "bits")
		if six {
			own, seen, bits = fmt.Sprintf("fd00:%x::", i), fmt.Sprintf("fd01:%x::", order[i]), rapid.IntRange(32, 128).Draw(t, "bits")
		}
		pairs = append(pairs, Pair{netip.PrefixFrom(netip.MustParseAddr(own), bits), netip.PrefixFrom(netip.MustParseAddr(seen), bits)})
	}
	m, err := New(pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return m, pairs
}

func TestMappingsAreBijections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, pairs := anyMapping(t)
		p := pairs[rapid.IntRange(0, len(pairs)-1).Draw(t, "pair")]
		raw := p.Own.Addr().AsSlice()
		noise := rapid.SliceOfN(rapid.Byte(), len(raw), len(raw)).Draw(t, "noise")
		random, _ := netip.AddrFromSlice(noise)
		inside := graft(random, p.Own)
		if !p.Own.Contains(inside) {
			t.Fatalf("%s is not in %s", inside, p.Own)
		}
		seen, ok := m.Translate(inside)
		if !ok || !p.Seen.Contains(seen) {
			t.Fatalf("%s of %s becomes %s, outside %s", inside, p.Own, seen, p.Seen)
		}
		if back, ok := m.Restore(seen); !ok || back != inside {
			t.Fatalf("%s becomes %s and comes back as %s", inside, seen, back)
		}
		outside := netip.MustParseAddr("192.0.2.1")
		if _, ok := m.Translate(outside); ok {
			t.Fatal("an address outside has a counterpart")
		}
		if _, ok := m.Restore(inside); ok {
			t.Fatal("an own address was restored")
		}
	})
}

func TestIPv4(t *testing.T) {
	four, other := netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.245.0.0/16")
	six := netip.MustParsePrefix("fd00::/56")
	for name, tc := range map[string]struct{ all, want []netip.Prefix }{
		"both families":      {[]netip.Prefix{other, six, four}, []netip.Prefix{other, four}},
		"the other one only": {[]netip.Prefix{six}, []netip.Prefix{}},
		"none":               {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.all)
			if got := IPv4(tc.all); !slices.Equal(got, tc.want) || !slices.Equal(tc.all, before) {
				t.Errorf("of %s there is %s", before, got)
			}
		})
	}
}

func TestAccept(t *testing.T) {
	protected := Protected{
		Prefixes:  []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16"), netip.MustParsePrefix("fd00:20::/48")},
		Addresses: []netip.Addr{netip.MustParseAddr("172.18.0.3")},
	}
	for name, tc := range map[string]struct {
		announced, want []string
		refused         int
	}{
		"nothing":                       {nil, nil, 0},
		"two ranges, one of them twice": {[]string{"10.10.0.0/16", "10.10.0.0/16", "fd00:10::/48"}, []string{"10.10.0.0/16", "fd00:10::/48"}, 0},
		"host bits":                     {[]string{"10.10.3.4/16"}, []string{"10.10.0.0/16"}, 0},
		"our pods":                      {[]string{"10.20.0.0/16"}, nil, 1},
		"some of our pods":              {[]string{"10.20.7.0/24", "fd00:20::/64"}, nil, 2},
		"more than our pods":            {[]string{"10.0.0.0/8"}, nil, 1},
		"our nodes":                     {[]string{"172.18.0.0/16"}, nil, 1},
		"everything":                    {[]string{"0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1"}, nil, 4},
		"the metadata service":          {[]string{"169.254.169.254/32"}, nil, 1},
		"metadata services elsewhere":   {[]string{"fd00:ec2::/32", "fd00:ec2::254/128", "100.100.100.200/32", "168.63.129.16/32"}, nil, 4},
		"ranges around them":            {[]string{"100.64.0.0/10", "fd00:ec0::/28"}, []string{"100.64.0.0/10", "fd00:ec0::/28"}, 0},
		"this host":                     {[]string{"127.0.0.1/32", "::1/128"}, nil, 2},
		"nonsense":                      {[]string{"", "10.0.0.1", "::ffff:10.20.0.0/112", strings.Repeat("x", 1000)}, nil, 4},
		"too many":                      {append(strings.Split(strings.Repeat("10.10.0.0/16 ", 32), " ")[:32], "10.11.0.0/16"), []string{"10.10.0.0/16"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			accepted, refused := Accept(tc.announced, protected)
			var got []string
			for _, p := range accepted {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(refused) != tc.refused {
				t.Errorf("%s; refused %q", diff, refused)
			}
		})
	}
}

func FuzzAccept(f *testing.F) {
	f.Add("10.10.0.0/16")
	f.Add("::ffff:10.20.0.0/112")
	own := netip.MustParsePrefix("10.20.0.0/16")
	f.Fuzz(func(t *testing.T, text string) {
		accepted, refused := Accept([]string{text}, Protected{Prefixes: []netip.Prefix{own}})
		if len(accepted)+len(refused) != 1 {
			t.Fatalf("%q: accepted %v, refused %v", text, accepted, refused)
		}
		if Within(netip.MustParseAddr("10.20.3.4"), accepted) || Within(netip.MustParseAddr("127.0.0.1"), accepted) {
			t.Fatalf("%q claims what is ours", text)
		}
	})
}
