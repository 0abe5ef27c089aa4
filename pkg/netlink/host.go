package netlink

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
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

// Obstacles are what of the host keeps, or may keep, packets from going on to pods, in order: devices that do not forward, firewalls of others
// that drop what none of their rules accepts, and routes of others to a part of a peer's range. What the old iptables has in the kernel is not seen.
func Obstacles(k *Kernel) ([]string, error) {
	still, err := devicesThatForwardNothing(k)
	if err != nil {
		return nil, err
	}
	drops, err := chainsThatDrop(k)
	if err != nil {
		return nil, err
	}
	taken, err := waysOfOthers(k)
	if err != nil {
		return nil, err
	}
	found := slices.Concat(still, drops, taken)
	slices.Sort(found)
	return slices.Compact(found), nil
}

func devicesThatForwardNothing(k *Kernel) (found []string, err error) {
	addresses, err := k.HostAddresses()
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if !a.Leads {
			continue
		}
		value, err := k.readSetting(dataplane.Setting{Device: a.Device, Name: "forwarding"})
		if gone(err) != nil {
			return nil, fmt.Errorf("read whether %s forwards: %w", a.Device, err)
		}
		if err == nil && value == 0 {
			found = append(found, fmt.Sprintf("net.ipv4.conf.%s.forwarding is 0", a.Device))
		}
	}
	return found, nil
}

func chainsThatDrop(k *Kernel) (found []string, err error) {
	conn, err := k.firewall()
	if err != nil {
		return nil, err
	}
	chains, err := conn.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list chains of the firewall: %w", err)
	}
	for _, c := range chains {
		forwards := c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookForward && c.Table.Family != nftables.TableFamilyIPv6
		if forwards && c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop && !ourTable(c.Table.Family, c.Table.Name) {
			found = append(found, fmt.Sprintf("chain %s of the firewall's table %s drops what no rule accepts", c.Name, c.Table.Name))
		}
	}
	return found, nil
}

// waysOfOthers are routes of the main table that take a part of a peer's range. On a host without rules the longest prefix of it and the local
// table wins.
func waysOfOthers(k *Kernel) (found []string, err error) {
	ours, _, err := k.readRoutes()
	if err != nil {
		return nil, err
	}
	others, err := k.route.RouteList(nil, unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	for _, other := range others {
		to := prefixOf(other.Dst)
		for _, r := range ours {
			if r.Table != dataplane.LocalTable || !r.Destination.Overlaps(to) || r.Destination.Bits() >= to.Bits() {
				continue
			}
			ways, err := k.route.RouteGet(to.Addr().AsSlice())
			if err != nil || len(ways) == 0 || ways[0].LinkIndex != r.raw.LinkIndex {
				found = append(found, fmt.Sprintf("the route to %s in the main table takes packets that are for %s of a peer", to, r.Destination))
			}
		}
	}
	return found, nil
}
