package netlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// device is a network device, apart from its addresses.
type device struct {
	dataplane.Link
	Up bool
}

// ErrNoWireGuard is what Apply fails with if the kernel has no WireGuard, and there is no TUN device for it to run in this process, or no key.
var ErrNoWireGuard = errors.New("the kernel has no WireGuard")

// tunnel is the kind of the device that WireGuard in user space has.
const tunnel = "tuntap"

func devicesOf(links []dataplane.Link) []device {
	var all []device
	for _, link := range links {
		link.Addresses = nil
		all = append(all, device{link, true})
	}
	return all
}

// ours tells whether a device is one of those that the agents make.
func ours(link netlink.Link) bool {
	name := link.Attrs().Name
	switch link.Type() {
	case string(dataplane.VXLAN):
		return strings.HasPrefix(name, dataplane.NodeDevice) || strings.HasPrefix(name, dataplane.GatewayDevice)
	case string(dataplane.WireGuard), tunnel:
		return strings.HasPrefix(name, dataplane.TunnelDevice)
	default:
		return false
	}
}

// links are our devices by their index.
func (k *Kernel) links() (map[int]netlink.Link, error) {
	all, err := k.route.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	found, known := map[int]netlink.Link{}, map[int]bool{}
	for _, link := range all {
		if ours(link) {
			found[link.Attrs().Index], known[link.Attrs().Index] = link, true
		}
	}
	k.known.Store(&known)
	return found, nil
}

// index is that of a device.
func (k *Kernel) index(name string) (int, error) {
	link, err := k.route.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("find device %s: %w", name, err)
	}
	return link.Attrs().Index, nil
}

func (k *Kernel) devices(wanted []dataplane.Link) resource[device] {
	return resource[device]{
		name: func(d device) string { return "device " + d.Name },
		read: func() ([]device, error) {
			links, err := k.links()
			if err != nil {
				return nil, err
			}
			var all []device
			for _, link := range links {
				// What a process in user space has made ends with it.
				made := func(l dataplane.Link) bool { return l.Name == link.Attrs().Name }
				if link.Type() != tunnel || slices.ContainsFunc(wanted, made) || k.user[link.Attrs().Name].device != nil {
					d, err := k.deviceOf(link, wanted)
					if err != nil {
						return nil, err
					}
					all = append(all, d)
				}
			}
			slices.SortFunc(all, func(a, b device) int { return strings.Compare(a.Name, b.Name) })
			return all, nil
		},
		put: k.putDevice,
		remove: func(d device) error {
			k.tunnelGone(d.Name)
			link, err := k.route.LinkByName(d.Name)
			if err != nil {
				return err
			}
			return k.route.LinkDel(link)
		},
	}
}

// deviceOf is a device as it is there.
func (k *Kernel) deviceOf(link netlink.Link, wanted []dataplane.Link) (device, error) {
	base := link.Attrs()
	d := device{dataplane.Link{Name: base.Name, Kind: dataplane.LinkKind(link.Type()), MTU: base.MTU}, base.Flags&net.FlagUp != 0}
	if vxlan, ok := link.(*netlink.Vxlan); ok {
		copy(d.MAC[:], base.HardwareAddr)
		d.Local, _ = netip.AddrFromSlice(vxlan.SrcAddr.To4())
		d.VNI, d.Port = vxlan.VxlanId, uint16(vxlan.Port) //nolint:gosec // A port.
		if vxlan.Learning || vxlan.UDPCSum || vxlan.PortLow != dataplane.OverlaySource || vxlan.PortHigh != overlaySourceEnd {
			d.VNI = -1 // Neither learned entries nor checksums are ours, nor are other ports: it is not the device that is wanted.
		}
		return d, nil
	}
	i := slices.IndexFunc(wanted, func(l dataplane.Link) bool { return l.Name == d.Name })
	if i < 0 {
		return d, nil
	}
	return d, k.readTunnel(&d, wanted[i])
}

// putDevice makes a device, or sets what can be set of the one that is there. What an overlay is cannot be: it is made anew.
func (k *Kernel) putDevice(wanted device, there *device) error {
	if there != nil {
		link, err := k.route.LinkByName(wanted.Name)
		if err != nil {
			return err
		}
		fixed := there.Local == wanted.Local && there.VNI == wanted.VNI && there.Port == wanted.Port
		if there.Kind == wanted.Kind && (fixed || wanted.Kind == dataplane.WireGuard) {
			return k.setDevice(link, wanted)
		}
		if err := k.route.LinkDel(link); err != nil {
			return err
		}
	}
	err := k.addDevice(wanted.Link)
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("a device that is not ours has this name, or this VNI and port: %w", err)
	}
	return err
}

// overlaySourceEnd is the port behind those that the overlay sends from.
const overlaySourceEnd = dataplane.OverlaySource + dataplane.OverlaySources

func (k *Kernel) addDevice(link dataplane.Link) error {
	if link.Kind == dataplane.WireGuard {
		return k.addTunnel(link)
	}
	if err := k.makeWay(link); err != nil {
		return err
	}
	return k.addOverlay(link)
}

// addOverlay makes a VXLAN device that leaves the checksum of what it sends out, as RFC 7348 has it; what is inside has its own. Where a pod
// network translates the addresses of the packets, a checksum would come out wrong: the kernel takes the one that is still to be computed, of
// the packet inside, for that of the packet outside. The library cannot switch it off.
func (k *Kernel) addOverlay(link dataplane.Link) error {
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated(string(dataplane.VXLAN)))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_VXLAN_ID, nl.Uint32Attr(uint32(link.VNI))) //nolint:gosec // 24 bits.
	data.AddRtAttr(nl.IFLA_VXLAN_LOCAL, link.Local.AsSlice())
	data.AddRtAttr(nl.IFLA_VXLAN_PORT, binary.BigEndian.AppendUint16(nil, link.Port))
	data.AddRtAttr(nl.IFLA_VXLAN_PORT_RANGE, binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, dataplane.OverlaySource), overlaySourceEnd))
	data.AddRtAttr(nl.IFLA_VXLAN_LEARNING, nl.Uint8Attr(0))
	data.AddRtAttr(nl.IFLA_VXLAN_UDP_CSUM, nl.Uint8Attr(0))
	req := k.request(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK, link.Name, info,
		nl.NewRtAttr(unix.IFLA_ADDRESS, link.MAC[:]), nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(link.MTU)))) //nolint:gosec // Small.
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return err
	}
	return k.raise(link.Name)
}

// raise has a device carry packets. One that was down forwards none until it is told to, whatever the host has new devices do.
func (k *Kernel) raise(name string) error {
	link, err := k.route.LinkByName(name)
	if err != nil {
		return err
	}
	if link.Attrs().Flags&net.FlagUp == 0 {
		if err := k.writeSetting(dataplane.Setting{Device: name, Name: "forwarding", Value: 0}); err != nil {
			return err
		}
	}
	return k.route.LinkSetUp(link)
}

// makeWay removes an overlay of ours under another name: the kernel has one for each VNI and port.
func (k *Kernel) makeWay(wanted dataplane.Link) error {
	links, err := k.links()
	if err != nil {
		return err
	}
	for _, link := range links {
		if vxlan, ok := link.(*netlink.Vxlan); ok && vxlan.VxlanId == wanted.VNI && vxlan.Port == int(wanted.Port) {
			if err := k.route.LinkDel(link); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *Kernel) setDevice(link netlink.Link, wanted device) error {
	var err error
	if wanted.Kind == dataplane.VXLAN {
		err = k.route.LinkSetHardwareAddr(link, wanted.MAC[:])
	} else {
		err = k.setTunnel(wanted.Link, k.keys[wanted.Key])
	}
	if err != nil {
		return err
	}
	if err := k.route.LinkSetMTU(link, wanted.MTU); err != nil {
		return err
	}
	return k.raise(wanted.Name)
}

func tunnelOf(link dataplane.Link) netlink.Link {
	base := netlink.NewLinkAttrs()
	base.Name, base.MTU = link.Name, link.MTU
	return &netlink.Wireguard{LinkAttrs: base}
}

// address is one of a device.
type address struct {
	Device string
	Prefix netip.Prefix
}

func addressesOf(links []dataplane.Link) []address {
	var all []address
	for _, link := range links {
		for _, prefix := range link.Addresses {
			all = append(all, address{link.Name, prefix})
		}
	}
	return all
}

func (k *Kernel) addresses() resource[address] {
	change := func(a address, with func(netlink.Link, *netlink.Addr) error) error {
		link, err := k.route.LinkByName(a.Device)
		if err != nil {
			return err
		}
		return with(link, &netlink.Addr{IPNet: ipNet(a.Prefix)})
	}
	return resource[address]{
		name:   func(a address) string { return fmt.Sprintf("address %s of %s", a.Prefix, a.Device) },
		read:   k.readAddresses,
		put:    func(a address, _ *address) error { return change(a, k.route.AddrAdd) },
		remove: func(a address) error { return change(a, k.route.AddrDel) },
	}
}

func (k *Kernel) readAddresses() ([]address, error) {
	links, err := k.links()
	if err != nil {
		return nil, err
	}
	all, err := k.route.AddrList(nil, unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var found []address
	for _, a := range all {
		if link, ok := links[a.LinkIndex]; ok {
			found = append(found, address{link.Attrs().Name, prefixOf(a.IPNet)})
		}
	}
	return found, nil
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// prefixOf is a prefix of the kernel's; none is that of all addresses.
func prefixOf(network *net.IPNet) netip.Prefix {
	if network == nil {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	base, _ := netip.AddrFromSlice(network.IP)
	bits, _ := network.Mask.Size()
	return netip.PrefixFrom(base.Unmap(), bits)
}

// inetConf is the attribute with a device's settings for IPv4: when read a list of all, when written each by its number.
const inetConf = 1

// settingNumbers are the kernel's, by the names that /proc/sys has for them. That way is closed where it is mounted read-only, this is not.
var settingNumbers = map[string]int{"forwarding": 1, "rp_filter": 8}

func (k *Kernel) settings(wanted []dataplane.Setting) resource[dataplane.Setting] {
	return resource[dataplane.Setting]{
		name: func(s dataplane.Setting) string { return fmt.Sprintf("setting %s of %s", s.Name, s.Device) },
		read: func() ([]dataplane.Setting, error) {
			var all []dataplane.Setting
			for _, s := range wanted {
				value, err := k.readSetting(s)
				if gone(err) != nil {
					return nil, fmt.Errorf("read setting %s of %s: %w", s.Name, s.Device, err)
				}
				if err == nil {
					s.Value = value
					all = append(all, s)
				}
			}
			return all, nil
		},
		put: func(s dataplane.Setting, _ *dataplane.Setting) error { return k.writeSetting(s) },
	}
}

// request makes a request about a device; its name is enough.
func (k *Kernel) request(kind int, flags int, device string, attributes ...*nl.RtAttr) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(kind, flags)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: k.raw}
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(device)))
	for _, attribute := range attributes {
		req.AddData(attribute)
	}
	return req
}

func (k *Kernel) readSetting(s dataplane.Setting) (int, error) {
	messages, err := k.request(unix.RTM_GETLINK, 0, s.Device).Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return 0, err
	}
	if len(messages) != 1 {
		return 0, unix.ENODEV
	}
	value := messages[0][unix.SizeofIfInfomsg:]
	for _, attribute := range []uint16{unix.IFLA_AF_SPEC, unix.AF_INET, inetConf} {
		attributes, err := nl.ParseRouteAttrAsMap(value)
		if err != nil {
			return 0, err
		}
		value = attributes[attribute].Value
	}
	at := 4 * (settingNumbers[s.Name] - 1)
	if at < 0 || len(value) < at+4 {
		return 0, fmt.Errorf("the kernel does not tell it: %w", unix.ENOTSUP)
	}
	return int(nl.NativeEndian().Uint32(value[at:])), nil
}

func (k *Kernel) writeSetting(s dataplane.Setting) error {
	spec := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	spec.AddRtAttr(unix.AF_INET, nil).AddRtAttr(inetConf, nil).AddRtAttr(settingNumbers[s.Name], nl.Uint32Attr(uint32(s.Value))) //nolint:gosec // Small.
	_, err := k.request(unix.RTM_SETLINK, unix.NLM_F_ACK, s.Device, spec).Execute(unix.NETLINK_ROUTE, 0)
	return err
}
