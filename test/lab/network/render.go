package network

import (
	"fmt"
	"strings"
)

// Batches of `ip -batch` and rulesets of `nft -f`, as text: what is applied is
// what golden files show.

// renderSwitch builds the bridge and the host's way to it, run in the host's namespace.
func (p Plan) renderSwitch() string {
	var b strings.Builder
	fmt.Fprintf(&b, "link add %s type veth peer name p0 netns %s\n", p.HostInterface(), p.Switch())
	fmt.Fprintf(&b, "addr add %s/%d dev %s\n", p.HostAddress(), p.Subnet.Bits(), p.HostInterface())
	fmt.Fprintf(&b, "link set %s up\n", p.HostInterface())
	return b.String()
}

// renderBridge runs in the switch's namespace.
func (p Plan) renderBridge() string {
	return "link set lo up\n" +
		"link add br0 type bridge stp_state 0 forward_delay 0\n" +
		"link set br0 up\n" +
		"link set p0 master br0\n" +
		"link set p0 up\n"
}

// renderPort plugs an endpoint into the switch, run in the switch's namespace.
func (p Plan) renderPort(e Endpoint) string {
	return fmt.Sprintf("link add %[1]s type veth peer name eth0 netns %[2]s\nlink set %[1]s master br0\nlink set %[1]s up\n", e.Port, e.Namespace)
}

// renderEndpoint gives an endpoint its address and routes, run in its namespace.
func (p Plan) renderEndpoint(e Endpoint) string {
	var b strings.Builder
	b.WriteString("link set lo up\n")
	fmt.Fprintf(&b, "addr add %s/%d dev eth0\n", e.Address, p.Subnet.Bits())
	b.WriteString("link set eth0 up\n")
	fmt.Fprintf(&b, "route add default via %s\n", p.HostAddress())
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

// renderCuts is the ruleset of the switch for a set of cut links, each a pair of clusters.
func (p Plan) renderCuts(cuts [][2]string) string {
	var b strings.Builder
	b.WriteString("table bridge cuts\ndelete table bridge cuts\n")
	if len(cuts) == 0 {
		return b.String()
	}
	b.WriteString("table bridge cuts {\n\tchain forward {\n\t\ttype filter hook forward priority 0; policy accept;\n")
	for _, cut := range cuts {
		a, c := p.ports(cut[0]), p.ports(cut[1])
		fmt.Fprintf(&b, "\t\tiifname { %s } oifname { %s } drop\n", a, c)
		fmt.Fprintf(&b, "\t\tiifname { %s } oifname { %s } drop\n", c, a)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
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
