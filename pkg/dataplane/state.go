package dataplane

import (
	"encoding/base64"
	"fmt"
	"net/netip"
)

// Names and numbers by which what is ours is told from what is not.
const (
	// NodeDevice is the VXLAN device of a node. Calico and Cilium leave alone devices whose names begin with "cni".
	NodeDevice = "cni-liqo"
	// GatewayDevice is the VXLAN device of a gateway.
	GatewayDevice = "liqo"
	// TunnelDevice is the WireGuard device of a gateway. Further tunnels side by side will add a number.
	TunnelDevice = "liqo-tunnel"
	// FirewallTable is the name of our table of nftables.
	FirewallTable = "liqo"
	// Protocol marks our routes and rules in the kernel.
	Protocol = 79
	// VNI is the network identifier of the overlay between the nodes and gateways of a cluster.
	VNI = 5163
	// DefaultOverlayPort is the UDP port of the overlay: the chart's value genevePort, whose name is older than the encapsulation.
	DefaultOverlayPort = 6091
	// OverlaySource is the first of the UDP ports that the overlay sends from, OverlaySources how many there are: enough to spread what nodes and
	// network cards do by them. For each pair of hosts, all nodes on the way remember a connection for each; the kernel's own range has 28232, among
	// which what a peer opens would spread.
	OverlaySource  = 49152
	OverlaySources = 64
)

// Routing tables and the priorities of the rules that lead to them.
const (
	// FormerTable had, on a node, the ways to the peers, behind a rule: what is left there of an older version goes.
	FormerTable = 5163
	// InsideTable has, in a gateway, the ways to this cluster's pods.
	InsideTable = 101
	// OutsideTable has, in a gateway, the way to the peer.
	OutsideTable = 102
	// LocalTable is the kernel's own, of the host's addresses, asked before all rules of others. On a node it has the ways to peers, too.
	LocalTable = 255
	// MainTable is the kernel's own, of all other ways.
	MainTable = 254

	linkPriority, insidePriority, outsidePriority, gatewayLocalRule = 100, 101, 102, 103
	// answersPriority is that of what a gateway says itself to who asks it.
	answersPriority = 104
)

// AskedPort is the TCP port, discard, at which nodes ask a gateway. Nobody listens there: the kernel's refusal is the answer.
const AskedPort = 9

// askedMark is what a gateway marks such packets with: its address towards peers can be one of the peer's own, too, which packets go to once they
// are translated.
const askedMark = 0x4f

// Sizes, in bytes.
const (
	// Padding is what WireGuard fills up packets to a multiple of, in bytes, as far as the MTU of its device lets it.
	Padding = 16
	// TunnelOverhead4 is what WireGuard adds to a packet over IPv4: IP (20), UDP (8) and its own message (32).
	TunnelOverhead4 = 60
	// TunnelOverhead6 is that over IPv6, whose header has 40.
	TunnelOverhead6 = 80
	// OverlayOverhead4 is what VXLAN adds to a packet over IPv4: IP (20), UDP (8), VXLAN (8) and Ethernet (14).
	OverlayOverhead4 = 50
	// headers4 are those of IPv4 and TCP without options: what a segment is smaller than its packet.
	headers4 = 40
)

// keepalive is how often a tunnel sends something, in seconds: more often than common NATs forget (30 s, RFC 4787 asks for 120).
const keepalive = 25

// State is all that one agent owns in one network namespace.
type State struct {
	// Links are in the order in which they came.
	Links     []Link
	Neighbors []Neighbor
	Routes    []Route
	Rules     []Rule
	Firewall  []Table
	Peers     []Peer
	Devices   []Setting
	// Kept are parts of administrators that cannot be carried out: what the kernel has of them stays as it is.
	Kept []string
}

// LinkKind is the kernel's name for a sort of device.
type LinkKind string

// The sorts of devices. Of these, the agents make the first two.
const (
	VXLAN     LinkKind = "vxlan"
	WireGuard LinkKind = "wireguard"
	// Ethernet is any device of a node or pod that leads to others on the same Wire. It stands in worlds that Walk interprets.
	Ethernet LinkKind = "ethernet"
)

// Link is a network device with its addresses.
type Link struct {
	Name string
	Kind LinkKind
	// MTU is the largest packet that the device takes, in bytes.
	MTU int
	// Addresses are those of the device, each with the length of the prefix that is reached through it.
	Addresses []netip.Prefix

	// MAC, Local (the source of outer packets, to which those of others come), VNI and Port belong to VXLAN.
	MAC   MAC
	Local netip.Addr
	VNI   int
	// Port is the UDP port of VXLAN, or the one that WireGuard listens at (0: any).
	Port uint16
	// Key is the public key of a WireGuard device. The private one is no part of a State.
	Key Key

	// Wire names what an Ethernet device is attached to: devices on the same one hear each other.
	Wire string
}

// MAC is a hardware address.
type MAC [6]byte

func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// macOf makes the MAC of a VXLAN device of the IPv4 address that its outer packets go to, so that nobody has to be asked for it.
func macOf(address netip.Addr) MAC {
	raw := address.As4()
	return MAC{0x02, 0x6c, raw[0], raw[1], raw[2], raw[3]}
}

// Key is a public key of WireGuard.
type Key [32]byte

func (k Key) String() string { return base64.StdEncoding.EncodeToString(k[:]) }

// Neighbor is a permanent neighbour of a VXLAN device: the hardware address behind a next hop, and where packets for it are sent.
type Neighbor struct {
	Device  string
	Address netip.Addr
	MAC     MAC
	// VTEP is where the outer packets go.
	VTEP netip.Addr
}

// Route is an entry of a routing table.
type Route struct {
	Table       int
	Destination netip.Prefix
	// Blackhole routes end packets; they have no Device.
	Blackhole bool
	Device    string
	// Via is the next hop, which is reached through Device without further question; none if the destination itself is.
	Via netip.Addr
	// Source is the address of packets that this host sends this way, unless they have one already.
	Source netip.Addr
	// MTU of the way in bytes; 0: the device's.
	MTU int

	// Near and Scope are for administrators' routes, as is a next hop without Device, for which the kernel finds one. Near tells that the next
	// hop has to be reachable already; Scope is how far away the destination is, if that is another one than usual.
	Near  bool
	Scope Scope
}

// Scope is how far away a destination is, in the words of ip.
type Scope string

// The scopes.
const (
	ScopeGlobal  Scope = "global"
	ScopeSite    Scope = "site"
	ScopeLink    Scope = "link"
	ScopeHost    Scope = "host"
	ScopeNowhere Scope = "nowhere"
)

// UsualScope is the one that the route has if nothing else is said.
func (r Route) UsualScope() Scope {
	if r.Via.IsValid() || r.Blackhole {
		return ScopeGlobal
	}
	return ScopeLink
}

// Rule says which packets look for their way in which table.
type Rule struct {
	Priority int
	// In is the device that packets came in by, To the prefix that they go to; empty: any.
	In    string
	To    netip.Prefix
	Table int
	// From is the prefix that packets come from, Mark their mark; empty and 0: any.
	From netip.Prefix
	Mark uint32
	// Out is for administrators' rules: the device that packets of this host are bound to; empty: any.
	Out string
	// Absent rules must not be there. It is meant for the kernel's own rule 0, which would come before ours.
	Absent bool
}

// Peer is the other end of a tunnel.
type Peer struct {
	Device string
	Key    Key
	// Endpoint is where it is reached; none if it has to come to us first.
	Endpoint netip.AddrPort
	// Allowed are the addresses that may come from it and that are sent to it.
	Allowed []netip.Prefix
	// Keepalive is how often something is sent, in seconds.
	Keepalive int
}

// Setting is a number that a device is given, by the kernel's name for it.
type Setting struct {
	Device string
	Name   string
	Value  int
}

const (
	// forwarding is the setting that lets packets that came in by a device go on.
	forwarding = "forwarding"
	// reversePath is the setting that has sources checked. The agents leave it as it is: what they make passes with any value.
	reversePath = "rp_filter"
)

// Problem is something in an input that cannot be carried out.
type Problem struct {
	Kind ProblemKind
	// Message says what, for the user who reads a condition.
	Message string
}

// ProblemKind sorts Problems.
type ProblemKind string

const (
	// ProblemOverlap is when two ranges that must differ overlap.
	ProblemOverlap ProblemKind = "Overlap"
	// ProblemFamily is when a range or address is not of IPv4, which is all that is carried.
	ProblemFamily ProblemKind = "Family"
	// ProblemInvalid is when an object says what cannot be read, or what may not be.
	ProblemInvalid ProblemKind = "Invalid"
)
