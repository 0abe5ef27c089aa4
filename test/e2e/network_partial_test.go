package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/lab/network"
)

// TestNetworkFailsInPart cuts the tunnel while the provider's API server is reached, and the other way round: each of the two is told of by itself, and
// what does not need it goes on (F10).
func TestNetworkFailsInPart(t *testing.T) {
	the.alone(t)
	const namespace = "halves"
	twin := the.offloaded(t, namespace)
	away, home := probing(), probing()
	away.NodeSelector, home.NodeName = remotely, the.rome.ownNodes()[0]
	the.rome.creates(t, podOf(namespace, "away", away), podOf(namespace, "home", home))
	pods := func() []corev1.Pod {
		return append(the.rome.ready(t, namespace, "away", 1), the.milan.ready(t, twin, "away", 1)...)
	}
	before := lives(pods())
	address := addressOf(pods()[0].Status.PodIP)
	talk := func(t *testing.T) {
		the.rome.asks(t, around, namespace, "home", address, the.rome.mtu(t, the.milan), map[string]string{"tcp": "away", "udp": "away", "full": "away"})
	}
	talk(t)
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"the tunnel", func(t *testing.T) { withoutTunnel(t, namespace) }},
		{"the API server's way", func(t *testing.T) { withoutWayToAPI(t, talk) }},
		{"nothing, but all is slow and gets lost now and then", func(t *testing.T) { withSlowLink(t, talk) }},
	} {
		t.Run(step.name, func(t *testing.T) {
			the.recordFailure(t)
			step.test(t)
			eventually(t, patience, "the virtual node to be ready", the.nodeIs(true))
			eventually(t, around, "a network that is available", the.networkIs(true))
			talk(t)
			if after := lives(pods()); after != before {
				t.Errorf("pods were\n%sbefore, and are now\n%s", before, after)
			}
		})
	}
}

// withoutTunnel blocks UDP: the network is told to be broken, and that is all.
func withoutTunnel(t *testing.T, namespace string) {
	undo := brokenLink(network.Fault{NoUDP: true})(t)
	t.Cleanup(undo)
	for _, c := range []*side{the.rome, the.milan} {
		eventually(t, around, c.name+" to tell of it", c.connected(other(c).name, networkingv1beta1.ConnectionError))
	}
	eventually(t, around, "the virtual node to tell of it", the.networkIs(false))
	throughout(t, interval, "a virtual node that is ready", the.nodeSeen(true))
	away := &corev1.Pod{ObjectMeta: named(namespace, "away")}
	eventually(t, noticed, "the pod behind the tunnel not to be ready, for that reason", func(ctx context.Context) (bool, string) {
		if err := the.rome.Get(ctx, client.ObjectKeyFromObject(away), away); err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(away.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Reason == offloadingv1beta1.ReasonNetworkUnavailable
		}), describe([]corev1.Pod{*away})
	})
	undo()
	for _, c := range []*side{the.rome, the.milan} {
		eventually(t, around, c.name+" to be connected", c.connected(other(c).name, networkingv1beta1.Connected))
	}
}

// withSlowLink delays packets and drops some of them: what is connected stays so, its latency tells of it, and pods keep talking (F8).
func withSlowLink(t *testing.T, talk func(*testing.T)) {
	const delay = 50 * time.Millisecond
	undo := brokenLink(network.Fault{Delay: delay, Loss: 5})(t)
	t.Cleanup(undo)
	for _, c := range []*side{the.rome, the.milan} {
		eventually(t, around, c.name+" to tell of the delay", func(ctx context.Context) (bool, string) {
			connection := &networkingv1beta1.Connection{ObjectMeta: ofPeer(other(c))}
			if err := c.Get(ctx, client.ObjectKeyFromObject(connection), connection); err != nil {
				return false, err.Error()
			}
			latency, err := time.ParseDuration(connection.Status.Latency.Value)
			// Not all of 2*delay: it is smoothed, and told when it changed by a fifth.
			return err == nil && latency >= 3*delay/2, connection.Status.Latency.Value
		})
	}
	throughout(t, 30*time.Second, "gateways that are connected", func(ctx context.Context) (bool, string, error) {
		for _, c := range []*side{the.rome, the.milan} {
			if ok, seen := c.connected(other(c).name, networkingv1beta1.Connected)(ctx); !ok {
				return false, c.name + ": " + seen, nil
			}
		}
		return true, "", nil
	})
	talk(t)
	undo()
}

// withoutWayToAPI has the nodes of rome drop what goes to the API server of milan: the virtual node is not ready, and pods keep talking.
func withoutWayToAPI(t *testing.T, talk func(*testing.T)) {
	const rules = `table inet noapi {
		chain forward { type filter hook forward priority -300; ip daddr %[1]s tcp dport 6443 drop; }
		chain output { type filter hook output priority -300; ip daddr %[1]s tcp dport 6443 drop; }
	}`
	onNodes := func(rules string) {
		for _, node := range the.rome.ownNodes() {
			the.within(t, the.rome, node, "nft", rules).succeeds(t)
		}
	}
	undo := func() { onNodes("add table inet noapi; delete table inet noapi") }
	t.Cleanup(undo)
	onNodes(fmt.Sprintf(rules, the.lab.Plan().ControlPlane(provider).Address))
	eventually(t, noticed, "the virtual node not to be ready", the.nodeIs(false))
	talk(t)
	if connected, seen := the.rome.connected(provider, networkingv1beta1.Connected)(t.Context()); !connected {
		t.Errorf("the tunnel is told to be broken: %s", seen)
	}
	if available, seen := the.networkIs(true)(t.Context()); !available {
		t.Errorf("the network is told to be broken: %s", seen)
	}
	undo()
}

// networkIs checks what rome's virtual node says of the network.
func (s *suite) networkIs(available bool) check {
	return func(ctx context.Context) (bool, string) {
		node := nodeOf(virtualNode)
		if err := s.rome.Get(ctx, client.ObjectKey{Name: virtualNode}, node); err != nil {
			return false, err.Error()
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeNetworkUnavailable {
				return (c.Status == corev1.ConditionFalse) == available, fmt.Sprintf("%+v", c)
			}
		}
		return false, "no condition NetworkUnavailable"
	}
}
