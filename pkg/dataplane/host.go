package dataplane

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// The kernel's own rules, by priority.
var kernelRules = []Rule{{Priority: 0, Table: LocalTable}, {Priority: 32766, Table: MainTable}}

// host is a place with what the kernel makes of its State.
type host struct {
	place Place
	state State
	links map[string]Link
	// local are the addresses of the place itself.
	local map[netip.Addr]bool
	rules []Rule
	// tables are the routes of each table, longest prefix first.
	tables map[int][]Route
	// hooks are the chains of each hook, in the order in which the kernel calls them.
	hooks       map[Hook][]base
	connections []*connection
}

// base is a chain that the kernel calls, in its table.
type base struct {
	table *Table
	chain Chain
}

func newHost(place Place, state State) *host {
	h := &host{place: place, state: state, links: map[string]Link{}, local: map[netip.Addr]bool{}, tables: map[int][]Route{}, hooks: map[Hook][]base{}}
	for _, link := range state.Links {
		h.links[link.Name] = link
		for _, address := range link.Addresses {
			h.local[address.Addr()] = true
			if !address.IsSingleIP() {
				h.tables[MainTable] = append(h.tables[MainTable], Route{Table: MainTable, Destination: address.Masked(), Device: link.Name, Source: address.Addr()})
			}
		}
	}
	for _, route := range state.Routes {
		h.tables[route.Table] = append(h.tables[route.Table], route)
	}
	for _, rule := range slices.Concat(kernelRules, state.Rules) {
		gone := func(other Rule) bool {
			return other.Absent && other.Priority == rule.Priority && other.Table == rule.Table
		}
		if !rule.Absent && !slices.ContainsFunc(state.Rules, gone) {
			h.rules = append(h.rules, rule)
		}
	}
	slices.SortStableFunc(h.rules, func(a, b Rule) int { return cmp.Compare(a.Priority, b.Priority) })
	if slices.Equal(h.rules, kernelRules) {
		// As long as there are no other rules, the kernel has both its tables in one tree, where the longest prefix of both wins.
		h.tables[LocalTable] = append(h.tables[LocalTable], h.tables[MainTable]...)
	}
	for _, routes := range h.tables {
		slices.SortStableFunc(routes, func(a, b Route) int { return cmp.Compare(b.Destination.Bits(), a.Destination.Bits()) })
	}
	h.hook(state.Firewall)
	return h
}

// hook finds the chains of each hook. Packets of IPv6 are not walked.
func (h *host) hook(tables []Table) {
	for i := range tables {
		for _, chain := range tables[i].Chains {
			if chain.Hook != "" && tables[i].Family == "ip" {
				h.hooks[chain.Hook] = append(h.hooks[chain.Hook], base{&tables[i], chain})
			}
		}
	}
	for _, chains := range h.hooks {
		slices.SortStableFunc(chains, func(a, b base) int { return cmp.Compare(a.chain.Priority, b.chain.Priority) })
	}
}

// question is what a way is looked for by: the addresses, of which that of the source may not be known yet, the device that the packet came in by,
// and its mark.
type question struct {
	from, to netip.Addr
	in       string
	mark     uint32
}

func (q question) meets(r Rule) bool {
	from, to := !r.From.IsValid() || r.From.Contains(q.from), !r.To.IsValid() || r.To.Contains(q.to)
	return from && to && (r.In == "" || r.In == q.in) && (r.Mark == 0 || r.Mark == q.mark)
}

// lookup finds the way; local if it ends at the place.
func (h *host) lookup(q question) (route Route, local, ok bool) {
	for _, rule := range h.rules {
		if !q.meets(rule) {
			continue
		}
		if rule.Table == LocalTable && h.local[q.to] {
			return Route{}, true, true
		}
		for _, route := range h.tables[rule.Table] {
			if route.Destination.Contains(q.to) {
				return route, false, !route.Blackhole
			}
		}
	}
	return Route{}, false, false
}

// checkSource says why a packet cannot have come by the device that it came by: from an address of the place itself never, and, where the
// device has rp_filter 1, if the answer, which would come in by out, would leave by another one.
func (h *host) checkSource(from, to netip.Addr, in, out string) string {
	back, local, ok := h.lookup(question{from: to, to: from, in: out})
	switch {
	case local:
		return fmt.Sprintf("%s is an address of this place", from)
	case !slices.Contains(h.state.Devices, Setting{in, reversePath, 1}):
		return ""
	case !ok:
		return fmt.Sprintf("there is no way back to %s", from)
	case back.Device != in:
		return fmt.Sprintf("the way back to %s is %s", from, back.Device)
	default:
		return ""
	}
}

func (h *host) forwards(device string) bool {
	return slices.Contains(h.state.Devices, Setting{device, forwarding, 1})
}

// source is the address of what a place sends itself: the route's, the device's, or that of the first device that has one.
func (h *host) source(route Route) netip.Addr {
	if route.Source.IsValid() {
		return route.Source
	}
	for _, link := range append([]Link{h.links[route.Device]}, h.state.Links...) {
		if len(link.Addresses) > 0 {
			return link.Addresses[0].Addr()
		}
	}
	return netip.Addr{}
}

// visit is a packet's stay at a place.
type visit struct {
	*host
	packet  Packet
	in, out string
	route   Route

	untracked bool
	mark      uint32
	// connection is what the packet belongs to, if it is tracked; reply tells its direction, related that it is an error about it.
	connection     *connection
	reply, related bool
	// why says what dropped it.
	why string
}

// decide passes a packet through the hooks and the routing of its place.
func (v *visit) decide() (Outcome, string) {
	hook := Prerouting
	if v.in == "" {
		hook = Output
		route, local, ok := v.lookup(question{from: v.packet.Source, to: v.packet.Destination})
		if !ok {
			return Dropped, fmt.Sprintf("there is no way to %s", v.packet.Destination)
		}
		switch {
		case v.packet.Source.IsValid():
		case local:
			v.packet.Source = v.packet.Destination
		default:
			v.packet.Source = v.source(route)
		}
		v.route, v.out = route, route.Device
	}
	if !v.pass(hook) {
		return Dropped, v.why
	}
	route, local, ok := v.lookup(question{v.packet.Source, v.packet.Destination, v.in, v.mark})
	if !ok {
		return Dropped, fmt.Sprintf("there is no way to %s", v.packet.Destination)
	}
	v.route, v.out = route, route.Device
	if v.in != "" {
		if why := v.checkSource(v.packet.Source, v.packet.Destination, v.in, v.out); why != "" {
			return Dropped, why
		}
	}
	if local {
		return v.finish(Input, Delivered)
	}
	return v.leave()
}

// leave passes a packet that goes on.
func (v *visit) leave() (Outcome, string) {
	if v.in != "" && !v.forwards(v.in) {
		return Dropped, fmt.Sprintf("%s does not forward", v.in)
	}
	if mtu := v.mtu(); v.packet.Size > mtu {
		return TooLong, fmt.Sprintf("%d bytes are more than %d", v.packet.Size, mtu)
	}
	if v.in != "" && !v.pass(Forward) {
		return Dropped, v.why
	}
	return v.finish(Postrouting, Sent)
}

func (v *visit) finish(hook Hook, outcome Outcome) (Outcome, string) {
	if !v.pass(hook) {
		return Dropped, v.why
	}
	return outcome, ""
}

// mtu is that of the way that was found, in bytes.
func (v *visit) mtu() int {
	mtu := v.links[v.route.Device].MTU
	if v.route.MTU > 0 {
		mtu = min(mtu, v.route.MTU)
	}
	return mtu
}
