package netlink

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// neighbor is the hardware address of a next hop.
type neighbor struct {
	Device  string
	Address netip.Addr
	MAC     dataplane.MAC
}

// entry says where a VXLAN device sends packets for a hardware address: one of its forwarding database.
type entry struct {
	Device string
	MAC    dataplane.MAC
	VTEP   netip.Addr
}

func neighborsOf(wanted []dataplane.Neighbor) []neighbor {
	var all []neighbor
	for _, n := range wanted {
		all = append(all, neighbor{n.Device, n.Address, n.MAC})
	}
	return all
}

func entriesOf(wanted []dataplane.Neighbor) []entry {
	var all []entry
	for _, n := range wanted {
		all = append(all, entry{n.Device, n.MAC, n.VTEP})
	}
	return all
}

// permanent lists what of a family is permanent on our overlays. What the kernel found out by itself is not ours.
func (k *Kernel) permanent(family int, found func(device string, n netlink.Neigh)) error {
	links, err := k.links()
	if err != nil {
		return err
	}
	all, err := k.route.NeighList(0, family)
	if err != nil {
		return fmt.Errorf("list neighbours: %w", err)
	}
	for _, n := range all {
		if link, ok := links[n.LinkIndex]; ok && n.State&netlink.NUD_PERMANENT != 0 && n.IP.To4() != nil {
			found(link.Attrs().Name, n)
		}
	}
	return nil
}

func (k *Kernel) readARP() (all []neighbor, err error) {
	err = k.permanent(unix.AF_INET, func(device string, n netlink.Neigh) {
		found := neighbor{Device: device, Address: ipOf(n.IP)}
		copy(found.MAC[:], n.HardwareAddr)
		all = append(all, found)
	})
	return all, err
}

func (k *Kernel) readEntries() (all []entry, err error) {
	err = k.permanent(unix.AF_BRIDGE, func(device string, n netlink.Neigh) {
		found := entry{Device: device, VTEP: ipOf(n.IP)}
		copy(found.MAC[:], n.HardwareAddr)
		all = append(all, found)
	})
	return all, err
}

// readNeighbors puts both together.
func (k *Kernel) readNeighbors() ([]dataplane.Neighbor, error) {
	neighbors, err := k.readARP()
	if err != nil {
		return nil, err
	}
	entries, err := k.readEntries()
	if err != nil {
		return nil, err
	}
	type hardware struct {
		device string
		mac    dataplane.MAC
	}
	behind := map[hardware]netip.Addr{}
	for _, e := range entries {
		behind[hardware{e.Device, e.MAC}] = e.VTEP
	}
	var all []dataplane.Neighbor
	for _, n := range neighbors {
		all = append(all, dataplane.Neighbor{Device: n.Device, Address: n.Address, MAC: n.MAC, VTEP: behind[hardware{n.Device, n.MAC}]})
	}
	return all, nil
}

func (k *Kernel) neighbors() resource[neighbor] {
	change := func(n neighbor, with func(*netlink.Neigh) error) error {
		index, err := k.index(n.Device)
		if err != nil {
			return err
		}
		return with(&netlink.Neigh{
			LinkIndex: index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT, IP: n.Address.AsSlice(), HardwareAddr: n.MAC[:],
		})
	}
	return resource[neighbor]{
		name:   func(n neighbor) string { return fmt.Sprintf("neighbour %s on %s", n.Address, n.Device) },
		read:   k.readARP,
		put:    func(n neighbor, _ *neighbor) error { return change(n, k.route.NeighSet) },
		remove: func(n neighbor) error { return change(n, k.route.NeighDel) },
	}
}

func (k *Kernel) forwarding() resource[entry] {
	change := func(e entry, with func(*netlink.Neigh) error) error {
		index, err := k.index(e.Device)
		if err != nil {
			return err
		}
		return with(&netlink.Neigh{
			LinkIndex: index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, State: netlink.NUD_PERMANENT, IP: e.VTEP.AsSlice(), HardwareAddr: e.MAC[:],
		})
	}
	return resource[entry]{
		name:   func(e entry) string { return fmt.Sprintf("way of %s to %s on %s", e.MAC, e.VTEP, e.Device) },
		read:   k.readEntries,
		put:    func(e entry, _ *entry) error { return change(e, k.route.NeighSet) },
		remove: func(e entry) error { return change(e, k.route.NeighDel) },
	}
}

func ipOf(raw []byte) netip.Addr {
	address, _ := netip.AddrFromSlice(raw)
	return address.Unmap()
}
