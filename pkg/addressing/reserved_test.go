package addressing

import (
	"net/netip"
	"testing"
)

// V7: what no consumer may have Services point at, though a range that it may announce is around it.
func TestReserved(t *testing.T) {
	for text, want := range map[string]bool{
		"169.254.169.254": true, "169.254.170.2": true, "::ffff:169.254.169.254": true, "fe80::a9fe:a9fe": true, "fe80::1%eth0": true,
		"fd00:ec2::254": true, "fd00:ec2::23": true, "fd00:ec2::253": true, "fd20:ce::254": true, "fd00:42::42": true,
		"fd00:a9fe:a9fe::1": true, "fd00:100::100:200": true, "fd00:c1::a9fe:a9fe": true,
		"100.100.100.200": true, "::ffff:100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true,
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "::": true, "64:ff9b::a9fe:a9fe": true,
		"224.0.0.1": true, "255.255.255.255": true, "ff02::1": true,

		"10.10.0.1": false, "100.100.100.201": false, "100.64.0.1": false, "168.63.129.17": false, "192.0.0.193": false, "169.253.255.255": false,
		"fd00:ec3::254": false, "fd20:ce::253": false, "fd00:42::43": false,
		"fd00:a9fe:a9fe::2": false, "fd00:100::100:201": false, "fd00:c1::a9fe:a9ff": false, "2001:db8::1": false,
	} {
		address := netip.MustParseAddr(text)
		if got := Reserved(address); got != want {
			t.Errorf("Reserved(%s) = %t", text, got)
		}
		around := netip.PrefixFrom(address.Unmap().WithZone(""), 8).Masked()
		if got := Within(address, []netip.Prefix{around}); got == want {
			t.Errorf("%s is within %s: %t", text, around, got)
		}
	}
}
