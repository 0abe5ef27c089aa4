package fabric

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

// maxPodRanges is how many ranges of pods an InternalNode has room for.
const maxPodRanges = 1024

// isPhysical tells whether a Node is a machine of this cluster.
func isPhysical(labels map[string]string) bool {
	return labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType
}

// observe writes down what is known of a node.
func observe(status *networkingv1beta1.InternalNodeStatus, node *corev1.Node, generation int64) {
	if address, ok := internalIP(node); ok {
		local, remote := address, address
		status.NodeIP = networkingv1beta1.InternalNodeStatusNodeIP{Local: &local, Remote: &remote}
	}
	var ranges []networkingv1beta1.CIDR
	for _, text := range podRanges(node) {
		if prefix, err := netip.ParsePrefix(text); err == nil && len(ranges) < maxPodRanges {
			ranges = append(ranges, networkingv1beta1.CIDR(prefix.Masked().String()))
		}
	}
	condition := metav1.Condition{
		Type: networkingv1beta1.PodRangesKnown, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: networkingv1beta1.ReasonNodeRangesRead, Message: "gateways send to the ranges of the Node",
	}
	if len(ranges) > 0 {
		status.PodRanges = ranges
	} else {
		condition.Status, condition.Reason = metav1.ConditionFalse, networkingv1beta1.ReasonPodRangesMissing
		condition.Message = "the Node has no spec.podCIDRs: peers do not reach its pods"
	}
	conditions.SetStandard(&status.Conditions, condition)
}

// podRanges are those of a Node's pods. A Node of one family may have them in the singular field alone.
func podRanges(node *corev1.Node) []string {
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		return []string{node.Spec.PodCIDR}
	}
	return node.Spec.PodCIDRs
}

// internalIP is the address under which pods and other nodes know a node.
func internalIP(node *corev1.Node) (networkingv1beta1.IP, bool) {
	for _, address := range node.Status.Addresses {
		if address.Type != corev1.NodeInternalIP {
			continue
		}
		if parsed, err := netip.ParseAddr(address.Address); err == nil {
			return networkingv1beta1.IP(parsed.Unmap().String()), true
		}
	}
	return "", false
}

// gateway is what an InternalFabric is made of.
type gateway struct {
	// address of its pod; empty if it has none.
	address networkingv1beta1.IP
	// configuration and connection are those of its peer; nil if there is none.
	configuration *networkingv1beta1.Configuration
	connection    *networkingv1beta1.Connection
}

// describe fills in what is known of a gateway; what is not stays as it is. It tells whether nodes can do something with it.
func (g gateway) describe(spec *networkingv1beta1.InternalFabricSpec) bool {
	if g.address != "" {
		spec.GatewayIP = g.address
	}
	if g.configuration != nil && g.configuration.Status.Remote != nil {
		seen := g.configuration.Status.Remote.CIDR
		spec.RemoteCIDRs = slices.Concat(seen.Pod, seen.External)
	}
	if g.connection != nil && g.connection.Status.MTU > 0 {
		spec.MTU = g.connection.Status.MTU
	}
	return spec.GatewayIP != "" && len(spec.RemoteCIDRs) > 0
}
