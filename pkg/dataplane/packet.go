package dataplane

import (
	"fmt"
	"net/netip"
	"strings"
)

// Protocol of a Packet.
const (
	TCP  = "tcp"
	UDP  = "udp"
	ICMP = "icmp"
)

// Packet is a packet of IP.
type Packet struct {
	// Protocol is TCP, UDP or ICMP.
	Protocol string
	// Source may be missing in a packet that a host sends itself: then its route says what it is.
	Source, Destination netip.Addr
	// The ports, or twice the identifier of an ICMP echo.
	SourcePort, DestinationPort uint16
	// Type is ICMP's.
	Type uint16
	// Size is that of the whole packet, in bytes. None may be cut into fragments.
	Size int
	// Segment is, in a packet that opens a connection of TCP, the segment size that its sender offers, in bytes; 0 in all others.
	Segment int
	// Quoted is the packet that an ICMP error is about.
	Quoted *Packet
	// Inner is the packet of the overlay in one of UDP, and MAC the device that it is for.
	Inner *Packet
	MAC   MAC
}

func (p Packet) String() string {
	from, to := netip.AddrPortFrom(p.Source, p.SourcePort).String(), netip.AddrPortFrom(p.Destination, p.DestinationPort).String()
	if p.Protocol == ICMP {
		from, to = p.Source.String(), p.Destination.String()
	}
	text := fmt.Sprintf("%s %s → %s", p.Protocol, from, to)
	if p.Quoted != nil {
		text += fmt.Sprintf(" (about %s)", *p.Quoted)
	}
	return text
}

// answer is what comes back to a packet where it arrived.
func (p Packet) answer() Packet {
	p.Source, p.Destination, p.SourcePort, p.DestinationPort = p.Destination, p.Source, p.DestinationPort, p.SourcePort
	if p.Protocol == ICMP && p.Type == echoRequest {
		p.Type = echoReply
	}
	return p
}

// Place is a network namespace: a node, a gateway, a pod.
type Place string

// Outcome is how a packet leaves a Place.
type Outcome string

// The outcomes.
const (
	// Sent packets leave by the device Out, to the next Place.
	Sent Outcome = "sent"
	// Delivered packets have arrived.
	Delivered Outcome = "delivered"
	// Unpacked ones carry another one that goes on from here.
	Unpacked Outcome = "unpacked"
	// Dropped ones end here; Why says by what.
	Dropped Outcome = "dropped"
	// TooLong ones end here, and their sender is told.
	TooLong Outcome = "too long"
)

// Hop is what happens to a packet in one Place.
type Hop struct {
	Place Place
	// In and Out are the devices by which it comes and goes; empty: from, or to, the Place itself.
	In, Out string
	// Before and After are the packet as it comes and as it goes.
	Before, After Packet
	Outcome       Outcome
	Why           string
}

// Overlay tells whether it is the overlay's outer packet that is at this Hop.
func (h Hop) Overlay() bool { return h.Before.Inner != nil }

func (h Hop) String() string {
	in, out, indent := h.In, h.Out, ""
	if in == "" {
		in = "itself"
	}
	if out == "" {
		out = "itself"
	}
	if h.Overlay() {
		indent = "    "
	}
	text := fmt.Sprintf("%s%s: %s, from %s to %s: %s", indent, h.Place, h.Before, in, out, h.Outcome)
	if after := h.After.String(); after != h.Before.String() {
		text += " as " + after
	}
	if h.Why != "" {
		text += ", " + h.Why
	}
	return text
}

// Trip is the way of a packet, and that of what came back: the answer from where it was delivered, or the ICMP error that its sender is told.
type Trip struct{ There, Back []Hop }

// Arrived returns the last Hop of a way, if the packet was delivered there.
func Arrived(hops []Hop) (Hop, bool) {
	if len(hops) == 0 || hops[len(hops)-1].Outcome != Delivered {
		return Hop{}, false
	}
	return hops[len(hops)-1], true
}

func (t Trip) String() string {
	text := strings.Join(texts(t.There, Hop.String), "\n") + "\n"
	if len(t.Back) > 0 {
		text += "and back:\n" + strings.Join(texts(t.Back, Hop.String), "\n") + "\n"
	}
	return text
}
