package inputs

import (
	"fmt"
	"net/netip"

	"liqo.io/liqo/pkg/addressing"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// NodeObjects is what is known of a node and of what it has to reach.
type NodeObjects struct {
	// Self is the node's own InternalNode; nil if there is none.
	Self *networkingv1beta1.InternalNode
	// Fabrics are all InternalFabrics of the cluster, IPs all IP resources.
	Fabrics []networkingv1beta1.InternalFabric
	IPs     []ipamv1alpha1.IP
	// MTU is that of the network between the nodes, in bytes; Port the overlay's, of UDP.
	MTU  int
	Port uint16
}

// Node makes the input of a node. Without a fabric that can be used, a node needs nothing, and nothing is asked of its own InternalNode.
func Node(objects NodeObjects) (dataplane.NodeInput, []dataplane.Problem, error) {
	var found problems
	input := dataplane.NodeInput{MTU: objects.MTU, Port: objects.Port}
	self, ok := dataplane.InternalNode{}, false
	if objects.Self != nil {
		self, ok = found.node(objects.Self)
	}
	input.Self = self
	protected := addressing.Protected{Prefixes: self.Pods}
	if ok {
		protected.Addresses = []netip.Addr{self.VTEP, self.External}
	}
	for i := range objects.Fabrics {
		if fabric, ok := found.fabric(&objects.Fabrics[i], protected); ok {
			input.Fabrics = append(input.Fabrics, fabric)
		}
	}
	switch {
	case len(input.Fabrics) == 0:
	case !ok:
		return input, found, incomplete("a usable address of this node (InternalNode)")
	case objects.MTU == 0:
		return input, found, incomplete("the MTU of the network between the nodes")
	}
	input.IPs = found.ips(objects.IPs)
	return input, found, nil
}

// gateway reads the address of a gateway, which is invalid if that has no pod; false if it is left out.
func (p *problems) gateway(of string, text networkingv1beta1.IP) (netip.Addr, bool) {
	if address, err := text.Addr(); err == nil && address == netip.IPv4Unspecified() {
		return netip.Addr{}, true
	}
	return p.host(of, text)
}

// fabric reads an InternalFabric; false if it cannot be used, or not yet.
func (p *problems) fabric(object *networkingv1beta1.InternalFabric, protected addressing.Protected) (dataplane.InternalFabric, bool) {
	of := fmt.Sprintf("InternalFabric %s/%s", object.Namespace, object.Name)
	if object.Spec.MTU == 0 {
		return dataplane.InternalFabric{}, false
	}
	gateway, ok := p.gateway(of, object.Spec.GatewayIP)
	if !ok {
		return dataplane.InternalFabric{}, false
	}
	external, _ := object.Spec.Interface.Gateway.IP.Addr() // Without it, the gateway is not asked.
	remote := p.accepted(of, object.Spec.RemoteCIDRs, protected)
	return dataplane.InternalFabric{Gateway: gateway, External: external, Remote: remote, MTU: int(object.Spec.MTU)}, true
}
