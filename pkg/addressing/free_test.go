package addressing

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestFree(t *testing.T) {
	protected := Protected{
		Prefixes:  []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd00:10::/48")},
		Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.10"), netip.MustParseAddr("::ffff:172.18.0.3"), netip.MustParseAddr("fd00:20::7")},
	}
	free := Free(protected)
	for address, want := range map[string]bool{
		"10.1.2.3": true, "10.245.0.1": true, "192.168.2.1": true, "172.18.1.1": true, "fd00:30::1": true, "100.64.0.1": true,
		"10.244.7.7": false, "10.96.0.1": false, "10.111.255.255": false, "192.168.1.1": false, "192.168.1.10": false, "172.18.0.9": false,
		"fd00:10::1": false, "fd00:20::1": false, "203.0.113.66": false, "8.8.8.8": false, "169.254.169.254": false, "2001:db8::1": false,
		"100.100.100.200": false, "fd00:ec2::254": false, "127.0.0.1": false,
	} {
		if got := Within(netip.MustParseAddr(address), free); got != want {
			t.Errorf("%s: free %v, want %v", address, got, want)
		}
	}
	var many []netip.Addr
	for i := range 1 << 14 {
		many = append(many, netip.AddrFrom4([4]byte{10, byte(i >> 7), byte(i << 1), 1}))
	}
	if got := Free(Protected{Addresses: many}); got != nil {
		t.Errorf("%d ranges", len(got))
	}
}

func TestFreeIsAllButWhatIsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) netip.Addr {
			b := rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, what)
			return netip.AddrFrom4([4]byte{10, b[0], b[1], b[2]})
		}
		taken := netip.PrefixFrom(draw("prefix"), rapid.IntRange(1, 32).Draw(t, "bits")).Masked()
		address := draw("address")
		if got := Within(address, Free(Protected{Prefixes: []netip.Prefix{taken}})); got == taken.Contains(address) {
			t.Fatalf("%s without %s: free %v", address, taken, got)
		}
	})
}
