package netlink

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

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
