package e2e

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// TestNetworkWithoutOverlap shows that a cluster with ranges of its own is reached under its own addresses, with nothing that translates.
func TestNetworkWithoutOverlap(t *testing.T) {
	the.withNaples(t)
	const namespace = "apart"
	probes(t, namespace, the.rome, the.naples)
	everyPair(t, namespace, the.rome, the.naples)
	toldOneByOne(t, namespace, the.naples)
	for _, ends := range [][2]*side{{the.rome, the.naples}, {the.naples, the.rome}} {
		c, peer := ends[0], ends[1]
		pod := peer.probe(t, namespace, peer.ownNodes()[0])
		if seen := seenAt(t, c, peer, pod.Status.PodIP); seen != pod.Status.PodIP {
			t.Errorf("%s sees %s of %s as %s", c.name, pod.Status.PodIP, peer.name, seen)
		}
		if state := c.gatewayState(t, peer); strings.Contains(state, rewrites) {
			t.Errorf("the gateway of %s to %s translates:\n%s", c.name, peer.name, state)
		}
	}
	// The same cluster has another peer, with its own ranges. Without it the words that were looked for could be wrong ones.
	if state := the.rome.gatewayState(t, the.milan); !strings.Contains(state, rewrites) {
		t.Errorf("the gateway of rome to milan does not translate:\n%s", state)
	}
}

// toldOneByOne checks that gateways are told of each pod of a cluster whose Nodes do not say where their pods are.
func toldOneByOne(t *testing.T, namespace string, c *side) {
	t.Helper()
	for _, name := range c.ownNodes() {
		node, internal := &corev1.Node{}, &networkingv1beta1.InternalNode{}
		node.Name, internal.Name = name, name
		c.reads(t, node)
		c.reads(t, internal)
		pod := netip.MustParseAddr(c.probe(t, namespace, name).Status.PodIP)
		ranges := internal.Status.PodRanges
		told := slices.ContainsFunc(ranges, func(cidr networkingv1beta1.CIDR) bool {
			prefix, err := cidr.Prefix()
			return err == nil && prefix.Contains(pod) && prefix.Bits() > 24
		})
		if len(node.Spec.PodCIDRs) > 0 || !told {
			t.Errorf("node %s has the ranges %q, and gateways are told of %q, want no ranges and pod %s", name, node.Spec.PodCIDRs, ranges, pod)
		}
	}
}

// rewrites is in each rule of a gateway's state that puts another range in the place of one.
const rewrites = "addr & 0."

// gatewayState is what a gateway wants to have in its kernel.
func (c *side) gatewayState(t *testing.T, peer *side) string {
	t.Helper()
	meta := ofPeer(peer)
	return the.kubectl(t, c, soon, "exec", "-n", meta.Namespace, "deploy/gw-"+peer.name, "--", "/usr/bin/liqo-gateway", "state").succeeds(t).stdout
}

// withNaples peers rome with naples too, until the test ends. That leaves nothing of it.
func (s *suite) withNaples(t *testing.T) {
	t.Helper()
	s.alone(t)
	s.recordFailure(t, s.naples)
	t.Cleanup(func() {
		if kept(t) {
			return
		}
		s.liqoctl(t, unhurried, s.romeAnd(s.naples, "unpeer", "--delete-namespaces", "--skip-confirm")...).succeeds(t)
		for _, ends := range [][2]*side{{s.rome, s.naples}, {s.naples, s.rome}} {
			c, peer := ends[0], ends[1]
			eventually(t, patience, "nothing of the peering to be left at "+c.name, c.noneLike(
				"configurations.networking.liqo.io "+ofPeer(peer).Namespace+"/", "/gw-"+peer.name, "foreignclusters.core.liqo.io /"+peer.name))
		}
	})
	s.liqoctl(t, 3*time.Minute, s.romeAnd(s.naples, s.peerArgs()...)...).succeeds(t)
	for _, ends := range [][2]*side{{s.rome, s.naples}, {s.naples, s.rome}} {
		eventually(t, around, ends[0].name+" to be connected", ends[0].connected(ends[1].name, networkingv1beta1.Connected))
	}
}
