package netlink

import (
	"fmt"
	"slices"

	"github.com/google/nftables"

	"liqo.io/liqo/pkg/dataplane"
)

// Obstacles are what of the host keeps, or may keep, packets from going on to pods, in order: devices that do not forward, and firewalls of others
// that drop what none of their rules accepts. What the old iptables has in the kernel is not seen.
func (k *Kernel) Obstacles() ([]string, error) {
	addresses, err := k.HostAddresses()
	if err != nil {
		return nil, err
	}
	var found []string
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
	conn, err := k.firewall()
	if err != nil {
		return nil, err
	}
	chains, err := conn.ListChains()
	if err != nil {
		return nil, fmt.Errorf("list chains of the firewall: %w", err)
	}
	for _, c := range chains {
		forwards := c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookForward && (c.Table.Family == nftables.TableFamilyIPv4 || c.Table.Family == nftables.TableFamilyINet)
		if forwards && c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop && !ourTable(c.Table.Family, c.Table.Name) {
			found = append(found, fmt.Sprintf("chain %s of the firewall's table %s drops what no rule accepts", c.Name, c.Table.Name))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
