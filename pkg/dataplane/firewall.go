package dataplane

import "net/netip"

// Table is a table of nftables.
type Table struct {
	// Family is the kernel's name for the packets that pass it: "ip", "ip6", or "inet" for both.
	Family string
	Name   string
	// Counters are the names of those that rules count on.
	Counters []string
	Sets     []Set
	Maps     []Map
	Chains   []Chain
}

// withoutIPv6 drops what comes by our devices and is of IPv6, which nothing of ours carries: a router's advertisement would change the routes of a
// node that has it enabled.
func withoutIPv6(devices ...string) Table {
	var rules []ChainRule
	for _, device := range devices {
		rules = append(rules, when(iif(device)).drop(counterForeign))
	}
	return Table{
		Family: "ip6", Name: FirewallTable, Counters: []string{counterForeign},
		Chains: []Chain{{Name: "prerouting", Hook: Prerouting, Priority: PriorityRaw, Rules: rules}},
	}
}

// Set is a named set of addresses.
type Set struct {
	Name string
	// Interval sets hold prefixes, which do not overlap; others hold single addresses.
	Interval bool
	Elements []netip.Prefix
}

// Map is a named map from single addresses to single addresses.
type Map struct {
	Name     string
	Elements []Element
}

// Element is an entry of a Map.
type Element struct{ Key, Value netip.Addr }

// Hook is where the kernel calls a chain.
type Hook string

// The hooks, in the order in which a packet passes them. A chain without one is called by others.
const (
	Prerouting  Hook = "prerouting"
	Input       Hook = "input"
	Forward     Hook = "forward"
	Output      Hook = "output"
	Postrouting Hook = "postrouting"
)

// The kernel's priorities of chains in a hook.
const (
	PriorityRaw       = -300
	priorityConntrack = -200
	PriorityDstNAT    = -100
	PriorityFilter    = 0
	PrioritySrcNAT    = 100
)

// Chain is a list of rules. Packets that pass it to its end go on.
type Chain struct {
	Name string
	// Hook and Priority say when the kernel calls the chain; lower priorities come first.
	Hook     Hook
	Priority int
	// NAT chains see the first packet of each connection only.
	NAT bool
	// Drops tells that packets do not go on at its end.
	Drops bool
	Rules []ChainRule
}

// ChainRule is a rule of a chain: what is done, in order, with packets that match all.
type ChainRule struct {
	Match []Match
	Do    []Statement
}

// Field is what of a packet, or of its connection, is looked at or written, in the words of nft.
type Field string

// The fields.
const (
	InDevice    Field = "iifname"
	OutDevice   Field = "oifname"
	Source      Field = "ip saddr"
	Destination Field = "ip daddr"
	// OriginalDestination is where the first packet of the connection went before it was redirected.
	OriginalDestination Field = "ct original ip daddr"
	ConnectionState     Field = "ct state"
	// Confirmed are packets of connections that the kernel remembers already, be they answered or not.
	Confirmed Field = "ct status confirmed"
	UDPPort   Field = "udp dport"
	TCPPort   Field = "tcp dport"
	ICMPType  Field = "icmp type"
	// Opening are the packets that open a connection of TCP, in both directions.
	Opening Field = "tcp flags syn / syn,rst"
	// QuotedSource and QuotedDestination are in the packet that an ICMP error tells of. nft has no word for them.
	QuotedSource      Field = "icmp quoted saddr"
	QuotedDestination Field = "icmp quoted daddr"
)

// Fields that only administrators' rules look at. Walk does not know them.
const (
	Source6      Field = "ip6 saddr"
	Destination6 Field = "ip6 daddr"
	UDPSource    Field = "udp sport"
	TCPSource    Field = "tcp sport"
	// Transport is the protocol in a packet, by its number.
	Transport Field = "meta l4proto"
)

// The states of a connection that a packet can be in.
const (
	StateNew         = "new"
	StateEstablished = "established"
	// StateRelated is that of ICMP errors about a connection.
	StateRelated = "related"
	// StateUntracked is that of packets on which Notrack was done.
	StateUntracked = "untracked"
)

// Match is a condition on one field. At most one of Device, Prefix, Set, States and Number says what the field must be; without one, the
// field alone is the condition.
type Match struct {
	Field Field
	// Not turns the answer around.
	Not    bool
	Device string
	Prefix netip.Prefix
	Set    string
	States []string
	// Number is a port, or a type of ICMP.
	Number uint16

	// First and Last are a range of addresses, of the family that the field is of, and Through the last port of a range that begins with Number.
	// Only administrators' rules have them.
	First, Last netip.Addr
	Through     uint16
}

// Do is what a Statement does.
type Do string

// What can be done with a packet. The first four end the rule; Goto and Jump lead to another chain, Jump comes back from its end.
const (
	Accept Do = "accept"
	Drop   Do = "drop"
	Return Do = "return"
	Goto   Do = "goto"
	Jump   Do = "jump"
	// Count adds to a counter.
	Count Do = "counter"
	// Mark marks the packet.
	Mark Do = "meta mark set"
	// Notrack keeps the packet out of the kernel's table of connections.
	Notrack Do = "notrack"
	// Rewrite puts the bits of a prefix before the host bits of an address.
	Rewrite Do = "rewrite"
	// Lookup replaces an address by what a map has for it; where the map has nothing the rule ends.
	Lookup Do = "lookup"
	// SNAT and DNAT give a connection another source or destination. SNAT to the field Source gives it the one that it has, which keeps it from
	// being given another one.
	SNAT Do = "snat"
	DNAT Do = "dnat"
	// RateOver and CountOver go on with the rule alone when too many connections begin at a time, or too many that began by the rule are there. Walk,
	// which knows one packet, never finds too many.
	RateOver  Do = "limit rate over"
	CountOver Do = "ct count over"
	// Masquerade is SNAT to the address of the device that the packet leaves by.
	Masquerade Do = "masquerade"
	// Clamp bounds the segment size that an end of a TCP connection offers.
	Clamp Do = "maxseg"
)

// What only administrators' rules do. Walk does not know it.
const (
	// Reject drops the packet and tells its sender, by the sort of ICMP that has the Name.
	Reject Do = "reject"
	// MarkConnection marks the connection, MarkPacket the packet as its connection is marked.
	MarkConnection Do = "ct mark set"
	MarkPacket     Do = "meta mark set ct mark"
)

// RejectedBy are the sorts of ICMP by which a sender is told, by the family of the table.
var RejectedBy = map[string]string{"ip": "icmp", "ip6": "icmpv6", "inet": "icmpx"}

// Statement is one thing that a rule does.
type Statement struct {
	Do Do
	// Name is that of the chain, counter or map. A counter without one is the rule's own.
	Name string
	// Field is the address that Rewrite, Lookup and SNAT are about.
	Field Field
	// Prefix is what Rewrite puts before an address; in SNAT and DNAT it takes the place of Address, and the host bits stay.
	Prefix netip.Prefix
	// Address is for SNAT and DNAT; port 0 leaves the port as it is.
	Address netip.AddrPort
	// Size is the bound of Clamp in bytes; 0: what the MTU of the way leaves. Of CountOver it is that of connections, of RateOver that of connections in
	// a second, of which twice as many may begin at once.
	Size int
	// Mark is for Mark and MarkConnection.
	Mark uint32
}

// The words in which the agents write rules.

func iif(device string) Match { return Match{Field: InDevice, Device: device} }
func oif(device string) Match { return Match{Field: OutDevice, Device: device} }

func in(field Field, set string) Match    { return Match{Field: field, Set: set} }
func notIn(field Field, set string) Match { return Match{Field: field, Set: set, Not: true} }

func within(field Field, prefix netip.Prefix) Match { return Match{Field: field, Prefix: prefix} }

func state(states ...string) Match { return Match{Field: ConnectionState, States: states} }

func port(port uint16) Match { return Match{Field: UDPPort, Number: port} }

func icmp(kind uint16) Match { return Match{Field: ICMPType, Number: kind} }

func when(matches ...Match) ChainRule { return ChainRule{Match: matches} }

func (r ChainRule) do(statements ...Statement) ChainRule {
	r.Do = statements
	return r
}

func (r ChainRule) accept() ChainRule { return r.do(Statement{Do: Accept}) }

func (r ChainRule) drop(counter string) ChainRule {
	return r.do(Statement{Do: Count, Name: counter}, Statement{Do: Drop})
}

// dropOver drops what is over a bound.
func (r ChainRule) dropOver(do Do, bound int, counter string) ChainRule {
	return r.do(Statement{Do: do, Size: bound}, Statement{Do: Count, Name: counter}, Statement{Do: Drop})
}

func (r ChainRule) goTo(chain string) ChainRule { return r.do(Statement{Do: Goto, Name: chain}) }

func (r ChainRule) clamp(size int) ChainRule { return r.do(Statement{Do: Clamp, Size: size}) }
