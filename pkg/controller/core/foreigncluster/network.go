package foreigncluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
)

// Network is what exists of the network between this cluster and a peer.
type Network struct {
	// Configurations are the ranges of the two clusters.
	Configurations []networkingv1beta1.Configuration
	// Servers and Clients are this cluster's ends of the tunnel.
	Servers []networkingv1beta1.GatewayServer
	Clients []networkingv1beta1.GatewayClient
	// Connections are what the gateways tell of the tunnel.
	Connections []networkingv1beta1.Connection
	// Silent are this cluster's ready nodes that the gateway does not answer, in order.
	Silent []string
}

// Any tells whether there is anything of a network.
func (n *Network) Any() bool {
	return len(n.Configurations)+len(n.Servers)+len(n.Clients)+len(n.Connections) > 0
}

// network reads what exists of the network with one cluster, in its tenant namespace, and which nodes do not come into it.
func (r *reconciler) network(ctx context.Context, namespace string, id corev1beta1.ClusterID) (found Network, err error) {
	if !r.Networking {
		return found, nil
	}
	var (
		configurations networkingv1beta1.ConfigurationList
		servers        networkingv1beta1.GatewayServerList
		clients        networkingv1beta1.GatewayClientList
		connections    networkingv1beta1.ConnectionList
	)
	for _, list := range []client.ObjectList{&configurations, &servers, &clients, &connections} {
		if err := r.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return found, fmt.Errorf("listing %T in %s: %w", list, namespace, err)
		}
	}
	nodes := networkingv1beta1.InternalNodeList{}
	if err := r.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return found, fmt.Errorf("listing InternalNodes: %w", err)
	}
	var silent []string
	for i := range nodes.Items {
		if !slices.Contains(nodes.Items[i].Status.Silent, string(id)) {
			continue
		}
		node := &corev1.Node{}
		if err := r.Get(ctx, client.ObjectKeyFromObject(&nodes.Items[i]), node); client.IgnoreNotFound(err) != nil {
			return found, fmt.Errorf("reading Node %s: %w", nodes.Items[i].Name, err)
		}
		// The agent of a node that is off takes nothing back.
		if nodeReady(node) {
			silent = append(silent, node.Name)
		}
	}
	slices.Sort(silent)
	return Network{configurations.Items, servers.Items, clients.Items, connections.Items, silent}, nil
}

// ofNode finds the peers whose gateways do not answer a node.
func ofNode(_ context.Context, o client.Object) (all []ctrl.Request) {
	if node, ok := o.(*networkingv1beta1.InternalNode); ok {
		for _, id := range node.Status.Silent {
			all = append(all, ctrl.Request{NamespacedName: client.ObjectKey{Name: id}})
		}
	}
	return all
}

// ofMachine finds the peers whose gateways did not answer a Node when its agent last said so.
func (r *reconciler) ofMachine(ctx context.Context, o client.Object) []ctrl.Request {
	node := &networkingv1beta1.InternalNode{}
	if err := r.Get(ctx, client.ObjectKey{Name: o.GetName()}, node); err != nil {
		return nil // a virtual node, or one whose InternalNode comes with an event of its own
	}
	return ofNode(ctx, node)
}

// readinessChanged selects the changes of Nodes after which what their agents say counts, or counts no more.
var readinessChanged = watch.Changed(func(node *corev1.Node) any { return nodeReady(node) })

// silenceChanged selects the changes of nodes after which other gateways answer them than before.
var silenceChanged = watch.Changed(func(node *networkingv1beta1.InternalNode) any { return node.Status.Silent })

// observations tell what of the network works; none if there is none. cutOff says that the peer's reach was revoked: then there is to be none.
func (n *Network) observations(cutOff string) []observation {
	if !n.Any() {
		return nil
	}
	all := []observation{n.configuration(), n.presence(cutOff)}
	if len(n.Servers) > 0 {
		var states []state
		for i := range n.Servers {
			states = append(states, state{"GatewayServer " + n.Servers[i].Name, n.Servers[i].Status.Conditions})
		}
		all = append(all, gateways(corev1beta1.NetworkGatewayServerStatus, states))
	}
	if len(n.Clients) > 0 {
		var states []state
		for i := range n.Clients {
			states = append(states, state{"GatewayClient " + n.Clients[i].Name, n.Clients[i].Status.Conditions})
		}
		all = append(all, gateways(corev1beta1.NetworkGatewayClientStatus, states))
	}
	if len(n.Servers)+len(n.Clients) > 0 {
		all = append(all, n.connection())
	}
	return all
}

// state is what an object of the network tells of itself.
type state struct {
	name       string
	conditions []metav1.Condition
}

// why is the reason and the words why it is not ready; both are empty if it is.
func (s state) why(reason, message string) (string, string) {
	ready := meta.FindStatusCondition(s.conditions, corev1beta1.ConditionReady)
	switch {
	case ready == nil:
		return reason, fmt.Sprintf("%s: %s", s.name, message)
	case ready.Status != metav1.ConditionTrue:
		return cmp.Or(ready.Reason, reason), fmt.Sprintf("%s: %s", s.name, cmp.Or(ready.Message, message))
	default:
		return "", ""
	}
}

// configuration tells whether it is known how the two clusters see each other.
func (n *Network) configuration() observation {
	const kind = corev1beta1.NetworkConfigurationStatus
	for i := range n.Configurations {
		c := &n.Configurations[i]
		if reason, why := (state{"Configuration " + c.Name, c.Status.Conditions}).why(
			corev1beta1.ReasonNetworkNotConfigured, "waiting for the ranges under which the peer is seen"); why != "" {
			return observation{kind, corev1beta1.StatusPending, reason, why}
		}
	}
	if len(n.Configurations) == 0 {
		return observation{kind, corev1beta1.StatusPending, corev1beta1.ReasonNetworkNotConfigured,
			"the ranges of the two clusters were not exchanged: there is no Configuration"}
	}
	return observation{kind, corev1beta1.StatusEstablished, corev1beta1.ReasonNetworkConfigured, "each range of the peer has one under which it is seen here"}
}

// presence tells whether there is a gateway at all.
func (n *Network) presence(cutOff string) observation {
	if len(n.Servers)+len(n.Clients) == 0 && cutOff != "" {
		return observation{corev1beta1.NetworkGatewayPresence, corev1beta1.StatusPending, corev1beta1.ReasonCutOff, cutOff}
	}
	if len(n.Servers)+len(n.Clients) == 0 {
		return observation{corev1beta1.NetworkGatewayPresence, corev1beta1.StatusPending, corev1beta1.ReasonGatewayMissing,
			"there is no gateway to the peer: liqoctl network connect makes one"}
	}
	return observation{corev1beta1.NetworkGatewayPresence, corev1beta1.StatusEstablished, corev1beta1.ReasonGatewayReady, "there is a gateway to the peer"}
}

// gateways tell whether the gateways of one side run.
func gateways(kind string, all []state) observation {
	o, down := observation{kind, corev1beta1.StatusReady, corev1beta1.ReasonGatewayReady, "the gateway runs"}, 0
	for _, gateway := range all {
		if reason, why := gateway.why(corev1beta1.ReasonGatewayNotReady, "waiting for the gateway to run"); why != "" {
			o.reason, o.message = reason, why
			down++
		}
	}
	switch {
	case down == len(all):
		o.status = corev1beta1.StatusNotReady
	case down > 0:
		o.status = corev1beta1.StatusSomeNotReady
	}
	return o
}

// connection tells whether the other end of the tunnel answers, and then whether all nodes of this cluster come into it. Nodes that do not are never
// all of it: the tunnel is there for what others send.
func (n *Network) connection() observation {
	o := observation{corev1beta1.NetworkConnectionStatus, corev1beta1.StatusNotReady, corev1beta1.ReasonTunnelNotConnected,
		"the gateway has not told of its tunnel yet: there is no Connection"}
	for i := range n.Connections {
		c := &n.Connections[i]
		reason, why := (state{"Connection " + c.Name, c.Status.Conditions}).why(corev1beta1.ReasonTunnelNotConnected,
			"waiting for the other end of the tunnel to answer")
		switch c.State() {
		case networkingv1beta1.Connected:
			if len(n.Silent) > 0 {
				return observation{o.kind, corev1beta1.StatusSomeNotReady, networkingv1beta1.ReasonOverlaySilent, silence(n.Silent)}
			}
			return observation{o.kind, corev1beta1.StatusEstablished, corev1beta1.ReasonTunnelConnected, "the other end of the tunnel answers"}
		case networkingv1beta1.ConnectionError:
			o.status, o.reason = corev1beta1.StatusError, cmp.Or(reason, corev1beta1.ReasonTunnelNotConnected)
			o.message = cmp.Or(why, "the other end of the tunnel answers no more")
		default:
			o.status, o.reason = corev1beta1.StatusPending, cmp.Or(reason, corev1beta1.ReasonTunnelNotConnected)
			o.message = cmp.Or(why, "waiting for the other end of the tunnel to answer")
		}
	}
	return o
}

// silence says which nodes come into no tunnel. Their InternalNodes say more.
func silence(nodes []string) string {
	who, which := "InternalNode "+nodes[0]+" says", "the node is"
	if more := len(nodes) - 1; more > 0 {
		who, which = fmt.Sprintf("%d InternalNodes (%s and %d more) say", len(nodes), nodes[0], more), "their nodes are"
	}
	return fmt.Sprintf("%s %s: %s not answered through the overlay by the gateway to the peer", who, networkingv1beta1.ReasonOverlaySilent, which)
}
