package netlink

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// ourTables are the routing tables of the agents. One is the kernel's own, too.
var ourTables = []int{dataplane.LocalTable, dataplane.FormerTable, dataplane.InsideTable, dataplane.OutsideTable}

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
	// misplaced tells of one in the local table that another route comes before, or that comes before an address of the host.
	misplaced bool
	raw       *netlink.Route
}

func routesOf(wanted []dataplane.Route) []route {
	var all []route
	for _, r := range wanted {
		all = append(all, route{Route: r})
	}
	return all
}

func (k *Kernel) routes(wanted dataplane.State) resource[route] {
	var local locals
	return resource[route]{
		name: func(r route) string { return fmt.Sprintf("route to %s in table %d%s", r.Destination, r.Table, r.Odd) },
		same: func(a, b route) bool { return a.Route == b.Route && a.misplaced == b.misplaced },
		read: func() ([]route, error) {
			var all []route
			var err error
			if all, local, err = k.readRoutes(); err != nil {
				return nil, err
			}
			for i := range all {
				all[i].asWanted(wanted.Routes)
			}
			return unkept(wanted, all), nil
		},
		put: func(r route, there *route) error {
			raw, err := k.routeOf(r.Route)
			if err != nil {
				return err
			}
			if r.Table == dataplane.LocalTable {
				return putLocal(k.route, raw, there, local.hosts[r.Destination])
			}
			return k.route.RouteReplace(raw)
		},
		remove: func(r route) error { return k.route.RouteDel(r.raw) },
		part:   route.Part,
		spares: route.isRefused,
	}
}

// isRefused tells whether the kernel refuses one of the agents' own routes by its next hop. What address a node or a gateway has is said by the kubelet
// of one node, and there are more that lead nowhere than can be told before: the last one of a network that the host is in, for one.
func (r route) isRefused(err error) bool {
	return r.Part() == dataplane.OwnPart && r.Via.IsValid() &&
		(errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH))
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

func (k *Kernel) readRoutes() ([]route, locals, error) {
	links, err := k.route.LinkList()
	if err != nil {
		return nil, locals{}, fmt.Errorf("list devices: %w", err)
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	raw, err := k.route.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, locals{}, fmt.Errorf("list routes: %w", err)
	}
	var all []route
	local := localsOf(raw)
	for _, r := range raw {
		before := local.pass(r)
		if isOurs(r) {
			read := readRoute(r, names[r.LinkIndex])
			local.place(&read, before)
			all = append(all, read)
		}
	}
	return all, local, nil
}

// isOurs tells whether a route is ours: where the kernel has its own, too, only those of types that it does not have there.
func isOurs(r netlink.Route) bool {
	return r.Protocol == dataplane.Protocol && (r.Table != dataplane.LocalTable || r.Type == unix.RTN_UNICAST || r.Type == unix.RTN_BLACKHOLE) &&
		(slices.Contains(ourTables, r.Table) || (dataplane.Route{Table: r.Table}).Part() != dataplane.OwnPart)
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

// locals is the local table, which is the kernel's and, on a node, ours. Of several routes to one destination the kernel takes the first.
type locals struct {
	// hosts are the destinations that are the host's own, its addresses above all.
	hosts map[netip.Prefix]bool
	// seen are what came before the next route to a destination, in the kernel's order.
	seen map[netip.Prefix]ahead
}

// ahead says what routes come before another one.
type ahead struct{ hosts, ours, others bool }

func localsOf(all []netlink.Route) locals {
	l := locals{map[netip.Prefix]bool{}, map[netip.Prefix]ahead{}}
	for _, r := range all {
		if r.Table == dataplane.LocalTable && isHosts(r) {
			l.hosts[prefixOf(r.Dst)] = true
		}
	}
	return l
}

// isHosts tells whether a route is of an address of the host, or of one that it broadcasts to, or of some for all hosts.
func isHosts(r netlink.Route) bool {
	return slices.Contains([]int{unix.RTN_LOCAL, unix.RTN_BROADCAST, unix.RTN_ANYCAST, unix.RTN_MULTICAST}, r.Type)
}

// pass goes on to the next route of the table, and returns what came before it. Those with a metric or a type of service have an order of their own.
func (l locals) pass(r netlink.Route) ahead {
	if r.Table != dataplane.LocalTable || r.Priority != 0 || r.Tos != 0 {
		return ahead{}
	}
	to := prefixOf(r.Dst)
	before, after := l.seen[to], l.seen[to]
	switch {
	case isHosts(r):
		after.hosts = true
	case isOurs(r):
		after.ours = true
	default:
		after.others = true
	}
	l.seen[to] = after
	return before
}

// place says whether one of ours is where it has to be: behind the host's own, or else before all others. A second one is odd: a pass ended before
// it took the first one away.
func (l locals) place(r *route, before ahead) {
	switch {
	case before.ours:
		r.Odd += " again"
	case r.Table == dataplane.LocalTable && l.hosts[r.Destination]:
		r.misplaced = !before.hosts
	default:
		r.misplaced = before.others
	}
}

// putLocal puts a route into the local table. It replaces none there: the kernel would replace the first one to the destination, whosever that is.
// The new one comes before the others, or behind them where one is the host's own, and then the old one of ours goes. So no packet is lost meanwhile.
func putLocal(kernel *netlink.Handle, raw *netlink.Route, there *route, hosts bool) error {
	put := kernel.RouteAddEcmp // That is without a word about the others, which makes it the first.
	if hosts {
		put = kernel.RouteAppend
	}
	err := put(raw)
	moves := errors.Is(err, unix.EEXIST)
	if there == nil || err != nil && !moves {
		return err
	}
	if err := gone(kernel.RouteDel(there.raw)); err != nil || !moves {
		return err
	}
	// What is there in all but its place is put there once it is gone.
	if err := put(raw); !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}
