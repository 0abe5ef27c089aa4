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

// scopes are the kernel's numbers of scopes.
var scopes = map[dataplane.Scope]netlink.Scope{
	dataplane.ScopeGlobal: unix.RT_SCOPE_UNIVERSE, dataplane.ScopeSite: unix.RT_SCOPE_SITE, dataplane.ScopeLink: unix.RT_SCOPE_LINK,
	dataplane.ScopeHost: unix.RT_SCOPE_HOST, dataplane.ScopeNowhere: unix.RT_SCOPE_NOWHERE,
}

func scopeOf(number netlink.Scope) dataplane.Scope {
	for scope, other := range scopes {
		if other == number {
			return scope
		}
	}
	return dataplane.Scope(fmt.Sprint(int(number)))
}

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

func (k *Kernel) routes(wanted dataplane.State) resource[route] {
	return resource[route]{
		name: func(r route) string { return fmt.Sprintf("route to %s in table %d%s", r.Destination, r.Table, r.Odd) },
		same: func(a, b route) bool { return a.Route == b.Route },
		read: func() ([]route, error) {
			all, err := k.readRoutes()
			for i := range all {
				all[i].asWanted(wanted.Routes)
			}
			return unkept(wanted, all), err
		},
		put: func(r route, _ *route) error {
			raw, err := k.routeOf(r.Route)
			if err != nil {
				return err
			}
			return k.route.RouteReplace(raw)
		},
		remove: func(r route) error { return k.route.RouteDel(r.raw) },
		part:   route.Part,
	}
}

// asWanted leaves out the device of a route that is wanted by whatever device leads to its next hop.
func (r *route) asWanted(wanted []dataplane.Route) {
	if r.Part() == dataplane.OwnPart {
		return
	}
	for _, other := range wanted {
		if other.Table == r.Table && other.Destination == r.Destination && other.Device == "" {
			r.Device = ""
		}
	}
}

// unkept are the things that are not of parts that stay as they are.
func unkept[T interface{ Part() string }](wanted dataplane.State, all []T) []T {
	return slices.DeleteFunc(all, func(thing T) bool { return wanted.Keeps(thing.Part()) })
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
		if slices.Contains(ourTables, r.Table) || (dataplane.Route{Table: r.Table}).Part() != dataplane.OwnPart {
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
	onlink := raw.Flags&int(netlink.FLAG_ONLINK) != 0
	r.Near = r.Via.IsValid() && !onlink
	if scope := scopeOf(raw.Scope); scope != r.UsualScope() {
		r.Scope = scope
	}
	// Priority and type of service make another route of it.
	if onlink && !r.Via.IsValid() || len(raw.MultiPath) > 0 || !r.Blackhole && raw.Type != unix.RTN_UNICAST {
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
	if r.Device != "" {
		index, err := k.index(r.Device)
		if err != nil {
			return nil, err
		}
		raw.LinkIndex = index
	}
	if r.Via.IsValid() {
		raw.Gw, raw.Scope = net.IP(r.Via.AsSlice()), unix.RT_SCOPE_UNIVERSE
		if !r.Near {
			raw.SetFlag(netlink.FLAG_ONLINK)
		}
	}
	if r.Scope != "" {
		raw.Scope = scopes[r.Scope]
	}
	if r.Source.IsValid() {
		raw.Src = r.Source.AsSlice()
	}
	return raw, nil
}
