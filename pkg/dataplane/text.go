package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// String returns the State in the commands of ip, bridge, wg, sysctl and nft that would make it, a line each and in a fixed order. Private
// keys are not in it. Rules that nft has no words for are comments.
func (s State) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for _, link := range s.Links {
		line("%s", link)
		for _, address := range link.Addresses {
			line("ip addr add %s dev %s", address, link.Name)
		}
	}
	for _, setting := range s.Devices {
		line("sysctl -w net/ipv4/conf/%s/%s=%d", setting.Device, setting.Name, setting.Value)
	}
	for _, neighbor := range s.Neighbors {
		line("ip neigh replace %s lladdr %s dev %s nud permanent", neighbor.Address, neighbor.MAC, neighbor.Device)
		line("bridge fdb replace %s dst %s dev %s self permanent", neighbor.MAC, neighbor.VTEP, neighbor.Device)
	}
	for _, peer := range s.Peers {
		line("%s", peer)
	}
	for _, route := range s.Routes {
		line("%s", route)
	}
	for _, rule := range s.Rules {
		line("%s", rule)
	}
	for _, table := range s.Firewall {
		table.write(line)
	}
	return b.String()
}

func (l Link) String() string {
	text := fmt.Sprintf("ip link add %s mtu %d", l.Name, l.MTU)
	switch l.Kind {
	case VXLAN:
		return text + fmt.Sprintf(" address %s type vxlan id %d dstport %d srcport %d %d local %s nolearning noudpcsum",
			l.MAC, l.VNI, l.Port, OverlaySource, OverlaySource+OverlaySources, l.Local)
	case WireGuard:
		return text + fmt.Sprintf(" type wireguard\nwg set %s listen-port %d # public key %s", l.Name, l.Port, l.Key)
	default:
		return fmt.Sprintf("ip link set %s mtu %d # on %s", l.Name, l.MTU, l.Wire)
	}
}

func (p Peer) String() string {
	text := fmt.Sprintf("wg set %s peer %s", p.Device, p.Key)
	if p.Endpoint.IsValid() {
		text += " endpoint " + p.Endpoint.String()
	}
	return text + fmt.Sprintf(" persistent-keepalive %d allowed-ips %s", p.Keepalive, join(p.Allowed, ","))
}

func (r Route) String() string {
	to := r.Destination.String()
	if r.Destination.Bits() == 0 {
		to = "default"
	}
	if r.Blackhole {
		return fmt.Sprintf("ip route replace blackhole %s table %d protocol %d", to, r.Table, Protocol)
	}
	text := "ip route replace " + to
	if r.Via.IsValid() {
		text += " via " + r.Via.String()
	}
	if r.Device != "" {
		text += " dev " + r.Device
	}
	if r.Via.IsValid() && !r.Near {
		text += " onlink"
	}
	if r.Scope != "" {
		text += " scope " + string(r.Scope)
	}
	if r.Source.IsValid() {
		text += " src " + r.Source.String()
	}
	if r.MTU > 0 {
		text += fmt.Sprintf(" mtu %d", r.MTU)
	}
	return text + fmt.Sprintf(" table %d protocol %d", r.Table, Protocol)
}

func (r Rule) String() string {
	selector := fmt.Sprintf(" pref %d", r.Priority)
	if r.To.IsValid() {
		selector += " to " + r.To.String()
	}
	if r.From.IsValid() {
		selector += " from " + r.From.String()
	}
	if r.In != "" {
		selector += " iif " + r.In
	}
	if r.Out != "" {
		selector += " oif " + r.Out
	}
	if r.Mark != 0 {
		selector += fmt.Sprintf(" fwmark %#x", r.Mark)
	}
	if r.Absent {
		return "ip rule del" + selector + fmt.Sprintf(" lookup %d", r.Table)
	}
	return "ip rule add" + selector + fmt.Sprintf(" lookup %d protocol %d", r.Table, Protocol)
}

func (t Table) write(line func(format string, args ...any)) {
	line("table %s %s {", t.Family, t.Name)
	for _, counter := range t.Counters {
		line("\tcounter %s { }", counter)
	}
	for _, set := range t.Sets {
		line("\tset %s { type ipv4_addr;%s }", set.Name, elements(set.Interval, texts(set.Elements, set.text())))
	}
	for _, m := range t.Maps {
		line("\tmap %s { type ipv4_addr : ipv4_addr;%s }", m.Name, elements(false, texts(m.Elements, Element.String)))
	}
	for _, chain := range t.Chains {
		line("\tchain %s {", chain.Name)
		if chain.Hook != "" {
			kind := "filter"
			if chain.NAT {
				kind = "nat"
			}
			policy := ""
			if chain.Drops {
				policy = " policy drop;"
			}
			line("\t\ttype %s hook %s priority %d;%s", kind, chain.Hook, chain.Priority, policy)
		}
		for _, rule := range chain.Rules {
			line("\t\t%s", rule)
		}
		line("\t}")
	}
	line("}")
}

func (s Set) text() func(netip.Prefix) string {
	return func(p netip.Prefix) string { return element(s.Interval, p) }
}

func (e Element) String() string { return e.Key.String() + " : " + e.Value.String() }

// element is a prefix where there are prefixes, and else an address.
func element(interval bool, prefix netip.Prefix) string {
	if interval {
		return prefix.String()
	}
	return prefix.Addr().String()
}

func elements(interval bool, all []string) string {
	text := ""
	if interval {
		text = " flags interval;"
	}
	if len(all) > 0 {
		text += " elements = { " + strings.Join(all, ", ") + " };"
	}
	return text
}

func texts[T any](values []T, text func(T) string) []string {
	all := make([]string, 0, len(values))
	for _, value := range values {
		all = append(all, text(value))
	}
	return all
}

func join[T fmt.Stringer](values []T, separator string) string {
	return strings.Join(texts(values, T.String), separator)
}

func (r ChainRule) String() string {
	words := append(texts(r.Match, Match.String), texts(r.Do, Statement.String)...)
	text := strings.Join(words, " ")
	if slices.ContainsFunc(r.Match, func(m Match) bool { return m.Field == QuotedSource || m.Field == QuotedDestination }) {
		return "# " + text
	}
	return text
}

func (m Match) String() string {
	text := string(m.Field)
	if m.Not {
		text += " !="
	}
	switch {
	case m.Device != "":
		return text + fmt.Sprintf(" %q", m.Device)
	case m.Set != "":
		return text + " @" + m.Set
	case m.Prefix.IsValid():
		return text + " " + m.Prefix.String()
	case m.First.IsValid():
		return text + fmt.Sprintf(" %s-%s", m.First, m.Last)
	case m.Through != 0:
		return text + fmt.Sprintf(" %d-%d", m.Number, m.Through)
	case len(m.States) > 0:
		return text + " " + strings.Join(m.States, ",")
	case m.Number != 0 || m.Field == UDPPort || m.Field == TCPPort || m.Field == ICMPType:
		return text + fmt.Sprintf(" %d", m.Number)
	default:
		return text
	}
}

func (s Statement) String() string {
	switch s.Do {
	case Goto, Jump:
		return string(s.Do) + " " + s.Name
	case Count:
		if s.Name == "" {
			return "counter"
		}
		return "counter name " + s.Name
	case Reject:
		return fmt.Sprintf("reject with %s port-unreachable", s.Name)
	case Mark, MarkConnection:
		return fmt.Sprintf("%s %#x", s.Do, s.Mark)
	case Rewrite:
		hostBits := graft(netip.AddrFrom4([4]byte{255, 255, 255, 255}), netip.PrefixFrom(netip.IPv4Unspecified(), s.Prefix.Bits()))
		return fmt.Sprintf("%s set %s & %s | %s", s.Field, s.Field, hostBits, s.Prefix.Addr())
	case Lookup:
		return fmt.Sprintf("%s set %s map @%s", s.Field, s.Field, s.Name)
	case SNAT, DNAT:
		if s.Prefix.IsValid() {
			return fmt.Sprintf("%s prefix to %s", s.Do, s.Prefix)
		}
		if s.Field != "" {
			return fmt.Sprintf("%s to %s", s.Do, s.Field)
		}
		return fmt.Sprintf("%s to %s", s.Do, target(s.Address))
	case RateOver:
		return fmt.Sprintf("%s %d/second burst %d packets", s.Do, s.Size, 2*s.Size)
	case CountOver:
		return fmt.Sprintf("%s %d", s.Do, s.Size)
	case Clamp:
		if s.Size == 0 {
			return "tcp option maxseg size set rt mtu"
		}
		return fmt.Sprintf("tcp option maxseg size set %d", s.Size)
	default:
		return string(s.Do)
	}
}

func target(address netip.AddrPort) string {
	if address.Port() == 0 {
		return address.Addr().String()
	}
	return address.String()
}

// graft puts the bits of a prefix before the host bits of an address of the same family, as Rewrite does.
func graft(address netip.Addr, prefix netip.Prefix) netip.Addr {
	host, network := address.AsSlice(), prefix.Addr().AsSlice()
	for bit := range prefix.Bits() {
		mask := byte(0x80 >> (bit % 8))
		host[bit/8] = host[bit/8]&^mask | network[bit/8]&mask
	}
	moved, _ := netip.AddrFromSlice(host)
	return moved
}
