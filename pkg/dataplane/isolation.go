package dataplane

import (
	"net/netip"
	"slices"
)

// Isolation says what of what is announced to a peer it really reaches.
type Isolation struct {
	// On is when a peer reaches Pods alone, and is reached by them alone, besides what is no pod: IP resources, nodes, and the peers that packets are
	// passed on to.
	On bool
	// Pods are those that the cluster shares with the peer. The others send nothing to it either: no answer would come back to them, but a datagram
	// needs none.
	Pods []netip.Addr
}

const (
	setShared = "shared"
	// counterIsolated counts packets for, and of, pods that are not shared with the peer.
	counterIsolated = "isolated"
)

// isolate adds to a gateway's table what isolation needs: nothing if it is off.
func isolate(table *Table, input GatewayInput) {
	if !input.Isolation.On {
		return
	}
	var pods []netip.Addr
	for _, pod := range input.Isolation.Pods {
		if pod.Is4() {
			pods = append(pods, pod)
		}
	}
	shared := singles(pods...)
	for _, node := range input.Nodes {
		shared = append(shared, single(node.External))
	}
	for _, ip := range input.IPs {
		shared = append(shared, single(ip.External))
	}
	for _, fabric := range input.Transit {
		shared = append(shared, fabric.Remote...)
	}
	table.Counters = append(table.Counters, counterIsolated)
	slices.Sort(table.Counters)
	table.Sets = append(table.Sets, Set{Name: setShared, Interval: true, Elements: outermost(shared)})
}

// isolation is the rule that goes with it, for what was found to be announced: of what comes from the peer it looks at the destination, of what goes
// there at the source.
func isolation(isolation Isolation, field Field) []ChainRule {
	if !isolation.On {
		return nil
	}
	return []ChainRule{when(notIn(field, setShared)).drop(counterIsolated)}
}
