package gateway

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/fabric/agent"
)

// side follows the gateway object of one end of the tunnel.
type side interface {
	agent.Follower
	// own is the object; false if there is none.
	own() (own, bool)
}

// own is what a gateway's object tells.
type own struct {
	meta metav1.ObjectMeta
	kind string
	mtu  int
	// target is where a client was told to go.
	target target
	// active is the address of the pod, among those of the gateway, that has the tunnel; invalid as long as nobody said.
	active netip.Addr
	// rendered is what the object was rendered to.
	rendered corev1.ObjectReference
	end      networkingv1beta1.ConnectionType
}

type serverSide struct {
	*agent.Objects[networkingv1beta1.GatewayServer]
}

func (s serverSide) own() (own, bool) {
	o := s.One()
	if o == nil || !o.DeletionTimestamp.IsZero() {
		return own{}, false
	}
	return own{
		meta: o.ObjectMeta, kind: "GatewayServer", mtu: int(o.Spec.MTU), end: networkingv1beta1.ConnectionTypeServer, active: activeOf(o.Status.InternalEndpoint),
		rendered: renderedTo(o.Status.ServerRef, "WgGatewayServer", o.ObjectMeta),
	}, true
}

type clientSide struct {
	*agent.Objects[networkingv1beta1.GatewayClient]
}

func (s clientSide) own() (own, bool) {
	o := s.One()
	if o == nil || !o.DeletionTimestamp.IsZero() {
		return own{}, false
	}
	return own{
		meta: o.ObjectMeta, kind: "GatewayClient", mtu: int(o.Spec.MTU), end: networkingv1beta1.ConnectionTypeClient, active: activeOf(o.Status.InternalEndpoint),
		target:   target{o.Spec.Endpoint.Addresses, uint16(o.Spec.Endpoint.Port)}, //nolint:gosec // A port.
		rendered: renderedTo(o.Status.ClientRef, "WgGatewayClient", o.ObjectMeta),
	}, true
}

// activeOf is the address of the pod that has the tunnel, by what the controller manager said last.
func activeOf(said *networkingv1beta1.InternalGatewayEndpoint) netip.Addr {
	if said == nil || said.IP == nil {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(string(*said.IP))
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap()
}

// isAnothers tells whether another pod of the gateway has the tunnel, as while a version is rolled out: two that speak with the peer under one
// key take it from each other. Nodes know the other pod, so that nothing is lost by waiting until this one is named.
func (o own) isAnothers(pod netip.Addr) bool { return o.active.IsValid() && o.active != pod }

// renderedTo is what a gateway's object was rendered to, by what it says or by what is usual.
func renderedTo(said *corev1.ObjectReference, kind string, of metav1.ObjectMeta) corev1.ObjectReference {
	ref := corev1.ObjectReference{APIVersion: networkingv1beta1.GroupVersion.String(), Kind: kind, Namespace: of.Namespace, Name: of.Name}
	if said != nil && said.Kind != "" && said.Name != "" {
		ref.Kind, ref.Name = said.Kind, said.Name
	}
	return ref
}

// follow follows the object of a gateway's end.
func follow(o Options, changed func()) side {
	version := networkingv1beta1.GroupVersion
	if o.Pod.Server {
		return serverSide{agent.Follow[networkingv1beta1.GatewayServer](o.Cluster, version.WithResource("gatewayservers"), o.Namespace, o.Name, changed)}
	}
	return clientSide{agent.Follow[networkingv1beta1.GatewayClient](o.Cluster, version.WithResource("gatewayclients"), o.Namespace, o.Name, changed)}
}
