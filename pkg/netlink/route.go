package netlink

import (
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// ourTables are the routing tables of the agents.
var ourTables = []int{dataplane.PeersTable, dataplane.InsideTable, dataplane.OutsideTable}

// route is a route, with what it has besides that ours do not have.
type route struct {
	dataplane.Route
	Odd string
	raw *netlink.Route
}

func routesOf(wanted []dataplane.Route) []route {
	var all []route
	for _, r := range wanted {
		all = append(all, route{Route: r})
	}
	return all
}

func (k *Kernel) routes() resource[route] {
	return resource[route]{
		name: func(r route) string { return fmt.Sprintf("route to %s in table %d%s", r.Destination, r.Table, r.Odd) },
		same: func(a, b route) bool { return a.Route == b.Route },
		read: k.readRoutes,
		put: func(r route, _ *route) error {
			raw, err := k.routeOf(r.Route)
			if err != nil {
				return err
			}
			return k.route.RouteReplace(raw)
		},
		remove: func(r route) error { return k.route.RouteDel(r.raw) },
	}
}

func (k *Kernel) readRoutes() ([]route, error) {
	links, err := k.route.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	raw, err := k.route.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: unix.RT_TABLE_UNSPEC, Protocol: dataplane.Protocol},
		netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	var all []route
	for _, r := range raw {
		if slices.Contains(ourTables, r.Table) {
			all = append(all, readRoute(r, names[r.LinkIndex]))
		}
	}
	return all, nil
}

func readRoute(raw netlink.Route, device string) route {
	r := route{Route: dataplane.Route{Table: raw.Table, Destination: prefixOf(raw.Dst), Device: device, MTU: raw.MTU}, raw: &raw}
	r.Blackhole = raw.Type == unix.RTN_BLACKHOLE
	if raw.Gw != nil {
		r.Via = ipOf(raw.Gw)
	}
	if raw.Src != nil {
		r.Source = ipOf(raw.Src)
	}
	// A next hop that is not "onlink" would have to be reachable otherwise; priority and type of service make another route of it.
	if r.Via.IsValid() != (raw.Flags&int(netlink.FLAG_ONLINK) != 0) || len(raw.MultiPath) > 0 || !r.Blackhole && raw.Type != unix.RTN_UNICAST {
		r.MTU = -1
	}
	if raw.Priority != 0 || raw.Tos != 0 {
		r.Odd = fmt.Sprintf(" metric %d tos %d", raw.Priority, raw.Tos)
	}
	return r
}

func (k *Kernel) routeOf(r dataplane.Route) (*netlink.Route, error) {
	raw := &netlink.Route{Table: r.Table, Dst: ipNet(r.Destination), Protocol: dataplane.Protocol, MTU: r.MTU, Family: unix.AF_INET, Scope: unix.RT_SCOPE_LINK}
	if r.Blackhole {
		raw.Type, raw.Scope = unix.RTN_BLACKHOLE, unix.RT_SCOPE_UNIVERSE
		return raw, nil
	}
	index, err := k.index(r.Device)
	if err != nil {
		return nil, err
	}
	raw.LinkIndex = index
	if r.Via.IsValid() {
		raw.Gw, raw.Scope = net.IP(r.Via.AsSlice()), unix.RT_SCOPE_UNIVERSE
		raw.SetFlag(netlink.FLAG_ONLINK)
	}
	if r.Source.IsValid() {
		raw.Src = r.Source.AsSlice()
	}
	return raw, nil
}
