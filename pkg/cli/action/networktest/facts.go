package networktest

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
)

// facts are what one cluster knows of its network to a peer.
type facts struct {
	// id of the cluster, and that of its peer.
	id, peer string
	// enabled tells whether the network module is on, isolated whether peers reach shared pods alone.
	enabled, isolated bool
	// liqo is the namespace of Liqo there, overlayPort the UDP port between its nodes and gateways.
	liqo        string
	overlayPort int32
	own         network.Own

	configuration *networkingv1beta1.Configuration
	server        *networkingv1beta1.GatewayServer
	client        *networkingv1beta1.GatewayClient
	connection    *networkingv1beta1.Connection
	// peerKey is what the cluster was told of the other end's key.
	peerKey *networkingv1beta1.PublicKey
	// key is the public key of the cluster's gateway; nil if there is none.
	key []byte

	// nodes are the physical nodes of the cluster that are ready, internal what agents and controllers say of them, by name; off are those that
	// are not ready, with why.
	nodes    []string
	internal map[string]*networkingv1beta1.InternalNode
	off      map[string]string
	// gateways are the pods of the cluster's gateway to the peer, agents those of its nodes.
	gateways, agents []agentPod

	// targets are pods of the peer, as this cluster sees them; reached is what became of asking them, by the node that asked.
	targets []podTarget
	reached map[string]map[string]bool
}

// agentPod is the pod of an agent, and what it answers.
type agentPod struct {
	pod corev1.Pod
	// why it is not ready; empty if it is.
	why string
	// deaf is why it does not answer, sick what it says is wrong with it, diff how the kernel differs from what it wants.
	deaf, sick, diff string
	// obstacles are what of its node may keep packets from going on, line by line.
	obstacles string
}

// podTarget is a pod that answers whoever asks, with its node and its name there.
type podTarget struct {
	address    netip.Addr
	node, name string
}

// gateway is what the gateway's object says of itself.
func (f *facts) gateway() (kind string, meta *metav1.ObjectMeta, conditions []metav1.Condition) {
	switch {
	case f.server != nil:
		return "GatewayServer", &f.server.ObjectMeta, f.server.Status.Conditions
	case f.client != nil:
		return "GatewayClient", &f.client.ObjectMeta, f.client.Status.Conditions
	default:
		return "", nil, nil
	}
}

// connected tells whether the cluster says that its tunnel is up.
func (f *facts) connected() bool {
	return f.connection != nil && f.connection.Status.Value == networkingv1beta1.Connected
}
