package inputs

import (
	"net/netip"
	"slices"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	configv1alpha1 "liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/dataplane"
)

// GatewayObjects is what is known of a gateway and of what it connects.
type GatewayObjects struct {
	// Peer is the cluster at the other end.
	Peer string
	// Configuration, PublicKey and Fabric are those of the peer; nil if there is none.
	Configuration *networkingv1beta1.Configuration
	PublicKey     *networkingv1beta1.PublicKey
	Fabric        *networkingv1beta1.InternalFabric
	// Fabrics are all InternalFabrics of the cluster, the own one among them.
	Fabrics []networkingv1beta1.InternalFabric
	// Nodes are all InternalNodes, IPs all IP resources of the cluster.
	Nodes []networkingv1beta1.InternalNode
	IPs   []ipamv1alpha1.IP
	Pod   GatewayPod
}

// GatewayPod is what a gateway knows of itself.
type GatewayPod struct {
	// Address is that of its pod, Node the name of the node that it runs on, and Host that node's address, as long as it has no InternalNode.
	Address netip.Addr
	Node    string
	Host    netip.Addr
	// Server tells which end of the tunnel this is; Key is its public key.
	Server bool
	Key    dataplane.Key
	// Endpoint is where the other end is reached, if that is known; ListenPort is the UDP port of this end (0: any).
	Endpoint   netip.AddrPort
	ListenPort uint16
	// MTU is that of the pod, Wish the one that the user gave the tunnel (0: none); Port is the overlay's, of UDP.
	MTU, Wish int
	Port      uint16
	// PathMTU is the size of the largest packet that was found to get through the tunnel; 0 as long as that was not measured.
	PathMTU int
}

// TunnelMTU is the size of the largest packet that the gateway's tunnel takes, as far as it is known without measuring.
func (p GatewayPod) TunnelMTU() int {
	endpoint := p.Endpoint.Addr()
	if !endpoint.IsValid() {
		// The other end comes to this one, or its name is not resolved yet: most likely in the family that the pod has.
		endpoint = p.Address
	}
	return dataplane.TunnelMTU(endpoint, p.MTU, p.Wish)
}

// Gateway makes the input of a gateway.
func Gateway(objects GatewayObjects) (dataplane.GatewayInput, []dataplane.Problem, error) {
	var found problems
	pod := objects.Pod
	input := dataplane.GatewayInput{
		Address: pod.Address, Server: pod.Server, Key: pod.Key, Endpoint: pod.Endpoint, ListenPort: pod.ListenPort,
		MTU: pod.MTU, TunnelMTU: pod.TunnelMTU(), PathMTU: pod.PathMTU, Port: pod.Port, Host: pod.Host,
	}
	switch {
	case objects.Configuration == nil:
		return input, nil, incomplete("a Configuration with label %s=%s", corev1beta1.RemoteClusterIDLabel, objects.Peer)
	case objects.Configuration.Spec.Local == nil:
		return input, nil, incomplete("how the two clusters see each other (Configuration)")
	case objects.Fabric == nil:
		return input, nil, incomplete("the gateway's address towards peers (InternalFabric)")
	case objects.PublicKey == nil || len(objects.PublicKey.Spec.PublicKey) != len(input.PeerKey):
		return input, nil, incomplete("the key of the other end (PublicKey)")
	}
	input.PeerKey = dataplane.Key(objects.PublicKey.Spec.PublicKey)
	var err error
	if input.External, err = objects.Fabric.Spec.Interface.Gateway.IP.Addr(); err != nil {
		return input, nil, err
	}
	if input.Peer, err = found.peer(objects.Configuration); err != nil {
		return input, nil, err
	}
	input.Reach, err = objects.Configuration.Spec.Local.CIDR.Prefixes()
	if err != nil {
		found.add("Configuration %s: of this cluster: %v", objects.Configuration.Name, err)
	}
	// Who was told nothing yet keeps shut.
	input.Isolation.On = objects.Configuration.Status.Isolation != string(configv1alpha1.IsolationOpen)
	input.Isolation.Pods = found.sharedPods(objects.Configuration)
	for i := range objects.Nodes {
		node, ok := found.node(&objects.Nodes[i])
		if !ok {
			continue
		}
		input.Nodes = append(input.Nodes, node)
		if objects.Nodes[i].Name == pod.Node {
			input.Host = node.VTEP
		}
	}
	input.IPs = found.ips(objects.IPs)
	input.Transit = found.transit(objects, input.Reach)
	return input, found, nil
}

// transit are the gateways to other peers that this one may reach through this cluster: those whose ranges are announced to it, of them just
// these ranges.
func (p *problems) transit(objects GatewayObjects, announced []netip.Prefix) (all []dataplane.InternalFabric) {
	if !objects.Configuration.Spec.Transit {
		return nil
	}
	for i := range objects.Fabrics {
		other := &objects.Fabrics[i]
		if other.Namespace == objects.Fabric.Namespace && other.Name == objects.Fabric.Name {
			continue
		}
		fabric, ok := p.fabric(other, addressing.Protected{})
		if !ok || !fabric.Gateway.IsValid() {
			continue
		}
		fabric.Remote = slices.DeleteFunc(fabric.Remote, func(seen netip.Prefix) bool { return !slices.Contains(announced, seen) })
		if len(fabric.Remote) > 0 {
			all = append(all, fabric)
		}
	}
	return all
}

// sharedPods are those that a peer reaches where it is isolated. Pods of IPv6 are none that it could.
func (p *problems) sharedPods(configuration *networkingv1beta1.Configuration) (all []netip.Addr) {
	for _, text := range configuration.Status.SharedPods {
		address, err := netip.ParseAddr(string(text))
		if err != nil {
			p.add("Configuration %s: shared pod %.50q is no address", configuration.Name, string(text))
			continue
		}
		all = append(all, address)
	}
	return all
}

// peer are the ranges of a peer, each with how this cluster sees it. What it announces is hostile, whatever has judged it before.
func (p *problems) peer(configuration *networkingv1beta1.Configuration) (all []dataplane.Range, err error) {
	of := "Configuration " + configuration.Name
	own, seen, err := Seen(configuration)
	if err != nil {
		return nil, err
	}
	for _, pair := range []struct{ own, seen []networkingv1beta1.CIDR }{{own.Pod, seen.Pod}, {own.External, seen.External}} {
		if len(pair.own) != len(pair.seen) {
			p.add("%s: %d ranges of a kind are announced and %d have been given", of, len(pair.own), len(pair.seen))
			continue
		}
		for i := range pair.own {
			// One by one: what is accepted of a list has another order.
			own := p.accepted(of+", of the peer", pair.own[i:i+1], addressing.Protected{})
			seen := p.accepted(of+", as seen here", pair.seen[i:i+1], addressing.Protected{})
			if len(own) == 1 && len(seen) == 1 {
				all = append(all, dataplane.Range{Own: own[0], Seen: seen[0]})
			}
		}
	}
	return all, nil
}
