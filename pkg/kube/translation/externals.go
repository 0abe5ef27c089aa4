package translation

import (
	"net/netip"
	"slices"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	"liqo.io/liqo/pkg/networking/inputs"
)

// Externals are the addresses of the external range by which peers reach what is no pod, by those under which this cluster knows it.
type Externals map[netip.Addr]netip.Addr

// ExternalsOf reads IP resources. Those in the cluster's own ranges are left out: peers reach pods by the pods' own addresses.
func ExternalsOf(all []ipamv1alpha1.IP, own []netip.Prefix) Externals {
	externals := Externals{}
	for _, ip := range inputs.IPs(all) {
		if !slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Contains(ip.Address) }) {
			externals[ip.Address] = ip.External
		}
	}
	return externals
}

// Translate returns the address that peers are told for one of this cluster: itself, unless an IP resource gave it another one.
func (e Externals) Translate(address netip.Addr) (netip.Addr, bool) {
	address = address.Unmap()
	if external, ok := e[address]; ok {
		return external, true
	}
	return address, true
}
