package dataplane

import "net/netip"

// tuple is by what the kernel knows the packets of one direction of a connection.
type tuple struct {
	protocol            string
	source, destination netip.AddrPort
}

func (p Packet) tuple() tuple {
	return tuple{p.Protocol, netip.AddrPortFrom(p.Source, p.SourcePort), netip.AddrPortFrom(p.Destination, p.DestinationPort)}
}

func (t tuple) inverse() tuple { return tuple{t.protocol, t.destination, t.source} }

// connection is what a place remembers of a connection: the packets that open it as they came, and the answers as they come. If addresses are
// translated, the one is not the inverse of the other.
type connection struct {
	original, reply tuple
	// answered connections have been seen in both directions.
	answered bool
	// sourceBound and destinationBound say that it is decided what becomes of its addresses.
	sourceBound, destinationBound bool
}

// track finds the connection of a packet, or begins one.
func (v *visit) track() {
	if v.untracked {
		return
	}
	t := v.packet.tuple()
	v.related = v.packet.Quoted != nil
	if v.related {
		t = v.packet.Quoted.tuple().inverse()
	}
	for _, c := range v.connections {
		if c.original == t || c.reply == t {
			v.connection, v.reply = c, c.reply == t && c.original != t
			c.answered = c.answered || v.reply && !v.related
			return
		}
	}
	if !v.related {
		v.connection = &connection{original: t, reply: t.inverse()}
		v.connections = append(v.connections, v.connection)
	}
}

// state is the packet's, in the words of nft.
func (v *visit) state() string {
	switch {
	case v.untracked:
		return StateUntracked
	case v.connection == nil:
		return "invalid"
	case v.related:
		return StateRelated
	case v.connection.answered:
		return StateEstablished
	default:
		return StateNew
	}
}

// target is how packets in the packet's direction look once all their addresses are translated.
func (v *visit) target() tuple {
	if v.reply {
		return v.connection.original.inverse()
	}
	return v.connection.reply.inverse()
}

// translateDestination decides, at the first packet, where a connection goes, and redirects all that belong to it. On the way back this undoes
// what was done to the source.
func (v *visit) translateDestination(nat []base) {
	c := v.connection
	if c == nil {
		return
	}
	if !c.destinationBound && !v.reply {
		c.destinationBound = true
		v.bound(nat, func(to netip.AddrPort) { c.reply.source = withPort(to, c.reply.source) })
	}
	target := v.target()
	if !v.related {
		v.packet.Destination, v.packet.DestinationPort = target.destination.Addr(), target.destination.Port()
		return
	}
	if v.translated(v.reply) {
		quoted := *v.packet.Quoted
		quoted.Source, quoted.SourcePort = target.destination.Addr(), target.destination.Port()
		v.packet.Destination, v.packet.Quoted = target.destination.Addr(), &quoted
	}
}

// translateSource does the same for sources.
func (v *visit) translateSource(nat []base) {
	c := v.connection
	if c == nil {
		return
	}
	if !c.sourceBound && !v.reply {
		c.sourceBound = true
		v.bound(nat, func(to netip.AddrPort) { c.reply.destination = withPort(to, c.reply.destination) })
	}
	target := v.target()
	if !v.related {
		v.packet.Source, v.packet.SourcePort = target.source.Addr(), target.source.Port()
		return
	}
	if v.translated(!v.reply) {
		quoted := *v.packet.Quoted
		quoted.Destination, quoted.DestinationPort = target.source.Addr(), target.source.Port()
		v.packet.Source, v.packet.Quoted = target.source.Addr(), &quoted
	}
}

// translated tells whether the connection's source, or else its destination, is translated: errors about others keep their addresses.
func (v *visit) translated(source bool) bool {
	c := v.connection
	if source {
		return c.original.source != c.reply.destination
	}
	return c.original.destination != c.reply.source
}

// bound runs chains of NAT until one gives an address: the first counts.
func (v *visit) bound(nat []base, bind func(netip.AddrPort)) {
	for _, b := range nat {
		done := false
		v.run(b.table, b.chain, func(to netip.AddrPort) {
			done = true
			bind(to)
		})
		if done {
			return
		}
	}
}

// withPort keeps the port of an address where the new one names none.
func withPort(to, old netip.AddrPort) netip.AddrPort {
	if to.Port() == 0 {
		return netip.AddrPortFrom(to.Addr(), old.Port())
	}
	return to
}
