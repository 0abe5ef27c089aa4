package dataplane

import (
	"net/netip"
	"slices"
)

// Isolation says what of what is announced to a peer it really reaches.
type Isolation struct {
	// On is when a peer reaches Pods alone, besides what is no pod: IP resources, nodes' answers, and the peers that packets are passed on to.
	On bool
	// Pods are those that the cluster shares with the peer. As gateways know no connections, the others do not reach the peer either: no answer
	// comes back to them.
	Pods []netip.Addr
}

const (
	setShared = "shared"
	// counterIsolated counts packets for pods that are not shared with the peer.
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

// isolation is the rule that goes with it, for what was found to be announced.
func isolation(input GatewayInput) []ChainRule {
	if !input.Isolation.On {
		return nil
	}
	return []ChainRule{when(notIn(Destination, setShared)).drop(counterIsolated)}
}
