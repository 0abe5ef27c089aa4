package networktest

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
)

type cidrs = []networkingv1beta1.CIDR

func says(kind string, ready bool, reason string) []metav1.Condition {
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	return []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: "as said"}}
}

func runs(namespace, name, node string) agentPod {
	pod := agentPod{}
	pod.pod.Namespace, pod.pod.Name, pod.pod.Spec.NodeName, pod.pod.Status.Phase = namespace, name, node, corev1.PodRunning
	return pod
}

// publicKey is the one of a gateway, and the name of its object.
func publicKey(of string) *networkingv1beta1.PublicKey {
	return &networkingv1beta1.PublicKey{ObjectMeta: metav1.ObjectMeta{Name: of}, Spec: networkingv1beta1.PublicKeySpec{PublicKey: []byte(of)}}
}

// healthy is a cluster with two nodes whose network works.
func healthy(id, peer string, server bool) *facts {
	named := metav1.ObjectMeta{Name: peer}
	own := func() networkingv1beta1.ClusterConfigCIDR {
		return networkingv1beta1.ClusterConfigCIDR{Pod: cidrs{"10.244.0.0/16"}, External: cidrs{"10.70.0.0/16"}}
	}
	f := &facts{
		liqo: "liqo-here", overlayPort: 7777,
		id: id, peer: peer, enabled: true, own: network.Own{Pod: own().Pod, External: own().External}, key: []byte(id), peerKey: publicKey(peer),
		configuration: &networkingv1beta1.Configuration{ObjectMeta: named, Spec: networkingv1beta1.ConfigurationSpec{Remote: networkingv1beta1.ClusterConfig{CIDR: own()}}},
		connection:    &networkingv1beta1.Connection{ObjectMeta: named},
		nodes:         []string{id + "-1", id + "-2"}, internal: map[string]*networkingv1beta1.InternalNode{},
		gateways: []agentPod{runs("liqo-tenant-"+peer, "gw-"+peer, id+"-1")},
		targets:  []podTarget{{netip.MustParseAddr("10.61.1.1"), peer + "-1", "a/b"}, {netip.MustParseAddr("10.61.2.1"), peer + "-2", "a/c"}},
		reached:  map[string]map[string]bool{},
	}
	f.configuration.Status.Conditions = says(corev1beta1.ConditionReady, true, "Configured")
	f.connection.Status.Value, f.connection.Status.Conditions = networkingv1beta1.Connected, says(corev1beta1.ConditionReady, true, "Connected")
	if server {
		f.server = &networkingv1beta1.GatewayServer{ObjectMeta: named}
		f.server.Status.Conditions = says(corev1beta1.ConditionReady, true, "Provisioned")
		f.server.Status.Endpoint = &networkingv1beta1.EndpointStatus{Addresses: []networkingv1beta1.Host{"192.0.2.1"}, Port: 30123}
	} else {
		f.client = &networkingv1beta1.GatewayClient{ObjectMeta: named}
		f.client.Status.Conditions = says(corev1beta1.ConditionReady, true, "Provisioned")
		f.client.Spec.Endpoint = networkingv1beta1.ClientEndpoint{Addresses: []networkingv1beta1.Host{"192.0.2.1"}, Port: 30123}
	}
	for _, node := range f.nodes {
		f.internal[node] = &networkingv1beta1.InternalNode{Status: networkingv1beta1.InternalNodeStatus{Conditions: says(corev1beta1.ConditionReady, true, "Programmed")}}
		f.agents = append(f.agents, runs("liqo", "liqo-fabric-"+node, node))
		f.reached[node] = map[string]bool{"10.61.1.1": true, "10.61.2.1": true}
	}
	return f
}

func (f *facts) lost(reason string) {
	f.connection.Status.Value, f.connection.Status.Conditions = networkingv1beta1.ConnectionError, says(corev1beta1.ConditionReady, false, reason)
}

// What is wrong is named by the first thing that fails, in the order of causes.
func TestWhatIsWrongIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		hurt       func(rome, milan *facts)
		want, next string
	}{
		"nothing":                     {func(_, _ *facts) {}, "", ""},
		"the module is off":           {func(_, m *facts) { *m = facts{id: "milan", peer: "rome"} }, "module: the network module is off in cluster milan", "networking.enabled=true"},
		"never connected":             {func(r, _ *facts) { *r = facts{id: "rome", peer: "milan", enabled: true} }, "module: cluster rome is connected to no network of milan", "network connect"},
		"no Configuration":            {func(r, _ *facts) { r.configuration = nil }, "ranges: cluster rome was not told the ranges of milan: there is no Configuration with label liqo.io/remote-cluster-id=milan", "network connect"},
		"other ranges of pods":        {func(_, m *facts) { m.own.Pod = cidrs{"10.1.0.0/16"} }, "ranges: cluster rome was told that the pods of milan are in [10.244.0.0/16], but they are in [10.1.0.0/16]", "network init"},
		"another external range":      {func(_, m *facts) { m.own.External = cidrs{"10.1.0.0/16"} }, "ranges: cluster rome was told that the external range of milan", "network init"},
		"the pools are exhausted":     {func(r, _ *facts) { r.configuration.Status.Conditions = says("Ready", false, "PoolExhausted") }, "ranges: Configuration milan: PoolExhausted: as said", "liqoctl install --set ipam.pools={RANGE,...}"},
		"nobody looks at objects":     {func(r, _ *facts) { r.configuration.Generation = 2 }, "ranges: the controller manager has not looked at Configuration milan yet", "kubectl get pods -n liqo-here"},
		"no gateway":                  {func(r, _ *facts) { r.client = nil }, "gateway: cluster rome has no gateway to milan", "network connect"},
		"a server without an address": {func(_, m *facts) { m.server.Status.Conditions = says("Ready", false, "EndpointPending") }, "gateway: GatewayServer rome: EndpointPending: as said", "docs/troubleshooting.md"},
		"no key":                      {func(r, _ *facts) { r.peerKey = nil }, "keys: cluster rome does not know the key of the gateway in milan: there is no PublicKey with label liqo.io/remote-cluster-id=milan", "network connect"},
		"a wrong key":                 {func(r, _ *facts) { r.peerKey = publicKey("x"); r.lost("NoHandshake") }, "keys: cluster rome was told another key than the gateway in milan has: PublicKey x does not match", "network connect"},
		"a gateway without keys":      {func(_, m *facts) { m.key = nil }, "keys: the gateway in milan has no keys", ""},
		"no gateway pod":              {func(_, m *facts) { m.gateways = nil }, "gateway pod: there is no pod of the gateway to rome in cluster milan", "kubectl describe"},
		"a gateway pod that waits": {func(_, m *facts) {
			m.gateways[0].why = "Unschedulable: no node"
			m.server.Status.Conditions = says("Ready", false, "GatewayPodPending")
			m.lost("NoHandshake")
		}, "gateway pod: the gateway to rome in cluster milan is not ready: Unschedulable: no node", "kubectl logs"},
		"a gateway that stands still": {func(_, m *facts) { m.gateways[0].deaf = "no answer" }, "gateway pod: the gateway to rome in cluster milan does not answer, so nothing is repaired and what it says is old: no answer", "delete pod"},
		"an agent that is missing":    {func(_, m *facts) { m.agents = m.agents[:1] }, "agents: no agent runs on node milan-2 of cluster milan", "describe daemonset -n liqo-here liqo-fabric"},
		"no agents at all":            {func(_, m *facts) { m.agents = nil }, "agents: no agent runs on node milan-1 of cluster milan", "liqoctl install"},
		"an agent that is sick":       {func(r, _ *facts) { r.agents[0].sick = "the kernel refuses" }, "agents: the agent on node rome-1 of cluster rome says: the kernel refuses", "kubectl logs"},
		"a node that nobody knows":    {func(r, _ *facts) { delete(r.internal, "rome-2") }, "nodes: node rome-2 of cluster rome is not known to the network", "kubectl get pods -n liqo-here"},
		"a port that is in use":       {func(r, _ *facts) { r.internal["rome-2"].Status.Conditions = says("Ready", false, "PortInUse") }, "nodes: node rome-2 of cluster rome: PortInUse: as said", "docs/troubleshooting.md"},
		"a node whose pods are too scattered": {func(_, m *facts) {
			meta.SetStatusCondition(&m.internal["milan-1"].Status.Conditions, says(networkingv1beta1.PodRangesKnown, false, "TooManyPodRanges")[0])
		}, "nodes: node milan-1 of cluster milan: TooManyPodRanges: as said", "lie together"},
		"a kernel that differs": {func(r, _ *facts) { r.agents[1].diff = "- ip rule\n- ip route\n" }, "kernel: the kernel for pod liqo-fabric-rome-2 of cluster rome is not as it should be: - ip rule", "diff --repair"},
		"no Connection":         {func(r, _ *facts) { r.connection = nil }, "tunnel: the gateway in cluster rome has not told how its tunnel is", ""},
		"UDP that is blocked":   {func(r, m *facts) { r.lost("NoHandshake"); m.lost("NoHandshake") }, "tunnel: UDP port 30123 of the gateway server in cluster milan is not reached from cluster rome at 192.0.2.1:30123", "let UDP port 30123 pass from the nodes of cluster rome"},
		"a client that goes elsewhere": {func(r, m *facts) { r.client.Spec.Endpoint.Port = 1; r.lost("NoHandshake"); m.lost("NoHandshake") },
			"tunnel: the gateway client in cluster rome goes to UDP 192.0.2.1:1, but the gateway server in milan is at 192.0.2.1:30123", "network connect"},
		"a name without address":  {func(r, _ *facts) { r.lost("EndpointUnresolved") }, "tunnel: the tunnel from cluster rome to milan: EndpointUnresolved: as said", ""},
		"a way that is too small": {func(r, _ *facts) { r.connection.Status.Conditions = says("Ready", false, "MTUTooSmall") }, "packet size: cluster rome: MTUTooSmall: as said", "ICMP"},
		"a node without overlay": {func(r, m *facts) {
			r.reached["rome-2"] = map[string]bool{}
			for _, asked := range m.reached {
				delete(asked, "10.61.2.1")
			}
		}, "way: node rome-2 of cluster rome does not reach its gateway to milan (UDP 7777), while others do", "UDP port (networking.genevePort, 7777)"},
		"a node of the peer without overlay": {func(r, _ *facts) {
			for _, asked := range r.reached {
				delete(asked, "10.61.2.1")
			}
		}, "way: node milan-2 of cluster milan is not reached through its gateway to rome (UDP 7777), while others are", "UDP port (networking.genevePort, 7777)"},
		"a node of the peer that forwards nothing": {func(r, m *facts) {
			for _, asked := range r.reached {
				delete(asked, "10.61.2.1")
			}
			m.agents[1].obstacles = "net.ipv4.conf.eth0.forwarding is 0\n"
		}, "way: node milan-2 of cluster milan does not pass on what goes to rome, or comes from there: net.ipv4.conf.eth0.forwarding is 0", "ip_forward=1"},
		"nothing arrives, because of a firewall there": {func(r, m *facts) {
			r.reached = map[string]map[string]bool{"rome-1": {}, "rome-2": {}}
			m.agents[0].obstacles = "net.ipv4.conf.eth0.forwarding is 0\nchain FORWARD of the firewall's table filter drops what no rule accepts\n"
		}, "way: node milan-1 of cluster milan does not pass on what goes to rome, or comes from there: net.ipv4.conf.eth0.forwarding is 0; chain FORWARD", "rules"},
		"no handshake, because of the server's node": {func(r, m *facts) {
			m.agents[0].obstacles = "chain FORWARD of the firewall's table filter drops what no rule accepts\n"
			r.lost("NoHandshake")
			m.lost("NoHandshake")
		}, "tunnel: node milan-1 of cluster milan does not pass on", "rules"},
		"a firewall that drops, and all arrives": {func(_, m *facts) {
			m.agents[0].obstacles = "chain FORWARD of the firewall's table filter drops what no rule accepts\n"
		}, "", ""},
		"nothing arrives": {func(r, _ *facts) { r.reached = map[string]map[string]bool{"rome-1": {}, "rome-2": {}} }, "way: the tunnel works, but from cluster rome no pod of milan is reached, from no node", "both clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			rome, milan := healthy("rome", "milan", false), healthy("milan", "rome", true)
			tc.hurt(rome, milan)
			first := judge([]*facts{rome, milan}).First()
			switch {
			case tc.want == "" && first != nil:
				t.Errorf("found %+v", first)
			case tc.want != "" && (first == nil || !strings.HasPrefix(first.Name+": "+first.Message, tc.want) || !strings.Contains(first.Next, tc.next)):
				t.Errorf("found %+v, want %q, and then %q", first, tc.want, tc.next)
			}
		})
	}
}

// From one side what the other one knows is skipped, and nothing else.
func TestOneSideIsJudgedByItself(t *testing.T) {
	var skipped []string
	for _, c := range judge([]*facts{healthy("rome", "milan", false)}).Checks {
		if c.State != Passed {
			skipped = append(skipped, c.Name+" "+string(c.State))
		}
	}
	if got := strings.Join(skipped, ", "); got != "keys skipped, way skipped" {
		t.Error(got)
	}
	milan := healthy("milan", "rome", true)
	milan.lost("NoHandshake")
	if first := judge([]*facts{milan}).First(); first == nil || !strings.Contains(first.Message, "nothing comes from cluster rome") {
		t.Errorf("%+v", first)
	}
}

// What a cluster keeps to itself is no fault.
func TestIsolatedPodsAreNotAsked(t *testing.T) {
	rome, milan := healthy("rome", "milan", false), healthy("milan", "rome", true)
	milan.isolated, rome.reached, rome.targets = true, nil, nil
	for _, c := range judge([]*facts{rome, milan}).Checks {
		if want := c.Name == "way" && c.Cluster == "rome"; (c.State == Skipped) != want || c.State == Failed {
			t.Errorf("%+v", c)
		}
	}
}

// What works although something is not as it should be is told, and is no failure.
func TestWarnings(t *testing.T) {
	rome, milan := healthy("rome", "milan", false), healthy("milan", "rome", true)
	rome.internal["rome-1"].Status.Conditions = says("Ready", true, networkingv1beta1.ReasonOverwritten)
	rome.connection.Status.Conditions = says("Ready", true, networkingv1beta1.ReasonMTUTooSmall)
	// A node that is off is left out: its agent, and what that said last, say nothing of the network.
	off := &corev1.NodeList{Items: []corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "milan-1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "milan-2"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped posting node status."}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "liqo-rome", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}}},
	}}
	milan.physical(off.Items)
	milan.internal["milan-2"].Status.Conditions = says("Ready", false, networkingv1beta1.ReasonOverlaySilent)
	milan.agents[1].deaf = "no answer"
	report := judge([]*facts{rome, milan})
	var warnings []string
	for _, c := range report.Checks {
		if c.State == Warned {
			warnings = append(warnings, c.Name)
		}
		const why = "node milan-2 of cluster milan is left out: the node is not ready: NodeStatusUnknown: Kubelet stopped posting node status."
		if c.Name == "nodes" && c.Cluster == "milan" && !strings.Contains(c.Message, why) {
			t.Errorf("%+v", c)
		}
	}
	if report.First() != nil || strings.Join(warnings, " ") != "nodes nodes packet size" {
		t.Errorf("%+v, %v", report.First(), warnings)
	}
}
