package networktest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
)

// Ways out that several findings have in common.
const (
	seeReasons = "look the reason up in docs/troubleshooting.md"
	connect    = "run 'liqoctl network connect' again"
)

// judgement looks at one thing that a cluster knows; the other one is nil if it was not read. No finding: all is well.
type judgement struct {
	name string
	look func(f, other *facts) []finding
}

// judgements are in the order of causes.
var judgements = []judgement{
	{"module", module},
	{"ranges", ranges},
	{"gateway", gatewayObject},
	{"keys", keys},
	{"gateway pod", gatewayPods},
	{"agents", agents},
	{"nodes", nodes},
	{"kernel", kernel},
	{"tunnel", tunnel},
	{"packet size", packetSize},
	{"way", way},
}

// judge looks at all that is known of one or two clusters, one thing after the other.
func judge(sides []*facts) *Report {
	report := &Report{Checks: []Check{}}
	off := false
	for _, j := range judgements {
		for i, f := range sides {
			var other *facts
			if len(sides) > 1 {
				other = sides[1-i]
			}
			found := j.look(f, other)
			if len(found) == 0 {
				found = []finding{{state: Passed}}
			}
			for _, one := range found {
				report.Checks = append(report.Checks, Check{f.id, f.peer, j.name, one.state, one.message, one.next})
			}
			off = off || j.name == "module" && found[0].state == Failed
		}
		if off {
			// Nothing else means anything.
			return report
		}
	}
	return report
}

func module(f, _ *facts) []finding {
	if !f.enabled {
		return failed("turn it on with 'liqoctl install --set networking.enabled=true'", "the network module is off in cluster %s", f.id)
	}
	if f.configuration == nil && f.server == nil && f.client == nil {
		return failed("connect the networks with 'liqoctl network connect'", "cluster %s is connected to no network of %s", f.id, f.peer)
	}
	return nil
}

// manager is the way out where the controller manager does nothing.
func (f *facts) manager() string {
	return "see whether the controller manager runs: kubectl get pods -n " + f.liqo
}

// label is the one that objects have which stand for the peer.
func (f *facts) label() string { return corev1beta1.RemoteClusterIDLabel + "=" + f.peer }

// notReady is what the condition Ready of an object says that is not as it should be.
func (f *facts) notReady(kind string, of *metav1.ObjectMeta, conditions []metav1.Condition) []finding {
	ready := meta.FindStatusCondition(conditions, corev1beta1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration < of.Generation:
		return failed(f.manager(), "the controller manager has not looked at %s %s yet", kind, of.Name)
	case ready.Status != metav1.ConditionTrue:
		return failed(cmp.Or(network.WayOut(ready.Reason), seeReasons), "%s %s: %s: %s", kind, of.Name, ready.Reason, ready.Message)
	}
	return nil
}

func ranges(f, other *facts) []finding {
	c := f.configuration
	if c == nil {
		return failed(connect, "cluster %s was not told the ranges of %s: there is no Configuration with label %s", f.id, f.peer, f.label())
	}
	var found []finding
	if other != nil {
		const next = "run 'liqoctl network init' again"
		told, has := c.Spec.Remote.CIDR, other.own
		if !sameRanges(told.Pod, has.Pod) {
			found = failed(next, "cluster %s was told that the pods of %s are in %v, but they are in %v", f.id, f.peer, told.Pod, has.Pod)
		}
		if len(has.External) > 0 && !slices.Contains(told.External, has.External[0]) {
			found = append(found, failed(next, "cluster %s was told that the external range of %s is %v, but it is %v", f.id, f.peer, told.External, has.External)...)
		}
	}
	return append(found, f.notReady("Configuration", &c.ObjectMeta, c.Status.Conditions)...)
}

func sameRanges(a, b []networkingv1beta1.CIDR) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func gatewayObject(f, _ *facts) []finding {
	kind, of, conditions := f.gateway()
	if of == nil {
		return failed(connect, "cluster %s has no gateway to %s: there is no GatewayServer and no GatewayClient", f.id, f.peer)
	}
	ready := meta.FindStatusCondition(conditions, corev1beta1.ConditionReady)
	if ready != nil && ready.Reason == networkingv1beta1.ReasonGatewayPodPending && len(f.gateways) > 0 {
		return nil // The pod itself says more.
	}
	return f.notReady(kind, of, conditions)
}

func keys(f, other *facts) []finding {
	switch {
	case f.peerKey == nil:
		return failed(connect, "cluster %s does not know the key of the gateway in %s: there is no PublicKey with label %s", f.id, f.peer, f.label())
	case other == nil:
		return skipped("whether it is that of %s is not known without that cluster", f.peer)
	case other.key == nil:
		return failed(seeReasons, "the gateway in %s has no keys", other.id)
	case !f.knows(other.key):
		return failed("give it the right one: "+connect,
			"cluster %s was told another key than the gateway in %s has: PublicKey %s does not match", f.id, f.peer, f.peerKey.Name)
	}
	return nil
}

// knows tells whether a key is the one that the cluster was told of the other end.
func (f *facts) knows(key []byte) bool {
	return f.peerKey != nil && bytes.Equal(f.peerKey.Spec.PublicKey, key)
}

func gatewayPods(f, _ *facts) []finding {
	if len(f.gateways) == 0 {
		return failed("see what the events say: kubectl describe deployment -n liqo-tenant-"+f.peer,
			"there is no pod of the gateway to %s in cluster %s", f.peer, f.id)
	}
	var found []finding
	for i := range f.gateways {
		found = append(found, f.gateways[i].findings("the gateway to "+f.peer+" in cluster "+f.id)...)
	}
	return found
}

// findings are what is wrong with an agent's pod.
func (p *agentPod) findings(of string) []finding {
	next := fmt.Sprintf("see what it says: kubectl logs -n %s %s", p.pod.Namespace, p.pod.Name)
	switch {
	case p.deaf != "":
		return failed("have it started again: kubectl delete pod -n "+p.pod.Namespace+" "+p.pod.Name,
			"%s does not answer, so nothing is repaired and what it says is old: %s", of, p.deaf)
	case p.sick != "":
		return failed(next, "%s says: %s", of, p.sick)
	case p.why != "":
		return failed(next, "%s is not ready: %s", of, p.why)
	}
	return nil
}

func agents(f, _ *facts) []finding {
	var found []finding
	for _, node := range f.nodes {
		i := slices.IndexFunc(f.agents, func(p agentPod) bool { return p.pod.Spec.NodeName == node })
		if i < 0 {
			next := "see why the DaemonSet liqo-fabric has no pod there: kubectl describe daemonset -n " + f.liqo + " liqo-fabric"
			if len(f.agents) == 0 {
				next = "bring the DaemonSet liqo-fabric back if it is gone: liqoctl install"
			}
			found = append(found, failed(next,
				"no agent runs on node %s of cluster %s, so its pods do not reach %s", node, f.id, f.peer)...)
			continue
		}
		found = append(found, f.agents[i].findings("the agent on node "+node+" of cluster "+f.id)...)
	}
	return found
}

func nodes(f, _ *facts) []finding {
	var found []finding
	for _, name := range slices.Sorted(maps.Keys(f.off)) {
		found = append(found, warned("see why: kubectl describe node "+name, "node %s of cluster %s is left out: %s", name, f.id, f.off[name])...)
	}
	for _, name := range f.nodes {
		node := f.internal[name]
		if node == nil {
			found = append(found, failed(f.manager(), "node %s of cluster %s is not known to the network: there is no InternalNode", name, f.id)...)
			continue
		}
		if c := meta.FindStatusCondition(node.Status.Conditions, corev1beta1.ConditionReady); c != nil && c.Status != metav1.ConditionTrue {
			found = append(found, failed(seeReasons, "node %s of cluster %s: %s: %s", name, f.id, c.Reason, c.Message)...)
		} else if c != nil && c.Reason == networkingv1beta1.ReasonOverwritten {
			found = append(found, warned("the log of the agent says what: kubectl logs -n "+f.liqo+" -l app.kubernetes.io/component=fabric",
				"node %s of cluster %s: %s: %s", name, f.id, c.Reason, c.Message)...)
		}
		if c := meta.FindStatusCondition(node.Status.Conditions, networkingv1beta1.PodRangesKnown); c != nil && c.Status != metav1.ConditionTrue {
			found = append(found, failed("have the CNI give the pods of a node addresses that lie together",
				"node %s of cluster %s: %s: %s", name, f.id, c.Reason, c.Message)...)
		}
	}
	return found
}

func kernel(f, _ *facts) []finding {
	var found []finding
	for _, p := range slices.Concat(f.gateways, f.agents) {
		if p.diff != "" {
			first, _, _ := strings.Cut(p.diff, "\n")
			found = append(found, failed("see all and put it right with 'liqoctl network diff --repair'",
				"the kernel for pod %s of cluster %s is not as it should be: %s", p.pod.Name, f.id, first)...)
		}
	}
	return found
}

// ready is the condition Ready of a Connection.
func (f *facts) ready() *metav1.Condition {
	if f.connection == nil {
		return nil
	}
	return meta.FindStatusCondition(f.connection.Status.Conditions, corev1beta1.ConditionReady)
}

func tunnel(f, other *facts) []finding {
	ready := f.ready()
	switch {
	case ready == nil:
		return failed(seeReasons, "the gateway in cluster %s has not told how its tunnel is: there is no Connection", f.id)
	case f.connected() && other != nil && other.connection != nil && !other.connected():
		return warned("", "cluster %s says that the tunnel works, and %s says that it does not: the word of one of them is old", f.id, other.id)
	case f.connected() && (ready.Status == metav1.ConditionTrue || ready.Reason == networkingv1beta1.ReasonMTUTooSmall):
		return nil
	case ready.Reason == networkingv1beta1.ReasonNoHandshake:
		return noHandshake(f, other)
	}
	return failed(seeReasons, "the tunnel from cluster %s to %s: %s: %s", f.id, f.peer, ready.Reason, ready.Message)
}

// noHandshake says which way is closed.
func noHandshake(f, other *facts) []finding {
	if other != nil && (!f.knows(other.key) || !other.knows(f.key)) {
		return failed("give each the right one: "+connect, "the tunnel from cluster %s to %s: NoHandshake: the two ends do not know each other's keys", f.id, f.peer)
	}
	from, to := f, other
	if f.server != nil {
		from, to = other, f
	}
	if from == nil || from.client == nil {
		return failed("see that a firewall lets UDP to the gateway server pass, and give --remote-kubeconfig to have more looked at",
			"nothing comes from cluster %s to the gateway server in %s: NoHandshake", f.peer, f.id)
	}
	endpoint := from.client.Spec.Endpoint
	at := fmt.Sprintf("%s:%d", strings.Join(texts(endpoint.Addresses), ","), endpoint.Port)
	server := cmp.Or(from.peer, "")
	if to != nil && to.server != nil && to.server.Status.Endpoint != nil {
		e := to.server.Status.Endpoint
		aimed := func(h networkingv1beta1.Host) bool { return slices.Contains(endpoint.Addresses, h) }
		if e.Port != endpoint.Port || !slices.ContainsFunc(e.Addresses, aimed) {
			return failed("unless something translates it on the way, give the client the right one: "+connect,
				"the gateway client in cluster %s goes to UDP %s, but the gateway server in %s is at %s:%d",
				from.id, at, to.id, strings.Join(texts(e.Addresses), ","), e.Port)
		}
	}
	if found := slices.Concat(to.blocked(to.gatewayNodes()...), from.blocked(from.gatewayNodes()...)); len(found) > 0 {
		return found
	}
	return failed(fmt.Sprintf("let UDP port %d pass from the nodes of cluster %s to %s, and its answers back: "+
		"firewalls, security groups, and the load balancer's health", endpoint.Port, from.id, at),
		"UDP port %d of the gateway server in cluster %s is not reached from cluster %s at %s, or its answers do not come back (NoHandshake)",
		endpoint.Port, server, from.id, at)
}

func texts(hosts []networkingv1beta1.Host) []string {
	all := make([]string, len(hosts))
	for i, h := range hosts {
		all[i] = string(h)
	}
	return all
}

func packetSize(f, _ *facts) []finding {
	ready := f.ready()
	if ready == nil || !f.connected() {
		return skipped("there is no tunnel")
	}
	if ready.Reason == networkingv1beta1.ReasonMTUTooSmall {
		next := "let long UDP packets, and ICMP type 3 code 4, pass between the gateways, or ask for less with 'liqoctl network connect --mtu'"
		if ready.Status == metav1.ConditionTrue {
			return warned(next, "cluster %s: %s: %s", f.id, ready.Reason, ready.Message)
		}
		return failed(next, "cluster %s: %s: %s", f.id, ready.Reason, ready.Message)
	}
	return nil
}
