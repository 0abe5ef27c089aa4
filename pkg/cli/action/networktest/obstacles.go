package networktest

import (
	"slices"
	"strings"
)

const (
	obstaclesCommand = "obstacles"
	forwarding       = "have the node pass packets on: sysctl -w net.ipv4.ip_forward=1, and firewall rules that accept what comes from pods, goes to pods, " +
		"and passes device cni-liqo. A route to a part of a peer's range has to go, or the range to stand in ipam.reservedSubnets before clusters are peered"
)

// blocked says what keeps nodes of a cluster from passing packets on, if their agents see anything of it. It is asked only where packets do not
// arrive: a firewall that drops what no rule accepts may well have the right rules.
func (f *facts) blocked(nodes ...string) []finding {
	if f == nil {
		return nil
	}
	var found []finding
	for i := range f.agents {
		agent := &f.agents[i]
		if node := agent.pod.Spec.NodeName; agent.obstacles != "" && slices.Contains(nodes, node) {
			found = append(found, failed(forwarding, "node %s of cluster %s does not pass on what goes to %s, or comes from there: %s", node, f.id, f.peer,
				strings.Join(strings.Split(strings.TrimSpace(agent.obstacles), "\n"), "; "))...)
		}
	}
	return found
}

// gatewayNodes are those that the cluster's gateway to the peer runs on.
func (f *facts) gatewayNodes() []string {
	if f == nil {
		return nil
	}
	var nodes []string
	for i := range f.gateways {
		nodes = append(nodes, f.gateways[i].pod.Spec.NodeName)
	}
	return nodes
}
