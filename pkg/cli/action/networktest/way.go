package networktest

import (
	"fmt"
	"slices"
)

// overlay is the way out where a node and a gateway of the cluster do not reach each other.
func (f *facts) overlay() string { return openPort(f.overlayPort) }

func openPort(port int32) string {
	return fmt.Sprintf("let the overlay's UDP port (networking.genevePort, %d) pass between the node and the pod of the gateway", port)
}

// way judges who reached whom: a node that reaches nobody, where others do, does not reach its gateway.
func way(f, other *facts) []finding {
	switch {
	case other == nil:
		return skipped("which pods of %s answer is not known without that cluster", f.peer)
	case !f.connected():
		return skipped("there is no tunnel")
	case other.isolated:
		return skipped("cluster %s lets shared pods alone be reached (networking.isolation: offloaded); try one of them with 'liqoctl network trace'", f.peer)
	case len(f.targets) == 0:
		return skipped("cluster %s has no pod to ask: one that runs, on the network of pods, where no NetworkPolicy is", f.peer)
	case len(f.reached) == 0:
		return skipped("no agent of cluster %s could be asked", f.id)
	}
	var silent []string
	for _, node := range f.nodes {
		if asked, ok := f.reached[node]; ok && !f.any(asked, "") {
			silent = append(silent, node)
		}
	}
	if len(silent) == len(f.reached) {
		if found := slices.Concat(f.blocked(f.gatewayNodes()...), other.blocked(other.nodes...)); len(found) > 0 {
			return found
		}
		return failed(f.overlay()+"s, in both clusters", "the tunnel works, but from cluster %s no pod of %s is reached, from no node", f.id, f.peer)
	}
	var found []finding
	for _, node := range silent {
		if blocked := f.blocked(node); len(blocked) > 0 {
			found = append(found, blocked...)
			continue
		}
		found = append(found, failed(f.overlay(),
			"node %s of cluster %s does not reach its gateway to %s (UDP %d), while others do", node, f.id, f.peer, f.overlayPort)...)
	}
	return append(found, f.unreached(other, silent)...)
}

// any tells whether a node reached a pod, on a node of the peer unless that is empty.
func (f *facts) any(asked map[string]bool, on string) bool {
	for _, t := range f.targets {
		if (on == "" || t.node == on) && asked[t.address.String()] {
			return true
		}
	}
	return false
}

// unreached are the nodes of the peer on which no pod was reached, by nodes that are not silent themselves.
func (f *facts) unreached(other *facts, silent []string) []finding {
	var found []finding
	seen := map[string]bool{}
	for _, t := range f.targets {
		if seen[t.node] {
			continue
		}
		seen[t.node] = true
		var reached bool
		for node, asked := range f.reached {
			reached = reached || !slices.Contains(silent, node) && f.any(asked, t.node)
		}
		if blocked := other.blocked(t.node); !reached && len(blocked) > 0 {
			found = append(found, blocked...)
		} else if !reached {
			found = append(found, failed(other.overlay(),
				"node %s of cluster %s is not reached through its gateway to %s (UDP %d), while others are", t.node, f.peer, f.id, other.overlayPort)...)
		}
	}
	return found
}
