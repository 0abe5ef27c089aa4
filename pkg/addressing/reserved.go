package addressing

import (
	"net/netip"
	"slices"
)

// metadata are addresses at which clouds tell machines who they are and hand them credentials, and that lie outside of the ranges of
// links, so that a pod range may well be around them. The sources are the clouds' own manuals: Amazon EC2, "Use IMDS", and Amazon VPC,
// whose local services of IPv6 all lie in fd00:ec2::/32; Google Compute Engine, "View and query VM metadata"; Scaleway, "User data" of
// its Instance API; Akamai, "Metadata Service API"; Alibaba Cloud ECS, "Instance metadata"; Azure, "What is IP address 168.63.129.16?";
// Oracle Cloud, the SDKs' signer of instance principals, and "Retrieving instance metadata" of its classic instances. cloud-init's
// datasources agree. The others, and those of most other clouds, are link-local.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("fd20:ce::254/128"), netip.MustParsePrefix("fd00:42::42/128"),
	netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"), netip.MustParsePrefix("fd00:100::100:200/128"), netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"),
	netip.MustParsePrefix("100.100.100.200/32"), netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("192.0.0.192/32"),
}

// Reserved tells whether an address is no pod's, whatever range lies around it: it means the host that uses it, a link, many hosts or
// none, or is that of a cloud's metadata service.
func Reserved(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	holds := func(p netip.Prefix) bool { return p.Contains(address) }
	return slices.ContainsFunc(special, holds) || slices.ContainsFunc(metadata, holds)
}

// Metadata are the ranges in which clouds have their metadata services, those of links included: no pod of a peer has business there.
func Metadata() []netip.Prefix {
	return append([]netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")}, metadata...)
}
