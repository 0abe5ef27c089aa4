package e2e

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/networking/inputs"
	"liqo.io/liqo/test/lab/network"
	"liqo.io/liqo/test/lab/spec"
)

// The tests of this file and of its neighbours are about the networks that Liqo connects, and are left out where it does not. rome and milan have
// two nodes each and the same ranges, naples has one node and ranges that nobody else has, and what is between them knows addresses of nodes only.
// The pod network of rome is routed and its kube-proxy works with nftables, that of milan is flannel and its kube-proxy works with iptables.
const (
	networkTests = "TestNetwork"
	// ownExternal is the external range of naples; the others have the default one.
	ownExternal = "10.32.0.0/16"
	proberName  = "prober"
	proberImage = "lab.liqo.io/prober:1"
	proberPort  = 8080
	// around is how long it may take until packets find their way again.
	around = time.Minute
)

// TestNetwork shows that pods of clusters with equal ranges reach each other, each way that pods are reached.
func TestNetwork(t *testing.T) {
	the.shared(t)
	const namespace = "probes"
	probes(t, namespace, the.rome, the.milan)
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"pods on every pair of nodes reach each other", func(t *testing.T) { everyPair(t, namespace, the.rome, the.milan) }},
		{"the host network of every node reaches pods", func(t *testing.T) { fromHosts(t, namespace) }},
		{"Services have pods of both clusters", services},
	} {
		if !t.Run(step.name, func(t *testing.T) { the.recordFailure(t); step.test(t) }) {
			return
		}
	}
}

// TestNetworkComesBack shows that packets find their way again when what carries them was away.
func TestNetworkComesBack(t *testing.T) {
	the.alone(t)
	const namespace = "anew"
	probes(t, namespace, the.rome, the.milan)
	for _, step := range []struct {
		name string
		test func(*testing.T)
	}{
		{"gateways and agents start anew", func(t *testing.T) { startAnew(t, namespace) }},
		{"a link that was cut works again", func(t *testing.T) { cutLink(t, namespace) }},
	} {
		if !t.Run(step.name, func(t *testing.T) { the.recordFailure(t); step.test(t) }) {
			return
		}
	}
}

// probes makes a namespace of probers in some clusters: one on each node, one in the host network of each.
func probes(t *testing.T, namespace string, clusters ...*side) {
	t.Helper()
	the.users.takes(t, namespace)
	for _, c := range clusters {
		c.creates(t, namespaceOf(namespace))
		c.sees(t, &corev1.ServiceAccount{ObjectMeta: named(namespace, "default")}, "the account of pods")
		t.Cleanup(func() { c.deletes(t, namespaceOf(namespace)) })
		for _, node := range c.ownNodes() {
			c.creates(t, probe(namespace, node, false), probe(namespace, "host-"+node, true))
		}
	}
}

// other is the other cluster of the pair.
func other(c *side) *side {
	if c == the.rome {
		return the.milan
	}
	return the.rome
}

func probing() corev1.PodSpec {
	grace := int64(0)
	main := container("")
	main.Image, main.Command, main.Args = proberImage, nil, []string{"serve"}
	main.ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(proberPort)}}, PeriodSeconds: 1,
	}
	return corev1.PodSpec{Containers: []corev1.Container{main}, TerminationGracePeriodSeconds: &grace}
}

// probe is a prober on a node, or in its host network.
func probe(namespace, name string, host bool) *corev1.Pod {
	pod := probing()
	pod.NodeName, pod.HostNetwork = strings.TrimPrefix(name, "host-"), host
	return podOf(namespace, name, pod)
}

// probe reads a pod that is ready, and so has an address.
func (c *side) probe(t *testing.T, namespace, name string) corev1.Pod {
	t.Helper()
	return c.ready(t, namespace, name, 1)[0]
}

// configuration is how a cluster and a peer see each other, as far as it knows.
func (c *side) configuration(t *testing.T, peer *side) *networkingv1beta1.Configuration {
	t.Helper()
	found := &networkingv1beta1.Configuration{ObjectMeta: ofPeer(peer)}
	c.reads(t, found)
	return found
}

// ofPeer is how the objects of the peering with a cluster are named.
func ofPeer(peer *side) metav1.ObjectMeta { return named("liqo-tenant-"+peer.name, peer.name) }

// seenAt is the address under which a cluster sees an address of a peer.
func seenAt(t *testing.T, c, peer *side, address string) string {
	t.Helper()
	mapping, err := inputs.Mapping(c.configuration(t, peer))
	if err != nil {
		t.Fatalf("how %s sees %s: %v", c.name, peer.name, err)
	}
	seen, ok := mapping.Translate(netip.MustParseAddr(address))
	if !ok {
		t.Fatalf("%s does not see %s of %s: %v", c.name, address, peer.name, mapping)
	}
	return seen.String()
}

// podMTU is the size of the largest packet from a pod, the gateway's among them, to another node of each cluster: flannel takes 50 bytes.
var podMTU = map[spec.CNI]int{spec.PTP: 1500, spec.Flannel: 1450}

// mtu is the size of the largest packet to a peer, as a cluster says once it was measured.
func (c *side) mtu(t *testing.T, peer *side) int {
	t.Helper()
	want := 1500
	for _, name := range []string{c.name, peer.name} {
		cluster, _ := the.lab.Spec().Cluster(name)
		want = min(want, podMTU[cluster.CNI]-dataplane.TunnelOverhead4)
	}
	want -= want % dataplane.Padding
	eventually(t, around, fmt.Sprintf("%s to say that packets to %s may have %d bytes", c.name, peer.name, want), func(ctx context.Context) (bool, string) {
		connection := &networkingv1beta1.Connection{ObjectMeta: ofPeer(peer)}
		err := c.Get(ctx, client.ObjectKeyFromObject(connection), connection)
		return err == nil && int(connection.Status.MTU) == want, fmt.Sprintf("%+v %v", connection.Status, err)
	})
	return want
}

// asks has a pod ask an address, until each of the answers is as wanted: a map from protocols to answers.
func (c *side) asks(t *testing.T, within time.Duration, namespace, pod, address string, size int, want map[string]string) {
	t.Helper()
	eventually(t, within, fmt.Sprintf("pod %s/%s of %s to reach %s", namespace, pod, c.name, address), func(context.Context) (bool, string) {
		o := the.kubectl(t, c, soon, "exec", "-n", namespace, pod, "--", "/"+proberName, "ask", address, fmt.Sprint(size))
		return o.code == 0 && containsAll(o.stdout, want), o.String()
	})
}

func containsAll(text string, want map[string]string) bool {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for what, answer := range want {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line+" ", what+" "+answer+" ") }) {
			return false
		}
	}
	return true
}

func addressOf(ip string) string { return net.JoinHostPort(ip, fmt.Sprint(proberPort)) }

// everyPair has each pod of two clusters ask each of the other one by TCP, by UDP, and with packets as large as they may be. That the answers
// name the pods, which may have equal addresses, shows that they are the right ones. Some of them are on their gateway's node.
func everyPair(t *testing.T, namespace string, a, b *side) {
	t.Helper()
	for _, ends := range [][2]*side{{a, b}, {b, a}} {
		c, peer := ends[0], ends[1]
		size := c.mtu(t, peer)
		for _, node := range c.ownNodes() {
			from := c.probe(t, namespace, node)
			for _, name := range peer.ownNodes() {
				to := peer.probe(t, namespace, name)
				answer := name + " " + seenAt(t, peer, c, from.Status.PodIP)
				c.asks(t, around, namespace, node, addressOf(seenAt(t, c, peer, to.Status.PodIP)), size,
					map[string]string{"tcp": answer, "udp": answer, "full": answer, "larger": "refused"})
			}
		}
	}
}

// fromHosts has the host network of each node ask each pod of the other cluster, which sees it under its node's address towards peers.
func fromHosts(t *testing.T, namespace string) {
	for _, c := range []*side{the.rome, the.milan} {
		size := c.mtu(t, other(c))
		for _, node := range c.ownNodes() {
			c.probe(t, namespace, "host-"+node)
			seen := c.seenNode(t, node)
			for _, peer := range other(c).ownNodes() {
				to := other(c).probe(t, namespace, peer)
				answer := peer + " " + seen
				c.asks(t, around, namespace, "host-"+node, addressOf(seenAt(t, c, other(c), to.Status.PodIP)), size,
					map[string]string{"tcp": answer, "udp": answer, "full": answer})
			}
		}
	}
}

// seenNode is the address under which the other cluster sees what comes from a node and is no pod's.
func (c *side) seenNode(t *testing.T, node string) string {
	t.Helper()
	internal := &networkingv1beta1.InternalNode{}
	internal.Name = node
	c.reads(t, internal)
	return seenAt(t, other(c), c, string(internal.Spec.Interface.Node.IP))
}

// services has an application with a pod at home and one at the provider, which ask each other by Services; by a node port, somebody
// outside does.
func services(t *testing.T) {
	const namespace = "counter"
	twin := the.offloaded(t, namespace)
	away, home := probing(), probing()
	away.NodeSelector, home.NodeName = remotely, the.rome.ownNodes()[0]
	the.rome.creates(t, one(namespace, "away", away), one(namespace, "home", home),
		serviceOf(namespace, "away", corev1.ServiceTypeNodePort), serviceOf(namespace, "home", corev1.ServiceTypeClusterIP))
	there, here := the.rome.probe(t, namespace, "away"), the.rome.probe(t, namespace, "home")
	remote := the.milan.ready(t, twin, "away", 1)[0]
	if want := seenAt(t, the.rome, the.milan, remote.Status.PodIP); there.Status.PodIP != want {
		t.Errorf("pod %s has the address %s at home, want %s", there.Name, there.Status.PodIP, want)
	}
	answers := func(name string) map[string]string { return map[string]string{"tcp": name, "udp": name} }
	the.rome.asks(t, around, namespace, here.Name, addressOf("away"), 0, answers(there.Name))
	the.rome.asks(t, around, namespace, there.Name, addressOf("home"), 0, answers(here.Name))

	service := serviceOf(namespace, "away", corev1.ServiceTypeNodePort)
	the.rome.reads(t, service)
	for _, node := range the.rome.ownNodes() {
		entrance := net.JoinHostPort(the.lab.Plan().Node(consumer, node).Address.String(), fmt.Sprint(service.Spec.Ports[0].NodePort))
		eventually(t, around, "an answer by node port "+entrance, func(ctx context.Context) (bool, string) { return dials(ctx, entrance, there.Name) })
	}
}

// dials checks that a prober of a name answers.
func dials(ctx context.Context, address, name string) (bool, string) {
	connection, err := (&net.Dialer{Timeout: 3 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false, err.Error()
	}
	defer connection.Close()
	_ = connection.SetReadDeadline(time.Now().Add(3 * time.Second))
	answer := make([]byte, len(name))
	n, err := connection.Read(answer)
	return string(answer[:n]) == name, fmt.Sprintf("%q %v", answer[:n], err)
}

func one(namespace, name string, pod corev1.PodSpec) *appsv1.Deployment {
	return deployment(namespace, name, 1, pod)
}

func serviceOf(namespace, name string, kind corev1.ServiceType) *corev1.Service {
	port := func(protocol corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{Name: strings.ToLower(string(protocol)), Protocol: protocol, Port: proberPort}
	}
	return &corev1.Service{ObjectMeta: named(namespace, name), Spec: corev1.ServiceSpec{
		Type: kind, Selector: map[string]string{appLabel: name}, Ports: []corev1.ServicePort{port(corev1.ProtocolTCP), port(corev1.ProtocolUDP)},
	}}
}

// startAnew replaces every gateway and agent, of both clusters at once.
func startAnew(t *testing.T, namespace string) {
	for _, c := range []*side{the.rome, the.milan} {
		for _, where := range []string{"liqo", "liqo-tenant-" + other(c).name} {
			pods, err := c.pods(t.Context(), where)
			if err != nil {
				t.Fatal(err)
			}
			for i := range pods {
				switch agentProgram(&pods[i]) {
				case "liqo-gateway":
					c.deletes(t, &pods[i], client.GracePeriodSeconds(0))
				case "liqo-fabric":
					// Another one on the same network of the node finds its port taken as long as this one runs.
					c.deletes(t, &pods[i])
				}
			}
		}
	}
	for _, c := range []*side{the.rome, the.milan} {
		c.agentsReady(t)
	}
	everyPair(t, namespace, the.rome, the.milan)
}

// cutLink cuts the link between the clusters, which has to be told of, and mends it.
func cutLink(t *testing.T, namespace string) {
	undo := brokenLink(network.Fault{Cut: true})(t)
	t.Cleanup(undo)
	for _, c := range []*side{the.rome, the.milan} {
		eventually(t, around, c.name+" to tell of it", c.connected(other(c).name, networkingv1beta1.ConnectionError))
	}
	undo()
	for _, c := range []*side{the.rome, the.milan} {
		eventually(t, around, c.name+" to be connected", c.connected(other(c).name, networkingv1beta1.Connected))
	}
	everyPair(t, namespace, the.rome, the.milan)
}

// connected checks what a cluster says of its connection.
func (c *side) connected(peer string, want networkingv1beta1.ConnectionStatusValue) check {
	return func(ctx context.Context) (bool, string) {
		connection := &networkingv1beta1.Connection{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "liqo-tenant-" + peer, Name: peer}, connection); err != nil {
			return false, err.Error()
		}
		return connection.Status.Value == want, fmt.Sprintf("%+v", connection.Status)
	}
}

// leavesNoNetwork ends the peering, and looks for what is left of it in the API servers and in the kernel of each node.
func leavesNoNetwork(t *testing.T) {
	the.settled(t)
	the.liqoctl(t, unhurried, the.pair("unpeer", "--delete-namespaces", "--skip-confirm")...).succeeds(t)
	the.peers = false
	for _, c := range []*side{the.rome, the.milan} {
		eventually(t, patience, "nothing of the peering to be left at "+c.name, c.noneLike(append([]string{
			"configurations.networking.liqo.io ", "connections.networking.liqo.io ", "gatewayservers.networking.liqo.io ", "gatewayclients.networking.liqo.io ",
			"internalfabrics.networking.liqo.io ", "publickeies.networking.liqo.io ", "/gw-",
		}, ofPeerings...)...))
		for _, node := range c.ownNodes() {
			eventually(t, patience, "nothing of the peering to be left on node "+node, c.kernelWithout(t, node, "cni-liqo", "proto 79"))
		}
	}
}

// kernelWithout checks that none of some words is in what the kernel has for a node.
func (c *side) kernelWithout(t *testing.T, node string, words ...string) check {
	return func(context.Context) (bool, string) {
		o := the.within(t, c, node, "sh", "-c", "ip -o link; ip rule; ip route show table all; nft --stateless list ruleset").succeeds(t)
		var left []string
		for line := range strings.SplitSeq(o.stdout, "\n") {
			if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) }) {
				left = append(left, line)
			}
		}
		return len(left) == 0, strings.Join(left, "\n")
	}
}
