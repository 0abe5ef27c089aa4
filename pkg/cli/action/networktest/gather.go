package networktest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/cli/target"
	configv1alpha1 "liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/networking/inputs"
)

const (
	fabricProgram, gatewayProgram = "/usr/bin/liqo-fabric", "/usr/bin/liqo-gateway"
	gatewayComponent              = "gateway"
	// patience is how long an agent may take to answer.
	patience = 8 * time.Second
	// atOnce is how many agents are asked at a time.
	atOnce = 16
	// maxAnswer bounds what one says, in bytes: differences of a node with some thousand rules.
	maxAnswer = 1 << 20
	// perNode is how many pods of a node of the peer are asked.
	perNode = 2
)

// Streams run commands in pods.
type Streams = target.Streams

// gather reads what a cluster knows of its network to a peer.
func gather(ctx context.Context, c *target.Cluster, streams Streams, peer string) (*facts, error) {
	installation, err := c.RequireInstalled(ctx)
	if err != nil {
		return nil, err
	}
	f := &facts{
		id: installation.ClusterID, peer: peer, enabled: installation.Networking(), liqo: c.LiqoNamespace,
		internal: map[string]*networkingv1beta1.InternalNode{},
	}
	if !f.enabled {
		return f, nil
	}
	settings := installation.Config.Networking
	f.isolated, f.overlayPort = settings.Isolation == configv1alpha1.IsolationOffloaded, settings.GenevePort
	for _, read := range []func(context.Context, *target.Cluster) error{f.readObjects, f.readKeys, f.readNodes} {
		if err := read(ctx, c); err != nil {
			return nil, err
		}
	}
	if f.own, err = network.OwnRanges(ctx, c); err != nil {
		return nil, err
	}
	if f.agents, err = agentPods(ctx, c, c.LiqoNamespace, client.MatchingLabels{target.ComponentLabel: target.FabricComponent}); err != nil {
		return nil, err
	}
	f.gateways, err = agentPods(ctx, c, f.namespace(), client.MatchingLabels{
		networkingv1beta1.GatewayComponentLabel: gatewayComponent, corev1beta1.RemoteClusterIDLabel: peer,
	})
	if err != nil {
		return nil, err
	}
	askAll(f.agents, func(p *agentPod) {
		if p.ask(ctx, streams, fabricProgram); p.deaf == "" && p.pod.Status.Phase == corev1.PodRunning {
			// One of an earlier version does not know.
			p.obstacles, _, _ = p.run(ctx, streams, fabricProgram, obstaclesCommand)
		}
	})
	askAll(f.gateways, func(p *agentPod) { p.ask(ctx, streams, gatewayProgram) })
	return f, nil
}

func (f *facts) namespace() string { return corev1beta1.TenantNamespacePrefix + f.peer }

func (f *facts) readObjects(ctx context.Context, c *target.Cluster) error {
	configurations, keys := &networkingv1beta1.ConfigurationList{}, &networkingv1beta1.PublicKeyList{}
	servers, clients := &networkingv1beta1.GatewayServerList{}, &networkingv1beta1.GatewayClientList{}
	connections := &networkingv1beta1.ConnectionList{}
	for _, list := range []client.ObjectList{configurations, keys, servers, clients, connections} {
		if err := c.List(ctx, list, client.InNamespace(f.namespace())); err != nil {
			return err
		}
	}
	f.configuration, f.peerKey = inputs.OfPeer(configurations.Items, f.peer), inputs.OfPeer(keys.Items, f.peer)
	f.server, f.client = inputs.OfPeer(servers.Items, f.peer), inputs.OfPeer(clients.Items, f.peer)
	f.connection = inputs.OfPeer(connections.Items, f.peer)
	return nil
}

// readKeys reads the public key of the cluster's own gateway.
func (f *facts) readKeys(ctx context.Context, c *target.Cluster) error {
	var ref *corev1.ObjectReference
	switch {
	case f.server != nil:
		ref = f.server.Status.SecretRef
	case f.client != nil:
		ref = f.client.Status.SecretRef
	}
	if ref == nil {
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace(), Name: ref.Name}}
	there, err := c.Get(ctx, secret)
	if there {
		f.key = secret.Data[networkingv1beta1.PublicKeyKey]
	}
	return err
}

func (f *facts) readNodes(ctx context.Context, c *target.Cluster) error {
	nodes, internal := &corev1.NodeList{}, &networkingv1beta1.InternalNodeList{}
	for _, list := range []client.ObjectList{nodes, internal} {
		if err := c.List(ctx, list); err != nil {
			return err
		}
	}
	f.physical(nodes.Items)
	for i := range internal.Items {
		f.internal[internal.Items[i].Name] = &internal.Items[i]
	}
	return nil
}

// physical takes the nodes that are not virtual: of one that is off nothing can be said but that.
func (f *facts) physical(nodes []corev1.Node) {
	f.nodes, f.off = nil, map[string]string{}
	for i := range nodes {
		node := &nodes[i]
		why := diagnosis.WhyNodeNotReady(node)
		switch {
		case node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType:
		case why != "":
			f.off[node.Name] = why
		default:
			f.nodes = append(f.nodes, node.Name)
		}
	}
	slices.Sort(f.nodes)
}

func agentPods(ctx context.Context, c *target.Cluster, namespace string, labels client.MatchingLabels) ([]agentPod, error) {
	list := &corev1.PodList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), labels); err != nil {
		return nil, err
	}
	var pods []agentPod
	for i := range list.Items {
		if pod := list.Items[i]; pod.DeletionTimestamp == nil {
			pods = append(pods, agentPod{pod: pod, why: diagnosis.WhyNotReady(&pod)})
		}
	}
	return pods, nil
}

// askAll does something for each, several at a time.
func askAll(pods []agentPod, ask func(*agentPod)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range pods {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ask(&pods[i])
		})
	}
	group.Wait()
}

// ask asks an agent how it is, and how the kernel differs from what it wants.
func (p *agentPod) ask(ctx context.Context, streams Streams, program string) {
	if p.pod.Status.Phase != corev1.PodRunning {
		return
	}
	if _, said, err := p.run(ctx, streams, program, "health"); err != nil {
		if strings.Contains(said, "does not answer") || !exited(err) {
			p.deaf = said
			return
		}
		p.sick = said
	}
	diff, said, err := p.run(ctx, streams, program, "diff")
	var code exec.CodeExitError
	switch {
	case err == nil:
	case errors.As(err, &code) && code.Code == agent.ExitDiffers:
		p.diff = diff
	default:
		p.deaf = said
	}
}

// exited tells whether a command ran to its end.
func exited(err error) bool {
	var code exec.CodeExitError
	return errors.As(err, &code)
}

// run runs a command of the agent in its pod, and returns what it printed, and what it said when it failed.
func (p *agentPod) run(ctx context.Context, streams Streams, program string, args ...string) (out, said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := append([]string{program}, args...)
	for _, arg := range slices.Concat(p.pod.Spec.Containers[0].Command, p.pod.Spec.Containers[0].Args) {
		if strings.HasPrefix(arg, "--health-port=") && args[0] != reachCommand {
			command = append(command, arg)
		}
	}
	out, err = target.Answer(ctx, streams, p.pod.Namespace, p.pod.Name, command, maxAnswer)
	if err != nil {
		said = strings.TrimSpace(err.Error())
		if _, cause, ok := strings.Cut(said, "exit code "); ok {
			_, cause, _ = strings.Cut(cause, " ")
			said = strings.TrimSpace(cause)
		}
	}
	return out, said, err
}

const reachCommand = "reach"

// podsOf are some pods of each node of a cluster that answer whoever asks.
func podsOf(ctx context.Context, c *target.Cluster, f *facts) ([]podTarget, error) {
	pods, policies := &corev1.PodList{}, &networkingv1.NetworkPolicyList{}
	for _, list := range []client.ObjectList{pods, policies} {
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
	}
	count := map[string]int{}
	var all []podTarget
	for i := range pods.Items {
		pod := &pods.Items[i]
		policed := slices.ContainsFunc(policies.Items, func(p networkingv1.NetworkPolicy) bool { return p.Namespace == pod.Namespace })
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if err != nil || policed || pod.Spec.HostNetwork || pod.DeletionTimestamp != nil ||
			diagnosis.WhyNotReady(pod) != "" || pod.Status.Phase != corev1.PodRunning ||
			pod.Labels[networkingv1beta1.GatewayComponentLabel] != "" || !slices.Contains(f.nodes, pod.Spec.NodeName) || count[pod.Spec.NodeName] >= perNode {
			continue
		}
		count[pod.Spec.NodeName]++
		all = append(all, podTarget{address, pod.Spec.NodeName, pod.Namespace + "/" + pod.Name})
	}
	return all, nil
}

// reach has each node of a cluster ask some pods of its peer.
func (f *facts) reach(ctx context.Context, streams Streams, pods []podTarget) {
	if f.configuration == nil || !f.connected() {
		return
	}
	mapping, err := inputs.Mapping(f.configuration)
	if err != nil {
		return // Which the Configuration tells.
	}
	args := []string{reachCommand}
	for _, t := range pods {
		if seen, ok := mapping.Translate(t.address); ok {
			t.address = seen
			f.targets = append(f.targets, t)
			args = append(args, seen.String())
		}
	}
	if len(f.targets) == 0 {
		return
	}
	var mu sync.Mutex
	f.reached = map[string]map[string]bool{}
	askAll(f.agents, func(p *agentPod) {
		if p.pod.Status.Phase != corev1.PodRunning {
			return
		}
		out, _, err := p.run(ctx, streams, fabricProgram, args...)
		if err != nil {
			return
		}
		asked := map[string]bool{}
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); len(words) > 1 {
				asked[words[0]] = words[1] == agent.Reached
			}
		}
		mu.Lock()
		defer mu.Unlock()
		f.reached[p.pod.Spec.NodeName] = asked
	})
}
