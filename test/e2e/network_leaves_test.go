package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// inLeaves has one pod at each leaf, and a Service of the hub that both are behind.
const (
	inLeaves  = "leaves"
	anywhere  = "anywhere"
	leafLabel = "in-leaves"
)

// TestNetworkLeaves shows that two providers of a consumer reach each other's pods, by addresses and by a Service of the consumer: through the
// consumer with transit, not at all without, and then by a tunnel of their own.
func TestNetworkLeaves(t *testing.T) {
	the.withNaples(t)
	t.Cleanup(func() { carries(t, the.milan, true) }) // as it was peered
	leaves := []*side{the.milan, the.naples}
	pods := behindTheHub(t, leaves)
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"through the hub", func(t *testing.T) { throughTheHub(t, leaves, pods) }},
		{"transit ends", func(t *testing.T) { pass(t, leaves, false); apart(t, leaves) }},
		{"by a tunnel of their own", func(t *testing.T) { direct(t, leaves, pods) }},
	} {
		if !t.Run(step.name, func(t *testing.T) { the.recordFailure(t, the.naples); step.test(t) }) {
			return
		}
	}
}

// behindTheHub offloads a namespace to both leaves, with a pod and a Service for each, and one Service for both. It returns the pods as the leaves have
// them, which have the names that they have at home.
func behindTheHub(t *testing.T, leaves []*side) map[*side]corev1.Pod {
	t.Helper()
	// Cleanups run from the last to the first: this one after the namespace is deleted, before its provider is left.
	t.Cleanup(func() {
		if !kept(t) {
			the.leaves(absence{the.naples, twinOf(inLeaves)})
			the.settled(t)
		}
	})
	twin := the.offloadedTo(t, inLeaves)
	both := serviceOf(inLeaves, anywhere, corev1.ServiceTypeClusterIP)
	both.Spec.Selector = map[string]string{leafLabel: "true"}
	the.rome.creates(t, both)
	for _, leaf := range leaves {
		pod := probing()
		pod.NodeSelector = map[string]string{corev1beta1.RemoteClusterIDLabel: leaf.name}
		made := one(inLeaves, leaf.name, pod)
		made.Spec.Template.Labels[leafLabel] = "true"
		the.rome.creates(t, made, serviceOf(inLeaves, leaf.name, corev1.ServiceTypeClusterIP))
	}
	pods := map[*side]corev1.Pod{}
	for _, leaf := range leaves {
		pods[leaf] = leaf.ready(t, twin, leaf.name, 1)[0]
	}
	return pods
}

// bothWays are the leaves in both orders.
func bothWays(leaves []*side) [][2]*side {
	return [][2]*side{{leaves[0], leaves[1]}, {leaves[1], leaves[0]}}
}

// apart checks that no leaf has an endpoint of the other one.
func apart(t *testing.T, leaves []*side) {
	t.Helper()
	for _, ends := range bothWays(leaves) {
		eventually(t, around, fmt.Sprintf("%s to have no endpoint of %s", ends[0].name, ends[1].name), ends[0].leadsTo(ends[1].name, 0))
	}
}

// leadsTo checks how many endpoints from elsewhere a cluster has for a Service of the leaves, and that they are ready.
func (c *side) leadsTo(service string, want int) check {
	return func(ctx context.Context) (bool, string) {
		var list discoveryv1.EndpointSliceList
		err := c.List(ctx, &list, client.InNamespace(twinOf(inLeaves)), client.MatchingLabels{discoveryv1.LabelServiceName: service})
		if err != nil {
			return false, err.Error()
		}
		ready := 0
		var all []discoveryv1.Endpoint
		for i := range list.Items {
			for _, endpoint := range list.Items[i].Endpoints {
				all = append(all, endpoint)
				if endpoint.Conditions.Ready != nil && *endpoint.Conditions.Ready {
					ready++
				}
			}
		}
		return ready == want && len(all) == want, fmt.Sprintf("%+v", all)
	}
}

// pass has the hub carry packets between leaves, or not any more, and waits until all of them know.
func pass(t *testing.T, leaves []*side, transit bool) {
	t.Helper()
	own := 1
	if transit {
		own += 2 // the pods of the other leaf, and what else it has
	}
	for _, leaf := range leaves {
		carries(t, leaf, transit)
	}
	for _, leaf := range leaves {
		eventually(t, around, fmt.Sprintf("%s to see %d external ranges at the hub", leaf.name, own), func(ctx context.Context) (bool, string) {
			configuration := &networkingv1beta1.Configuration{}
			if err := leaf.Get(ctx, client.ObjectKey{Namespace: ofPeer(the.rome).Namespace, Name: the.rome.name}, configuration); err != nil {
				return false, err.Error()
			}
			seen := configuration.Status.Remote
			return seen != nil && len(seen.CIDR.External) == own, fmt.Sprintf("%+v", configuration)
		})
	}
}

// carries has the hub carry packets from and to a leaf, or not any more.
func carries(t *testing.T, leaf *side, transit bool) {
	t.Helper()
	for _, ends := range [][2]*side{{the.rome, leaf}, {leaf, the.rome}} {
		c, peer := ends[0], ends[1]
		configuration := &networkingv1beta1.Configuration{ObjectMeta: ofPeer(peer)}
		c.changes(t, configuration, func() { configuration.Spec.Transit = transit })
	}
}

// throughTheHub has the pods of the leaves ask each other by the hub's view of them.
func throughTheHub(t *testing.T, leaves []*side, pods map[*side]corev1.Pod) {
	pass(t, leaves, true)
	seen := func(c, peer *side, address string) string {
		return seenAt(t, c, the.rome, seenAt(t, the.rome, peer, address))
	}
	ask(t, leaves, pods, seen, func(c, peer *side) int { return min(c.mtu(t, the.rome), the.rome.mtu(t, peer)) })
}

// ask has the pod of each leaf ask that of the other one: by its address there, with packets as large as they may be, by its Service, and by the
// Service that both are behind, until the other one is chosen.
func ask(t *testing.T, leaves []*side, pods map[*side]corev1.Pod, seen func(c, peer *side, address string) string, mtu func(c, peer *side) int) {
	t.Helper()
	for _, ends := range bothWays(leaves) {
		c, peer := ends[0], ends[1]
		from, to := pods[c], pods[peer]
		answer := to.Name + " " + seen(peer, c, from.Status.PodIP)
		everything := map[string]string{"tcp": answer, "udp": answer, "full": answer}
		c.asks(t, around, from.Namespace, from.Name, addressOf(seen(c, peer, to.Status.PodIP)), mtu(c, peer), everything)
		eventually(t, around, fmt.Sprintf("%s to have the endpoint of %s", c.name, peer.name), c.leadsTo(peer.name, 1))
		c.asks(t, around, from.Namespace, from.Name, addressOf(peer.name), 0, map[string]string{"tcp": answer, "udp": answer})
		for _, protocol := range []string{"tcp", "udp"} {
			c.asks(t, around, from.Namespace, from.Name, addressOf(anywhere), 0, map[string]string{protocol: answer})
		}
	}
}

// direct connects the leaves with each other, and has Services use it.
func direct(t *testing.T, leaves []*side, pods map[*side]corev1.Pod) {
	a, b := leaves[0], leaves[1]
	between := func(args ...string) []string {
		return append(slices.Clone(args), "--kubeconfig", a.kubeconfig, "--remote-kubeconfig", b.kubeconfig)
	}
	t.Cleanup(func() {
		if !kept(t) {
			the.liqoctl(t, unhurried, between("network", "reset", "--skip-confirm")...).succeeds(t)
			for _, ends := range bothWays(leaves) {
				ends[0].deletes(t, namespaceOf(ofPeer(ends[1]).Namespace))
			}
		}
	})
	the.liqoctl(t, 3*time.Minute, between("network", "connect", "--wait", "--gw-server-service-type", "NodePort")...).succeeds(t)
	for _, name := range []string{a.name, b.name, anywhere} {
		service := &corev1.Service{ObjectMeta: named(inLeaves, name)}
		the.rome.changes(t, service, func() {
			service.Annotations = map[string]string{offloadingv1beta1.UseDirectConnectionsAnnotation: "true"}
		})
	}
	seen := func(c, peer *side, address string) string { return seenAt(t, c, peer, address) }
	ask(t, leaves, pods, seen, func(c, peer *side) int { return c.mtu(t, peer) })
}
