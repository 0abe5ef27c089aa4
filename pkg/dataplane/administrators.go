package dataplane

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// What administrators ask for is in tables of its own: so it is told from what the agents need themselves, and goes with the object that asks for it.
const (
	// AdministratorPrefix begins the names of administrators' tables of the firewall.
	AdministratorPrefix = FirewallTable + "/"
	// administratorTables are the first byte of the numbers of administrators' routing tables.
	administratorTables = Protocol
)

// AdministratorTable is the number of an administrator's routing table, by its name.
func AdministratorTable(name string) int {
	sum := sha256.Sum256([]byte(name))
	return administratorTables<<24 | int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])
}

// AllParts stands in State.Kept for all parts of administrators: what they ask for is not known.
const AllParts = "*"

// Keeps tells whether what the kernel has of a part stays as it is.
func (s State) Keeps(part string) bool {
	return part != OwnPart && (slices.Contains(s.Kept, part) || slices.Contains(s.Kept, AllParts))
}

// OwnPart is the part of a State that the agents need themselves.
const OwnPart = ""

// Part tells which part of a State the table is: its own, if it is an administrator's. The kernel may refuse such a part without harm to the others.
func (t Table) Part() string {
	if strings.HasPrefix(t.Name, AdministratorPrefix) {
		return "table " + t.Name
	}
	return OwnPart
}

// Part tells which part of a State the route is.
func (r Route) Part() string { return routingPart(r.Table) }

// Part tells which part of a State the rule is: that of the routes to which it leads.
func (r Rule) Part() string { return routingPart(r.Table) }

func routingPart(table int) string {
	if table>>24 == administratorTables {
		return fmt.Sprintf("routing table %d", table)
	}
	return OwnPart
}

// TakesOwn says why a rule of an administrator would take from a gateway what it needs itself, or never take anything; empty if neither.
func (r Rule) TakesOwn() string {
	switch {
	case r.Priority > gatewayLocalRule:
		return ""
	case r.In != GatewayDevice && r.In != TunnelDevice:
		return fmt.Sprintf("in a gateway, a rule of priority %d or less comes before the gateway's own addresses are looked up, "+
			"so it has to say that packets came by %s or %s (iif)",
			gatewayLocalRule, GatewayDevice, TunnelDevice)
	case r.In == TunnelDevice && (!r.To.IsValid() || r.To.Overlaps(tunnelLink)):
		return fmt.Sprintf("in a gateway, a rule for what came by %s has to say where it goes (dst), "+
			"and leave out %s, by which the ends of the tunnel ask each other", TunnelDevice, tunnelLink)
	default:
		return ""
	}
}

// TakesPeers tells whether a chain of a node would translate addresses of packets to peers before the agent's own does, which then does not: of
// several, the first counts.
func (c Chain) TakesPeers() bool {
	if !c.NAT || c.Hook != Postrouting || c.Priority >= PrioritySrcNAT {
		return false
	}
	for _, rule := range c.Rules {
		others := false
		for _, m := range rule.Match {
			others = others || m.Field == OutDevice && m.Not == (m.Device == NodeDevice)
		}
		if !others {
			return true
		}
	}
	return false
}

// Ends are the first and the last address of a prefix.
func Ends(prefix netip.Prefix) (first, last netip.Addr) {
	raw := prefix.Masked().Addr().AsSlice()
	for i := range raw {
		bits := max(0, min(8, prefix.Bits()-8*i))
		raw[i] |= byte(0xff >> bits)
	}
	last, _ = netip.AddrFromSlice(raw)
	return prefix.Masked().Addr(), last
}
