package netlink

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// HostAddress is an IPv4 address of a device that is not ours.
type HostAddress struct {
	Device  string
	Address netip.Addr
	// Network is what the device is in: an address there is reached without a router.
	Network netip.Prefix
	// MTU is the device's, in bytes.
	MTU int
	// Leads tells whether the device leads somewhere: it is up, and neither the loopback device nor one that swallows what it is given.
	Leads bool
}

// HostAddresses returns the IPv4 addresses of all devices but ours, in order.
func (k *Kernel) HostAddresses() ([]HostAddress, error) {
	links, err := again(k.route.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	devices := map[int]HostAddress{}
	for _, link := range links {
		base := link.Attrs()
		leads := base.Flags&net.FlagUp != 0 && base.Flags&net.FlagLoopback == 0 && link.Type() != "dummy"
		if !ours(link) {
			devices[base.Index] = HostAddress{Device: base.Name, MTU: base.MTU, Leads: leads}
		}
	}
	addresses, err := k.route.AddrList(nil, unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var all []HostAddress
	for _, a := range addresses {
		if found, ok := devices[a.LinkIndex]; ok {
			prefix := prefixOf(a.IPNet)
			found.Address, found.Network = prefix.Addr(), prefix.Masked()
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(a, b HostAddress) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Device, b.Device))
	})
	return all, nil
}
