package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// TestNetworkEnabledLater shows that clusters which offload pods already get their networks connected without a pod restarting, and that
// these pods reach each other then.
func TestNetworkEnabledLater(t *testing.T) {
	the.claimed(t)
	if the.installed {
		leavesNoNetwork(t)
		uninstall(t)
	}
	off := func(c *side) []string { return append(the.installArgs(t, c), "--set", "networking.enabled=false") }
	the.sideBySide(t, 4*time.Minute, the.sides(), off)
	the.installed = true
	the.liqoctl(t, 3*time.Minute, the.pair("peer", "--timeout", "2m", "--networking-disabled")...).succeeds(t)
	the.peers = true

	const namespace = "early"
	twin := the.offloaded(t, namespace)
	away, home := probing(), probing()
	away.NodeSelector, home.NodeName = remotely, the.rome.ownNodes()[0]
	the.rome.creates(t, podOf(namespace, "away", away), podOf(namespace, "home", home))
	pods := func() []corev1.Pod {
		return append(append(the.rome.ready(t, namespace, "away", 1), the.rome.ready(t, namespace, "home", 1)...), the.milan.ready(t, twin, "away", 1)...)
	}
	before := lives(pods())

	on := func(c *side) []string { return append(the.installArgs(t, c), "--set", "networking.enabled=true") }
	the.sideBySide(t, 4*time.Minute, the.sides(), on)
	the.liqoctl(t, 3*time.Minute, the.pair("network", "connect", "--wait", "--timeout", "2m", "--transit", "--gw-server-service-type", "NodePort")...).succeeds(t)
	for _, c := range []*side{the.rome, the.milan} {
		eventually(t, around, c.name+" to be connected", c.connected(other(c).name, networkingv1beta1.Connected))
	}

	var there, here, remote corev1.Pod
	eventually(t, around, "the pod at home to be shown under the address by which it is reached", func(context.Context) (bool, string) {
		all := pods()
		there, here, remote = all[0], all[1], all[2]
		want := seenAt(t, the.rome, the.milan, remote.Status.PodIP)
		return there.Status.PodIP == want, fmt.Sprintf("%s has %s, want %s", there.Name, there.Status.PodIP, want)
	})
	size := the.rome.mtu(t, the.milan)
	answers := func(name, from string) map[string]string {
		return map[string]string{"tcp": name + " " + from, "udp": name + " " + from, "full": name + " " + from}
	}
	the.rome.asks(t, around, namespace, "home", addressOf(there.Status.PodIP), size, answers("away", seenAt(t, the.milan, the.rome, here.Status.PodIP)))
	the.rome.asks(t, around, namespace, "away", addressOf(seenAt(t, the.milan, the.rome, here.Status.PodIP)), size, answers("home", there.Status.PodIP))
	if after := lives(pods()); after != before {
		t.Errorf("pods were\n%sbefore the networks were connected, and are now\n%s", before, after)
	}
}

// lives is which pods there are, and which lives of their containers.
func lives(pods []corev1.Pod) (text string) {
	for i := range pods {
		pod := &pods[i]
		text += fmt.Sprintf("%s/%s %s", pod.Namespace, pod.Name, pod.UID)
		for _, container := range pod.Status.ContainerStatuses {
			text += fmt.Sprintf(" %s %d", container.ContainerID, container.RestartCount)
			if container.State.Running != nil {
				text += " since " + container.State.Running.StartedAt.UTC().Format(time.RFC3339)
			}
		}
		text += "\n"
	}
	return text
}
