package netlink

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/kube/signal"
)

// nftTable is, in whatever nftables tells of, the attribute with the name of the table: 1 in all its messages.
const nftTable = 1

// routeGroups are what rtnetlink is to tell of.
var routeGroups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV4_NETCONF,
}

// netconfDevice is, in what rtnetlink tells of settings, the attribute with the index of the device.
const netconfDevice = 1

// watch signals on events when something may have changed that is ours, until ctx ends. The channel holds one signal: what happens before it is
// taken is one. On lost comes the error after which nothing is told any more.
func (k *Kernel) watch(ctx context.Context) (events <-chan struct{}, lost <-chan error, err error) {
	route, err := nl.SubscribeAt(k.namespace, netns.None(), unix.NETLINK_ROUTE, routeGroups...)
	if err != nil {
		return nil, nil, fmt.Errorf("listen to rtnetlink: %w", err)
	}
	firewall, err := nl.SubscribeAt(k.namespace, netns.None(), unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		route.Close()
		return nil, nil, fmt.Errorf("listen to nftables: %w", err)
	}
	signals, failed := signal.New(), make(chan error, 2)
	go k.listen(route, k.concernsRoutes, signals, failed)
	go k.listen(firewall, concernsFirewall, signals, failed)
	context.AfterFunc(ctx, func() {
		route.Close()
		firewall.Close()
	})
	return signals, failed, nil
}

// listen signals what concerns us. What was lost because there was too much of it may concern us.
func (k *Kernel) listen(socket *nl.NetlinkSocket, concerns func(kind uint16, data []byte) bool, signals signal.Signal, failed chan<- error) {
	// A burst that does not fit is noticed as such: a smaller buffer costs a pass, no more.
	_ = socket.SetReceiveBufferSize(buffer, true)
	for {
		messages, _, err := socket.Receive()
		if err != nil && !errors.Is(err, unix.ENOBUFS) {
			failed <- err
			return
		}
		concerned := err != nil
		for _, m := range messages {
			concerned = concerned || concerns(m.Header.Type, m.Data)
		}
		if concerned {
			signals.Raise()
		}
	}
}

// concernsRoutes tells whether an event of rtnetlink is about something that is ours, or may be: on a node most are not.
func (k *Kernel) concernsRoutes(kind uint16, data []byte) bool {
	switch kind {
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return len(data) >= unix.SizeofRtMsg && concernsRoute(nl.DeserializeRtMsg(data))
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return true
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH, unix.RTM_NEWADDR, unix.RTM_DELADDR:
		// Both begin with the family, three more bytes, and the index of the device.
		return len(data) >= 8 && k.knows(data[4:8])
	case unix.RTM_NEWNETCONF, unix.RTM_DELNETCONF:
		return k.knows([]byte(attribute(data, 4, netconfDevice)))
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		// A text ends with a byte of 0.
		name := attribute(data, unix.SizeofIfInfomsg, unix.IFLA_IFNAME)
		return strings.HasPrefix(name, dataplane.NodeDevice) || strings.HasPrefix(name, dataplane.GatewayDevice)
	default:
		return true
	}
}

// concernsRoute tells whether a route is ours, or somebody else's in the table that we share with the kernel: such a one may have replaced ours,
// which is told by the new one alone.
func concernsRoute(m *nl.RtMsg) bool {
	return m.Protocol == dataplane.Protocol || m.Table == dataplane.LocalTable && m.Protocol != kernelProtocol
}

// knows tells whether a device is ours, by its index in the kernel's bytes. Before the first pass any may be.
func (k *Kernel) knows(index []byte) bool {
	known := k.known.Load()
	return known == nil || len(index) == 4 && (*known)[int(nl.NativeEndian().Uint32(index))]
}

// concernsFirewall tells whether an event of nftables is about our tables. What else there is, kube-proxy's above all, is much.
func concernsFirewall(_ uint16, data []byte) bool {
	name := strings.TrimSuffix(attribute(data, 4, nftTable), "\x00")
	return name == dataplane.FirewallTable || (dataplane.Table{Name: name}).Part() != dataplane.OwnPart
}

// attribute is the value of one of the attributes that follow the header of a message; empty if there is none.
func attribute(data []byte, header int, number uint16) string {
	if len(data) < header {
		return ""
	}
	attributes, err := nl.ParseRouteAttrAsMap(data[header:])
	if err != nil {
		return ""
	}
	return string(attributes[number].Value)
}
