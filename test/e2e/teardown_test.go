package e2e

import (
	"context"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const (
	// forced is how long ending a peering with a dead peer may take (C8).
	forced = time.Minute
	// unhurried is how long it may take when both are alive.
	unhurried = 2 * time.Minute
)

// ofPeerings are the texts in the inventory of a cluster that has a peering.
var ofPeerings = []string{
	"authentication.liqo.io ", "virtualnodes.offloading.liqo.io ", "namespacemaps.offloading.liqo.io ",
	"quotas.offloading.liqo.io ", "shadowpods.offloading.liqo.io ", "foreignclusters.core.liqo.io ",
	"liqo-tenant-" + consumer, "liqo-tenant-" + provider, "-" + consumer + "/",
}

// TestTeardown is acceptance point 5: whichever way a peering ends, nothing of it is left: in API servers, nor in the kernel of any node. It ends
// with Liqo uninstalled.
func TestTeardown(t *testing.T) {
	the.last(t)
	the.settled(t)
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"unoffload brings the pods home and removes the twin", unoffload},
		{"uninstall is refused while there is a peering", uninstallRefused},
		{"unpeer is refused while there are volumes", unpeerRefused},
		{"unpeer with both alive", unpeer},
		{"peer again, and pods reach each other", reachAgain},
		{"peer again, and unpeer with the provider dead", func(t *testing.T) { unpeerDead(t, "orphaned", the.rome, the.milan) }},
		{"peer again after the provider's death, and unpeer with the consumer dead", func(t *testing.T) { unpeerDead(t, "widowed", the.milan, the.rome) }},
		{"uninstall leaves nothing", uninstall},
	} {
		if !t.Run(step.name, func(t *testing.T) { the.recordFailure(t); step.test(t) }) {
			return
		}
	}
}

func unoffload(t *testing.T) {
	const namespace = "borrowed"
	twin := the.offloaded(t, namespace)
	spec := script(forever)
	spec.NodeSelector = nil
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{virtualNode},
		}}},
	}}}}
	the.rome.creates(t, deployment(namespace, "app", 2, spec))
	the.rome.ready(t, namespace, "app", 2)
	the.milan.ready(t, twin, "app", 2)
	// Selecting no cluster would end the pods there, and there is nobody to ask.
	the.liqoctl(t, time.Minute, "offload", "namespace", namespace, "--kubeconfig", the.rome.kubeconfig, "--selector", "region=nowhere").exits(t, 2).says(t, namespace+"/app-")
	the.liqoctl(t, unhurried, "unoffload", "namespace", namespace, "--kubeconfig", the.rome.kubeconfig, "--skip-confirm").succeeds(t)
	the.milan.misses(t, namespaceOf(twin), "the twin namespace")
	eventually(t, patience, "the pods to run at home", func(ctx context.Context) (bool, string) {
		pods, err := the.rome.pods(ctx, namespace)
		if err != nil {
			return false, err.Error()
		}
		home := 0
		for i := range pods {
			pod := &pods[i]
			switch aborted := pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == offloadingv1beta1.ReasonOffloadingAborted; {
			case pod.Spec.NodeName != virtualNode && isReady(pod):
				home++
			case pod.Spec.NodeName == virtualNode && !aborted:
				return false, describe(pods)
			}
		}
		return home == 2, describe(pods)
	})
}

func uninstallRefused(t *testing.T) {
	the.liqoctl(t, time.Minute, "uninstall", "--kubeconfig", the.rome.kubeconfig, "--skip-confirm").exits(t, 3).says(t, provider)
}

// unpeerRefused shows that the data of a consumer at a provider holds the peering.
func unpeerRefused(t *testing.T) {
	const namespace = "holding"
	the.offloaded(t, namespace)
	the.rome.creates(t, claimOf(namespace, "data"), podOf(namespace, "app", withData(script(forever), "data")))
	the.rome.ready(t, namespace, "app", 1)
	the.liqoctl(t, time.Minute, the.pair("unpeer", "--skip-confirm")...).exits(t, 3).says(t, namespace+"/data")
}

func unpeer(t *testing.T) {
	the.settled(t)
	// There is nobody to ask.
	the.liqoctl(t, time.Minute, the.pair("unpeer")...).exits(t, 2).says(t, "--skip-confirm")
	the.rome.reads(t, nodeOf(virtualNode))
	leavesNoNetwork(t)
	the.rome.misses(t, nodeOf(virtualNode), "the virtual node")
	// Once more changes nothing, and is no failure.
	the.liqoctl(t, unhurried, the.pair("unpeer", "--delete-namespaces", "--skip-confirm")...).succeeds(t)
}

// reachAgain shows that clusters which are peered again reach each other's pods, where Liqo connects their networks.
func reachAgain(t *testing.T) {
	if !the.world.connects() {
		t.Skip("Liqo does not connect the networks of this world")
	}
	the.peered(t)
	const namespace = "again"
	probes(t, namespace, the.rome, the.milan)
	everyPair(t, namespace, the.rome, the.milan)
}

// unpeerDead shows that a new peering of the same clusters is as good as the first. Then it ends it at the living cluster while the
// other's API server hangs, and then at the other.
func unpeerDead(t *testing.T, namespace string, alive, dead *side) {
	the.peered(t)
	the.settled(t)
	twin := the.offloaded(t, namespace)
	the.rome.creates(t, podOf(namespace, "app", script(forever)))
	the.rome.ready(t, namespace, "app", 1)
	the.milan.ready(t, twin, "app", 1)

	component := dead.name + "/kube-apiserver"
	if err := the.breaks(t).Signal(component, syscall.SIGSTOP); err != nil {
		t.Fatalf("stopping %s: %v", component, err)
	}
	resume := func() {
		if err := the.breaks(t).Signal(component, syscall.SIGCONT); err != nil {
			t.Errorf("resuming %s: %v", component, err)
		}
	}
	t.Cleanup(resume)
	o := the.liqoctl(t, unhurried, forceUnpeer(alive, dead.name, forced)...).succeeds(t)
	t.Logf("ending the peering with %s took %s", dead.name, o.took.Round(time.Second))
	the.peers = false
	eventually(t, soon, "nothing of the peering to be left at "+alive.name, alive.noneLike(ofPeerings...))
	since := time.Now()
	resume()
	dead.recovers(t, since)
	the.liqoctl(t, unhurried, forceUnpeer(dead, alive.name, patience)...).succeeds(t)
	eventually(t, soon, "nothing of the peering to be left at "+dead.name, dead.noneLike(ofPeerings...))
	the.rome.misses(t, nodeOf(virtualNode), "the virtual node")
}

func forceUnpeer(alive *side, peer string, within time.Duration) []string {
	return []string{"force", "unpeer", peer, "--kubeconfig", alive.kubeconfig, "--skip-confirm", "--timeout", within.String()}
}

func uninstall(t *testing.T) {
	the.solitary(t, "uninstalling Liqo")
	// A namespace is offloaded until it is gone.
	the.settled(t)
	all := the.sides()
	purge := func(c *side) []string {
		return []string{"uninstall", "--purge", "--kubeconfig", c.kubeconfig, "--skip-confirm"}
	}
	the.sideBySide(t, unhurried, all, purge)
	the.installed = false
	for _, c := range all {
		eventually(t, patience, c.name+" to be as it was before Liqo", the.asBefore(c))
		for _, node := range c.ownNodes() {
			eventually(t, patience, "nothing of Liqo to be left on node "+node, c.kernelWithout(t, node, "cni-liqo", "table ip liqo", "table ip6 liqo", "proto 79"))
		}
	}
	// Once more changes nothing, and is no failure.
	the.sideBySide(t, unhurried, all, purge)
}

func nodeOf(name string) *corev1.Node {
	node := &corev1.Node{}
	node.Name = name
	return node
}
