package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/test/lab/network"
)

// faultNoticed is how long a fault may take to be noticed, and to be gone again.
const faultNoticed = 2 * time.Minute

// fault is something that can be wrong with a network.
type fault struct {
	name string
	// inject does it, and returns what undoes it.
	inject func(t *testing.T) (undo func())
	// says is what 'liqoctl network test' ends with, table what else it says.
	says, table string
}

// TestNetworkFaults injects faults one after the other. Each is named, with exit code 4, and nothing is wrong any more when it is undone.
func TestNetworkFaults(t *testing.T) {
	the.alone(t)
	tested(t, 0, "The network works")
	the.liqoctl(t, time.Minute, the.pair("network", "diff")...).succeeds(t)
	the.liqoctl(t, time.Minute, "test", "network", "--kubeconfig", the.rome.kubeconfig, "-p", the.milan.kubeconfig).succeeds(t)
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			the.recordFailure(t)
			undo := f.inject(t)
			t.Cleanup(func() { undo() })
			tested(t, 4, "ERRO "+f.says, f.table)
			undo()
			undo = func() {}
			tested(t, 0, "The network works")
		})
	}
}

// tested waits until 'liqoctl network test' ends as it is to, and says what it is to.
func tested(t *testing.T, code int, texts ...string) {
	t.Helper()
	eventually(t, faultNoticed, fmt.Sprintf("network test to end with %d and %q", code, texts), func(context.Context) (bool, string) {
		o := the.liqoctl(t, time.Minute, the.pair("network", "test")...)
		ok := o.code == code
		for _, text := range texts {
			ok = ok && strings.Contains(o.stdout+o.stderr, text)
		}
		return ok, o.String()
	})
}

func faults() []fault {
	key, told := &networkingv1beta1.PublicKey{}, &networkingv1beta1.Configuration{}
	server := &networkingv1beta1.GatewayServer{}
	return []fault{
		{"UDP is blocked", brokenLink(network.Fault{NoUDP: true}), "UDP port", "is not reached from cluster rome"},
		{"the link is cut", brokenLink(network.Fault{Cut: true}), "UDP port", "let UDP port"},
		{"long packets are dropped in silence", brokenLink(network.Fault{MTU: 1200}), "cluster", "MTUTooSmall"},
		{"the client has another key", changed(func() *side { return the.rome }, key, func() { key.Spec.PublicKey = bytes.Repeat([]byte{7}, 32) }),
			"cluster rome was told another key than the gateway in milan has", "NoHandshake"},
		{"the server has no key", withoutKey, "cluster milan does not know the key of the gateway in rome", "KeyMissing"},
		{"other ranges were announced", changed(func() *side { return the.rome }, told, func() { told.Spec.Remote.CIDR.Pod = []networkingv1beta1.CIDR{"10.99.0.0/16"} }),
			"cluster rome was told that the pods of milan are in [10.99.0.0/16]", ""},
		{"more is announced than a peer may have", changed(func() *side { return the.rome }, told, func() { told.Spec.Remote.CIDR.Pod = []networkingv1beta1.CIDR{"10.128.0.0/9", "100.64.0.0/10"} }),
			"cluster rome was told that the pods of milan are in [10.128.0.0/9 100.64.0.0/10]", "RangeRefused"},
		{"the server has no address", changed(func() *side { return the.milan }, server, func() { server.Spec.Endpoint.ServiceType = corev1.ServiceTypeLoadBalancer }),
			"GatewayServer rome: EndpointPending", ""},
		{"no node takes the gateway's pod", unschedulable, "the gateway to milan in cluster rome is not ready: Unschedulable", "GatewayPodPending"},
		{"the gateway is gone, and its word is old", withoutGateway, "there is no pod of the gateway to rome in cluster milan", ""},
		{"a node has no agent", withoutAgent, "no agent runs on node", "so its pods do not reach rome"},
		{"an agent stands still, and the firewall is flushed", stoppedAgent("nft", "delete", "table", "ip", "liqo"), "the agent on node", "does not answer"},
		{"an agent stands still, and the device is gone", stoppedAgent("ip", "link", "del", "cni-liqo"), "the agent on node", "does not answer"},
		{"an agent stands still, and a route is replaced", stoppedAgent("sh", "-c", "ip route replace blackhole $(ip route show table local proto 79 | cut -d' ' -f1 | head -n1) table local"), "the agent on node", "does not answer"},
		{"the overlay is closed at a node", closedOverlay, "node", "OverlaySilent: This node is not answered through the overlay by the gateway to milan"},
	}
}

func brokenLink(f network.Fault) func(t *testing.T) func() {
	return func(t *testing.T) func() {
		f.A, f.B = consumer, provider
		if err := the.breaks(t).BreakLink(t.Context(), f); err != nil {
			t.Fatalf("breaking the link: %v", err)
		}
		return func() { the.mend(t) }
	}
}

// changed changes an object that stands for the peer, and back.
func changed(of func() *side, object client.Object, change func()) func(t *testing.T) func() {
	return func(t *testing.T) func() {
		c := of()
		peer := ofPeer(other(c))
		object.SetNamespace(peer.Namespace)
		object.SetName(peer.Name)
		c.reads(t, object)
		before, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T is no object", object)
		}
		c.changes(t, object, change)
		return func() {
			ctx := context.WithoutCancel(t.Context())
			err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
					return err
				}
				before.SetResourceVersion(object.GetResourceVersion())
				return c.Update(ctx, before)
			})
			if err != nil {
				t.Fatalf("undoing it: %v", err)
			}
		}
	}
}

// withoutKey has the server forget the client's key.
func withoutKey(t *testing.T) func() {
	key := &networkingv1beta1.PublicKey{ObjectMeta: ofPeer(the.rome)}
	the.milan.reads(t, key)
	again := &networkingv1beta1.PublicKey{ObjectMeta: ofPeer(the.rome), Spec: key.Spec}
	again.Labels = key.Labels
	the.milan.deletes(t, key)
	return func() { the.milan.creates(t, again) }
}

// unschedulable has the gateway's pod go, and no node take another one.
func unschedulable(t *testing.T) func() {
	cordon := func(on bool) {
		for _, name := range the.rome.ownNodes() {
			node := &corev1.Node{}
			node.Name = name
			the.rome.changes(t, node, func() { node.Spec.Unschedulable = on })
		}
	}
	cordon(true)
	pod := gatewayPod(t, the.rome)
	the.rome.deletes(t, &pod, client.GracePeriodSeconds(0))
	return func() { cordon(false) }
}

func gatewayPod(t *testing.T, c *side) corev1.Pod {
	t.Helper()
	pods, err := c.pods(t.Context(), ofPeer(other(c)).Namespace, client.MatchingLabels{networkingv1beta1.GatewayNameLabel: other(c).name})
	if err != nil || len(pods) == 0 {
		t.Fatalf("the pods of the gateway at %s: %d, %v", c.name, len(pods), err)
	}
	return pods[0]
}

// withoutGateway takes the server's gateway away while nobody makes it again.
func withoutGateway(t *testing.T) func() {
	scale := func(to int32) {
		manager := &appsv1.Deployment{ObjectMeta: named("liqo", "liqo-controller-manager")}
		the.milan.changes(t, manager, func() { manager.Spec.Replicas = ptr.To(to) })
	}
	before := &appsv1.Deployment{ObjectMeta: named("liqo", "liqo-controller-manager")}
	the.milan.reads(t, before)
	scale(0)
	eventually(t, faultNoticed, "the controller manager of milan to be gone", func(ctx context.Context) (bool, string) {
		pods, err := the.milan.pods(ctx, "liqo", client.MatchingLabels{"app.kubernetes.io/component": "controller-manager"})
		return err == nil && len(pods) == 0, fmt.Sprintf("%d pods, %v", len(pods), err)
	})
	the.milan.deletes(t, &appsv1.Deployment{ObjectMeta: named(ofPeer(the.rome).Namespace, "gw-rome")})
	return func() { scale(ptr.Deref(before.Spec.Replicas, 1)) }
}

// withoutAgent keeps the agent off a node.
func withoutAgent(t *testing.T) func() {
	set := &appsv1.DaemonSet{ObjectMeta: named("liqo", "liqo-fabric")}
	the.milan.reads(t, set)
	before := set.Spec.Template.Spec.Affinity.DeepCopy()
	the.milan.changes(t, set, func() {
		terms := set.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		for i := range terms {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, corev1.NodeSelectorRequirement{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{the.milan.ownNodes()[1]},
			})
		}
	})
	return func() { the.milan.changes(t, set, func() { set.Spec.Template.Spec.Affinity = before }) }
}

// stoppedAgent has the agent of a node stand still, and then something done on that node.
func stoppedAgent(command ...string) func(t *testing.T) func() {
	return func(t *testing.T) func() {
		node := the.milan.ownNodes()[1]
		process := agentOf(t, the.milan, node)
		signal := func(s syscall.Signal) {
			if err := process.Signal(s); err != nil {
				t.Errorf("sending %v to the agent of %s: %v", s, node, err)
			}
		}
		signal(syscall.SIGSTOP)
		the.within(t, the.milan, node, command...).succeeds(t)
		return func() { signal(syscall.SIGCONT) }
	}
}

// agentOf is the process of the agent of a node: of those in the node's network, the one that runs its program.
func agentOf(t *testing.T, c *side, node string) *os.Process {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", "netns", "pids", the.lab.Plan().Node(c.name, node).Namespace).Output()
	if err != nil {
		t.Fatalf("the processes of node %s: %v", node, err)
	}
	for text := range strings.FieldsSeq(string(out)) {
		id, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(filepath.Join("/proc", text, "comm"))
		if err == nil && strings.TrimSpace(string(program)) == "liqo-fabric" {
			process, err := os.FindProcess(id)
			if err != nil {
				t.Fatal(err)
			}
			return process
		}
	}
	t.Fatalf("no agent runs on node %s", node)
	return nil
}

// closedOverlay drops the overlay's packets of a node that does not have the gateway.
func closedOverlay(t *testing.T) func() {
	gateway := gatewayPod(t, the.rome)
	for _, node := range the.rome.ownNodes() {
		if node == gateway.Spec.NodeName {
			continue
		}
		the.within(t, the.rome, node, "nft", "add table inet closed; add chain inet closed out { type filter hook output priority -300; }; add rule inet closed out udp dport 6091 drop").succeeds(t)
		return func() { the.within(t, the.rome, node, "nft", "delete", "table", "inet", "closed").succeeds(t) }
	}
	t.Fatal("there is no node but the gateway's")
	return nil
}
