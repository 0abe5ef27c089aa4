package network

import (
	"fmt"
	"net/netip"

	"liqo.io/liqo/pkg/addressing"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// The ranges that are taken if the administrator names none and they are free; the same as in Liqo v1.
var (
	defaultExternal = netip.MustParsePrefix("10.70.0.0/16")
	defaultInternal = netip.MustParsePrefix("10.80.0.0/16")
)

// externalReserved is how many addresses at the beginning of the external range are given to nobody.
const externalReserved = 1

// ownNetwork is one of this cluster's own ranges.
type ownNetwork struct {
	name, kind string
	// prefix is invalid if the administrator named none: then a free one is found.
	prefix       netip.Prefix
	preAllocated int32
}

// ownNetworks are this cluster's own ranges by name. The first of a type is called by it.
func ownNetworks(o Options) map[string]ownNetwork {
	all := map[string]ownNetwork{}
	add := func(kind string, prefixes []netip.Prefix, preAllocated int32) {
		for i, prefix := range prefixes {
			name := kind
			if i > 0 {
				name = fmt.Sprintf("%s-%d", kind, i+1)
			}
			all[name] = ownNetwork{name: name, kind: kind, prefix: prefix, preAllocated: preAllocated}
		}
	}
	orAny := func(prefixes []netip.Prefix) []netip.Prefix {
		if len(prefixes) == 0 {
			return []netip.Prefix{{}}
		}
		return prefixes[:1]
	}
	add(ipamv1alpha1.NetworkTypePod, o.Pods, 0)
	add(ipamv1alpha1.NetworkTypeService, o.Services, 0)
	add(ipamv1alpha1.NetworkTypeExternal, orAny(o.External), externalReserved)
	add(ipamv1alpha1.NetworkTypeInternal, orAny(o.Internal), 0)
	add(ipamv1alpha1.NetworkTypeReserved, o.Reserved, 0)
	return all
}

// findOwn chooses the external or the internal range where the administrator named none.
func findOwn(own ownNetwork, o Options, used addressing.Used) (networkingv1beta1.CIDR, error) {
	want := defaultExternal
	if own.kind == ipamv1alpha1.NetworkTypeInternal {
		want = defaultInternal
	}
	found, err := addressing.Allocate(o.ClusterID, want, o.Pools, used)
	return networkingv1beta1.CIDR(found.String()), err
}

// whyNotOwn says what is wrong with an own range; empty if nothing is. Only the external range has to be free of the others: from it
// addresses are given, and those of others would be given twice.
func whyNotOwn(own ownNetwork, o Options) string {
	if own.kind != ipamv1alpha1.NetworkTypeExternal || !own.prefix.IsValid() {
		return ""
	}
	for kind, prefixes := range map[string][]netip.Prefix{"pods": o.Pods, "Services": o.Services} {
		for _, other := range prefixes {
			if other.Overlaps(own.prefix) {
				return fmt.Sprintf("the external range %s overlaps %s of this cluster's %s: change ipam.externalCIDR", own.prefix, other, kind)
			}
		}
	}
	return ""
}
