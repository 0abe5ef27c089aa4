package dataplane

import (
	"fmt"
	"net/netip"
	"slices"
)

// pass runs a packet through a hook: its chains, and in between the kernel's table of connections and the translation of addresses.
func (v *visit) pass(hook Hook) bool {
	var nat []base
	var before, between, after []base
	core := map[Hook]int{Prerouting: PriorityDstNAT, Output: PriorityDstNAT, Input: PrioritySrcNAT, Postrouting: PrioritySrcNAT}[hook]
	tracking := hook == Prerouting || hook == Output
	for _, b := range v.hooks[hook] {
		switch {
		case b.chain.NAT:
			nat = append(nat, b)
		case tracking && b.chain.Priority < priorityConntrack:
			before = append(before, b)
		case b.chain.Priority < core || hook == Forward:
			between = append(between, b)
		default:
			after = append(after, b)
		}
	}
	if !v.filter(before) {
		return false
	}
	if tracking {
		v.track()
	}
	if !v.filter(between) {
		return false
	}
	switch hook {
	case Prerouting, Output:
		v.translateDestination(nat)
	case Input, Postrouting:
		v.translateSource(nat)
	}
	return v.filter(after)
}

// filter runs base chains; accepted by one, a packet still has to pass the next.
func (v *visit) filter(chains []base) bool {
	for _, b := range chains {
		if v.run(b.table, b.chain, nil) == Drop {
			return false
		}
	}
	return true
}

// What a statement leads to, besides Accept, Drop and Return.
const (
	nextStatement Do = ""
	nextRule      Do = "next rule"
)

// run follows a chain: Accept, Drop, or nothing at its end. In chains of NAT, bind is given the new address.
func (v *visit) run(table *Table, chain Chain, bind func(netip.AddrPort)) Do {
	for _, rule := range chain.Rules {
		if !v.matches(table, rule.Match) {
			continue
		}
		counter := ""
		for _, statement := range rule.Do {
			if statement.Do == Count {
				counter = " as " + statement.Name
			}
			step := v.apply(table, statement, bind)
			if step == Drop && v.why == "" {
				v.why = fmt.Sprintf("chain %s of table %s drops it%s", chain.Name, table.Name, counter)
			}
			if step == nextRule {
				break
			}
			if step == Return {
				return ""
			}
			if step != nextStatement {
				return step
			}
		}
	}
	return ""
}

// apply does one thing with the packet, and says how its chain goes on.
func (v *visit) apply(table *Table, s Statement, bind func(netip.AddrPort)) Do {
	switch s.Do {
	case Accept, Drop, Return:
		return s.Do
	case RateOver, CountOver:
		return nextRule
	case Goto:
		return v.gone(table, s.Name, bind)
	case Jump:
		return v.run(table, table.chain(s.Name), bind)
	case SNAT, DNAT, Masquerade:
		return v.bind(s, bind)
	default:
		return v.write(table, s)
	}
}

// gone follows a chain from which nothing comes back.
func (v *visit) gone(table *Table, chain string, bind func(netip.AddrPort)) Do {
	if verdict := v.run(table, table.chain(chain), bind); verdict != "" {
		return verdict
	}
	return Return
}

// write changes the packet.
func (v *visit) write(table *Table, s Statement) Do {
	switch s.Do {
	case Notrack:
		v.untracked = true
	case Mark:
		v.mark = s.Mark
	case Rewrite:
		if address := v.address(s.Field); address != nil {
			*address = graft(*address, s.Prefix)
		}
	case Lookup:
		address := v.address(s.Field)
		value, ok := table.value(s.Name, *address)
		if !ok {
			return nextRule
		}
		*address = value
	case Clamp:
		size := s.Size
		if size == 0 {
			size = v.mtu() - headers4
		}
		v.packet.Segment = min(v.packet.Segment, size)
	}
	return nextStatement
}

// bind gives a connection another address.
func (v *visit) bind(s Statement, bind func(netip.AddrPort)) Do {
	to := s.Address
	switch {
	case s.Do == Masquerade:
		to = netip.AddrPortFrom(v.host.source(Route{Device: v.out}), 0)
	case s.Field == Source:
		to = netip.AddrPortFrom(v.packet.Source, 0)
	}
	bind(to)
	return Accept
}

// address is the field of the packet that a statement is about; nil if the packet has none. What an error quotes is copied before: others
// hold it too.
func (v *visit) address(field Field) *netip.Addr {
	switch field {
	case Source:
		return &v.packet.Source
	case Destination:
		return &v.packet.Destination
	}
	if v.packet.Quoted == nil {
		return nil
	}
	quoted := *v.packet.Quoted
	v.packet.Quoted = &quoted
	if field == QuotedSource {
		return &quoted.Source
	}
	return &quoted.Destination
}

func (v *visit) matches(table *Table, all []Match) bool {
	for _, m := range all {
		is, applies := v.is(table, m)
		if !applies || is == m.Not {
			return false
		}
	}
	return true
}

// is tells whether a condition is met, Not aside; a packet without the field meets neither it nor its opposite.
func (v *visit) is(table *Table, m Match) (is, applies bool) {
	p := v.packet
	switch m.Field {
	case InDevice:
		return v.in == m.Device, true
	case OutDevice:
		return v.out == m.Device, true
	case ConnectionState:
		return slices.Contains(m.States, v.state()), true
	case Confirmed:
		return false, true // Walk sends one packet.
	case UDPPort:
		return m.Number == p.DestinationPort, p.Protocol == UDP
	case TCPPort:
		return m.Number == p.DestinationPort, p.Protocol == TCP
	case ICMPType:
		return m.Number == p.Type, p.Protocol == ICMP
	case Opening:
		return p.Segment > 0, p.Protocol == TCP
	case OriginalDestination:
		if v.connection == nil {
			return false, false
		}
		return table.holds(m, v.connection.original.destination.Addr()), true
	}
	if address := v.address(m.Field); address != nil {
		return table.holds(m, *address), true
	}
	return false, false
}

// holds tells whether an address is in the prefix or the set of a condition.
func (t *Table) holds(m Match, address netip.Addr) bool {
	if m.Set == "" {
		return m.Prefix.Contains(address)
	}
	for _, set := range t.Sets {
		if set.Name == m.Set {
			return slices.ContainsFunc(set.Elements, func(p netip.Prefix) bool { return p.Contains(address) })
		}
	}
	return false
}

// value is what a map has for an address.
func (t *Table) value(name string, address netip.Addr) (netip.Addr, bool) {
	for _, m := range t.Maps {
		if m.Name != name {
			continue
		}
		for _, element := range m.Elements {
			if element.Key == address {
				return element.Value, true
			}
		}
	}
	return netip.Addr{}, false
}

func (t *Table) chain(name string) Chain {
	i := slices.IndexFunc(t.Chains, func(c Chain) bool { return c.Name == name })
	if i < 0 {
		return Chain{}
	}
	return t.Chains[i]
}
