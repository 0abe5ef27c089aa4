package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Batches of `ip -batch` and rulesets of `nft -f`, as text: what is applied is
// what golden files show.

// renderSwitch builds the bridge and the host's way to it, run in the host's namespace.
func (p Plan) renderSwitch() string {
	var b strings.Builder
	fmt.Fprintf(&b, "link add %s type veth peer name p0 netns %s\n", p.HostInterface(), p.Switch())
	fmt.Fprintf(&b, "addr add %s/%d dev %s\n", p.HostAddress(), p.hostBits(), p.HostInterface())
	fmt.Fprintf(&b, "link set %s up\n", p.HostInterface())
	if p.Routed {
		fmt.Fprintf(&b, "route add %s via %s\n", p.Subnet, p.hostGateway())
	}
	return b.String()
}

// renderBridge runs in the switch's namespace.
func (p Plan) renderBridge() string {
	if p.Routed {
		return p.renderRouter()
	}
	return "link set lo up\n" +
		"link add br0 type bridge stp_state 0 forward_delay 0\n" +
		"link set br0 up\n" +
		"link set p0 master br0\n" +
		"link set p0 up\n"
}

// renderRouter does the same for a routed lab.
func (p Plan) renderRouter() string {
	var b strings.Builder
	b.WriteString("link set lo up\n")
	fmt.Fprintf(&b, "addr add %s/%d dev p0\n", p.hostGateway(), p.hostBits())
	b.WriteString("link set p0 up\n")
	for _, e := range p.networks() {
		fmt.Fprintf(&b, "link add %s type bridge stp_state 0 forward_delay 0\n", e.Bridge)
		fmt.Fprintf(&b, "addr add %s/%d dev %s\n", e.Gateway, e.Subnet.Bits(), e.Bridge)
		fmt.Fprintf(&b, "link set %s up\n", e.Bridge)
	}
	for _, from := range p.networks() { // The tables are empty but for slow links.
		for _, to := range p.networks() {
			if from.Cluster != to.Cluster {
				fmt.Fprintf(&b, "rule add pref 50 iif %s to %s lookup %s\n", from.Bridge, to.Subnet, p.delayed(from.Cluster, to.Cluster))
			}
		}
	}
	return b.String()
}

// renderRelays makes the devices of the faults' relays, and removes others; there are those that the switch's namespace has already.
func (p Plan) renderRelays(faults []Fault, there map[string]bool) string {
	var b strings.Builder
	wanted := map[string]bool{}
	for _, f := range faults {
		relay, needed := p.Relay(f)
		if !needed {
			continue
		}
		wanted[relay.Device] = true
		if !there[relay.Device] {
			fmt.Fprintf(&b, "tuntap add dev %[1]s mode tun\nlink set %[1]s up\n", relay.Device)
		}
		for _, table := range []string{p.delayed(f.A, f.B), p.delayed(f.B, f.A)} {
			fmt.Fprintf(&b, "route replace default dev %s table %s\n", relay.Device, table)
		}
	}
	for _, device := range slices.Sorted(maps.Keys(there)) {
		if strings.HasPrefix(device, relayPrefix) && !wanted[device] {
			fmt.Fprintf(&b, "link delete %s\n", device)
		}
	}
	return b.String()
}

// renderPort plugs an endpoint into the switch, run in the switch's namespace.
func (p Plan) renderPort(e Endpoint) string {
	return fmt.Sprintf("link add %[1]s type veth peer name eth0 netns %[2]s\nlink set %[1]s master %[3]s\nlink set %[1]s up\n", e.Port, e.Namespace, e.Bridge)
}

// renderEndpoint gives an endpoint its address and routes, run in its namespace.
func (p Plan) renderEndpoint(e Endpoint) string {
	var b strings.Builder
	b.WriteString("link set lo up\n")
	fmt.Fprintf(&b, "addr add %s/%d dev eth0\n", e.Address, e.Subnet.Bits())
	b.WriteString("link set eth0 up\n")
	fmt.Fprintf(&b, "route add default via %s\n", e.Gateway)
	for _, r := range p.routes(e) {
		fmt.Fprintf(&b, "route add %s via %s\n", r.to, r.via)
	}
	return b.String()
}

// renderMasquerade lets the pods of a node reach what has no route back to them.
func (p Plan) renderMasquerade(e Endpoint) string {
	return fmt.Sprintf(`table ip lab {
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr %s ip daddr != { %s } oifname "eth0" masquerade
	}
}
`, e.PodCIDR, strings.Join(p.unmasqueraded(e), ", "))
}

// renderFaults is the ruleset of the switch for links with faults.
func (p Plan) renderFaults(faults []Fault) string {
	if p.Routed {
		return p.renderRouterFaults(faults)
	}
	var b strings.Builder
	b.WriteString("table bridge cuts\ndelete table bridge cuts\n")
	if len(faults) == 0 {
		return b.String()
	}
	b.WriteString("table bridge cuts {\n\tchain forward {\n\t\ttype filter hook forward priority 0; policy accept;\n")
	for _, f := range faults {
		a, c := p.ports(f.A), p.ports(f.B)
		fmt.Fprintf(&b, "\t\tiifname { %s } oifname { %s } drop\n", a, c)
		fmt.Fprintf(&b, "\t\tiifname { %s } oifname { %s } drop\n", c, a)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// renderRouterFaults is the ruleset of the router, which passes nothing but addresses of the lab.
func (p Plan) renderRouterFaults(faults []Fault) string {
	var forward, postrouting strings.Builder
	for _, e := range p.networks() { // hosts with br_netfilter show it frames within one network, too
		fmt.Fprintf(&forward, "\t\tiifname %[1]q oifname %[1]q accept\n", e.Bridge)
	}
	for _, f := range faults {
		a, c := p.ControlPlane(f.A).Bridge, p.ControlPlane(f.B).Bridge
		for _, way := range [][2]string{{a, c}, {c, a}} {
			if relay, slow := p.Relay(f); slow {
				way[1] = relay.Device
			}
			on := fmt.Sprintf("\t\tiifname %q oifname %q ", way[0], way[1])
			if f.Cut {
				forward.WriteString(on + "drop\n")
			}
			if f.NoUDP {
				forward.WriteString(on + "meta l4proto udp drop\n")
			}
			if f.MTU > 0 {
				fmt.Fprintf(&forward, "%sip length > %d drop\n", on, f.MTU)
			}
			if f.Loss > 0 {
				fmt.Fprintf(&forward, "%snumgen random mod 100 < %d drop\n", on, f.Loss)
			}
		}
		if f.NAT != "" {
			fmt.Fprintf(&forward, "\t\tiifname %q oifname %q ct state new drop\n", c, a)
			ports := map[NAT]string{Symmetric: " fully-random"}[f.NAT]
			fmt.Fprintf(&postrouting, "\t\tiifname %q oifname %q masquerade%s\n", a, c, ports)
		}
	}
	return fmt.Sprintf(`table ip router
delete table ip router
table ip router {
	chain forward {
		type filter hook forward priority filter; policy drop;
%[1]s		ip saddr %[3]s ip daddr %[3]s accept
	}
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
%[2]s	}
}
`, forward.String(), postrouting.String(), p.Subnet)
}

func (p Plan) ports(cluster string) string {
	var ports []string
	for _, e := range p.Endpoints {
		if e.Cluster == cluster {
			ports = append(ports, `"`+e.Port+`"`)
		}
	}
	return strings.Join(ports, ", ")
}
