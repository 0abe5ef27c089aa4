package namespacemap

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
)

const (
	// policyName is the NetworkPolicy of a twin.
	policyName = "liqo"
	dnsPort    = 53
	// nodeLocalDNS is where NodeLocal DNSCache listens: the one link-local address that pods have business with.
	nodeLocalDNS = "169.254.20.10/32"
)

// Network says whom pods in twins may talk with.
type Network struct {
	// Isolate keeps them to pods of the same consumer, to DNS and to Peers, in both directions.
	Isolate bool
	// BlockMetadata keeps them from the metadata services of clouds, also where they are not isolated.
	BlockMetadata bool
	// Peers that isolated pods may talk with besides.
	Peers []networkingv1.NetworkPolicyPeer
}

// policy is the NetworkPolicy of a tenant's twins, nil for none.
func (n Network) policy(tenant corev1beta1.ClusterID) *networkingv1.NetworkPolicySpec {
	everywhere := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}
	udp, tcp, port := corev1.ProtocolUDP, corev1.ProtocolTCP, intstr.FromInt32(dnsPort)
	dns := networkingv1.NetworkPolicyEgressRule{
		To:    []networkingv1.NetworkPolicyPeer{everywhere, {IPBlock: &networkingv1.IPBlock{CIDR: nodeLocalDNS}}},
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: &udp, Port: ptr.To(port)}, {Protocol: &tcp, Port: ptr.To(port)}},
	}
	switch {
	case n.Isolate:
		peers := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
			corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: string(tenant)}}}}
		for i := range n.Peers {
			peers = append(peers, n.guard(n.Peers[i]))
		}
		return &networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: peers}},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: peers}, dns},
		}
	case n.BlockMetadata:
		// Some network plugins do not take pods for addresses, so they are named on their own.
		all := []networkingv1.NetworkPolicyPeer{everywhere}
		for _, cidr := range []string{"0.0.0.0/0", "::/0"} {
			all = append(all, n.guard(networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}))
		}
		return &networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress:      []networkingv1.NetworkPolicyEgressRule{{To: all}, dns},
		}
	}
	return nil
}

// guard takes the metadata services out of a range that lies around them.
func (n Network) guard(peer networkingv1.NetworkPolicyPeer) networkingv1.NetworkPolicyPeer {
	if peer.IPBlock == nil || !n.BlockMetadata {
		return peer
	}
	around, err := netip.ParsePrefix(peer.IPBlock.CIDR)
	if err != nil {
		return peer
	}
	block := peer.IPBlock.DeepCopy()
	for _, metadata := range addressing.Metadata() {
		if around.Overlaps(metadata) && around.Bits() < metadata.Bits() {
			block.Except = append(block.Except, metadata.String())
		}
	}
	return networkingv1.NetworkPolicyPeer{IPBlock: block}
}

// isolate keeps the NetworkPolicy of a twin.
func (r *reconciler) isolate(ctx context.Context, s *scope, ns *corev1.Namespace) error {
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: policyName, Labels: map[string]string{corev1beta1.ManagedLabel: "true"}},
	}
	keeper := keep.Keeper{Client: r.Client, Reader: r.Live, Reason: offloadingv1beta1.ReasonNamespaceConflict}
	want := r.Network.policy(s.tenant)
	if want == nil {
		return r.young(ns, keeper.Remove(ctx, policy))
	}
	policy.Spec = *want
	return r.young(ns, keeper.All(ctx, policy))
}
