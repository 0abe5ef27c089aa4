package fabric

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/podaddress"
	"liqo.io/liqo/pkg/kube/conditions"
)

// maxPodRanges is how many ranges of pods an InternalNode has room for.
const maxPodRanges = 1024

// isPhysical tells whether a Node is a machine of this cluster.
func isPhysical(labels map[string]string) bool {
	return labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType
}

// observe writes down what is known of a node. strays are its pods that are not found by its ranges.
func observe(status *networkingv1beta1.InternalNodeStatus, node *corev1.Node, strays []netip.Prefix, generation int64) {
	if address, ok := internalIP(node); ok {
		local, remote := address, address
		status.NodeIP = networkingv1beta1.InternalNodeStatusNodeIP{Local: &local, Remote: &remote}
	}
	condition := metav1.Condition{
		Type: networkingv1beta1.PodRangesKnown, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: networkingv1beta1.ReasonNodeRangesRead, Message: "gateways send to the ranges of the Node",
	}
	all := prefixes(node)
	if len(strays) > 0 || len(all) == 0 {
		condition.Reason = networkingv1beta1.ReasonPodsRead
		condition.Message = "pods that are in no range of the Node (spec.podCIDRs) are named by their addresses"
	}
	// Where not all fit, those that hold the most are named, and the same each time.
	strays = slices.SortedFunc(slices.Values(strays), func(a, b netip.Prefix) int { return cmp.Or(a.Bits()-b.Bits(), a.Addr().Compare(b.Addr())) })
	if all = append(all, strays...); len(all) > maxPodRanges {
		condition.Status, condition.Reason = metav1.ConditionFalse, networkingv1beta1.ReasonTooManyPodRanges
		condition.Message = fmt.Sprintf("the addresses of the node's pods make %d ranges; peers do not reach those in the last %d", len(all), len(all)-maxPodRanges)
		all = all[:maxPodRanges]
	}
	status.PodRanges = nil
	for _, prefix := range all {
		status.PodRanges = append(status.PodRanges, networkingv1beta1.CIDR(prefix.String()))
	}
	conditions.SetStandard(&status.Conditions, condition)
}

// prefixes are the ranges of a Node's pods that make sense and that packets are carried to.
func prefixes(node *corev1.Node) (all []netip.Prefix) {
	for _, text := range podRanges(node) {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			all = append(all, prefix.Masked())
		}
	}
	return addressing.IPv4(all)
}

// holds tells whether an address is a pod's, of all those that may have it: it was given to the one that started last, if that is not going.
func holds(pod *corev1.Pod, claims []corev1.Pod) bool {
	among := false
	for i := range claims {
		switch {
		case claims[i].UID == pod.UID:
			among = true
		case precedes(&claims[i], pod):
			return false
		}
	}
	return among
}

// precedes orders the pods that claim one address: no two are equal.
func precedes(a, b *corev1.Pod) bool {
	if going := a.DeletionTimestamp != nil; going != (b.DeletionTimestamp != nil) {
		return !going
	}
	if !started(a).Equal(started(b)) {
		return started(b).Before(started(a))
	}
	return a.UID < b.UID
}

// started is when a pod started; who does not say so did before all others.
func started(pod *corev1.Pod) time.Time { return ptr.Deref(pod.Status.StartTime, metav1.Time{}).Time }

// samePlace tells whether two states of a pod say the same of its addresses.
func samePlace(a, b *corev1.Pod) bool {
	return a.UID == b.UID && a.Spec.NodeName == b.Spec.NodeName && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		a.Status.StartTime.Equal(b.Status.StartTime) && slices.Equal(podaddress.Of(a), podaddress.Of(b))
}

// merge writes addresses as few prefixes that hold nothing else. None becomes one that is taken: it would say the same of two nodes, where a
// longer one decides.
func merge(addresses []netip.Addr, taken map[netip.Prefix]bool) (merged []netip.Prefix) {
	slices.SortFunc(addresses, netip.Addr.Compare)
	for _, address := range slices.Compact(addresses) {
		merged = append(merged, netip.PrefixFrom(address, address.BitLen()))
		for n := len(merged); n > 1 && merged[n-1].Bits() == merged[n-2].Bits(); n = len(merged) {
			whole := netip.PrefixFrom(merged[n-2].Addr(), merged[n-1].Bits()-1)
			if whole.Masked() != whole || !whole.Contains(merged[n-1].Addr()) || taken[whole] {
				break
			}
			merged = append(merged[:n-2], whole)
		}
	}
	return merged
}

// podRanges are those of a Node's pods. A Node of one family may have them in the singular field alone.
func podRanges(node *corev1.Node) []string {
	if len(node.Spec.PodCIDRs) == 0 && node.Spec.PodCIDR != "" {
		return []string{node.Spec.PodCIDR}
	}
	return node.Spec.PodCIDRs
}

// internalIP is the address under which pods and other nodes know a node: the first one, of IPv4 if there is one.
func internalIP(node *corev1.Node) (networkingv1beta1.IP, bool) {
	var found netip.Addr
	for _, address := range node.Status.Addresses {
		parsed, err := netip.ParseAddr(address.Address)
		if parsed = parsed.Unmap(); err != nil || address.Type != corev1.NodeInternalIP {
			continue
		}
		if !found.IsValid() || !found.Is4() && parsed.Is4() {
			found = parsed
		}
	}
	return networkingv1beta1.IP(found.String()), found.IsValid()
}

// gateway is what an InternalFabric is made of.
type gateway struct {
	// address of its pod; empty if it has none. host is the node of that pod, whose kubelet says the address; empty if it is not known.
	address networkingv1beta1.IP
	host    string
	// taken says why the address cannot be that pod's; empty if it can.
	taken string
	// configuration and connection are those of its peer; nil if there is none.
	configuration *networkingv1beta1.Configuration
	connection    *networkingv1beta1.Connection
}

// nowhere is the address of a gateway that has no pod.
const nowhere networkingv1beta1.IP = "0.0.0.0"

// isLost tells whether the gateway has had no ready pod for so long that its Connection was taken back. What its status says of a pod is of one before.
func (g gateway) isLost() bool {
	if g.connection == nil {
		return false
	}
	ready := meta.FindStatusCondition(g.connection.Status.Conditions, corev1beta1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionUnknown && ready.Reason == networkingv1beta1.ReasonGatewayPodPending
}

// isWaiting tells whether the gateway says itself that it waits for what others have to give, above all the key of its peer. One that has just started
// has nothing in its kernel until then, and answers no node; one with a tunnel that is up answers.
func (g gateway) isWaiting() bool {
	if g.connection.Status.Value == networkingv1beta1.Connected {
		return false
	}
	ready := meta.FindStatusCondition(g.connection.Status.Conditions, corev1beta1.ConditionReady)
	return ready != nil && slices.Contains([]string{networkingv1beta1.ReasonKeyMissing, networkingv1beta1.ReasonIncomplete}, ready.Reason)
}

// whyTaken says why the address of the gateway's pod cannot be that pod's; empty if it can. The kubelet of the pod's node could name the gateway to
// another peer, and take its way from nodes, or a pod of another node, and have that speak for the peer. Whoever has the address keeps it, whatever
// kubelets say later; of two that have it, the elder.
func (g gateway) whyTaken(self *networkingv1beta1.InternalFabric, fabrics []networkingv1beta1.InternalFabric, nodes []networkingv1beta1.InternalNode) string {
	has := self.Spec.GatewayIP == g.address
	for i := range fabrics {
		other := &fabrics[i]
		if other.Spec.GatewayIP != g.address || client.ObjectKeyFromObject(other) == client.ObjectKeyFromObject(self) {
			continue
		}
		if !has || isElder(other, self) {
			return fmt.Sprintf("InternalFabric %s/%s has it", other.Namespace, other.Name)
		}
	}
	address, err := g.address.Addr()
	if err != nil || has || g.host == "" {
		return ""
	}
	if holders := hostsOf(address, nodes); len(holders) > 0 && !slices.Contains(holders, g.host) {
		return fmt.Sprintf("it is among those of the pods of node %s, and the gateway's pod is on node %s", holders[0], g.host)
	}
	return ""
}

// isElder tells whether the first of two InternalFabrics is the elder one.
func isElder(a, b *networkingv1beta1.InternalFabric) bool {
	made := a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	return cmp.Or(made, cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}

// hostsOf are the nodes that have a pod's address in their longest range around it.
func hostsOf(address netip.Addr, nodes []networkingv1beta1.InternalNode) (names []string) {
	longest := -1
	for i := range nodes {
		for _, text := range nodes[i].Status.PodRanges {
			prefix, err := text.Prefix()
			if err != nil || !prefix.Contains(address) || prefix.Bits() < longest {
				continue
			}
			if prefix.Bits() > longest {
				longest, names = prefix.Bits(), nil
			}
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

// describe fills in what is known of a gateway; what is not stays as it is, but the address of a pod that is gone. It tells whether nodes can do
// something with it.
func (g gateway) describe(spec *networkingv1beta1.InternalFabricSpec) bool {
	switch {
	case g.taken != "":
		spec.GatewayIP = nowhere
	case g.isLost():
		// Nodes take the overlay from that address: the CNI may give it to anybody's next pod.
		spec.GatewayIP = nowhere
	case g.address != "":
		spec.GatewayIP = g.address
	}
	if g.configuration != nil && g.configuration.Status.Remote != nil {
		seen := g.configuration.Status.Remote.CIDR
		spec.RemoteCIDRs = slices.Concat(seen.Pod, seen.External)
	}
	if g.connection != nil && g.connection.Status.MTU > 0 {
		spec.MTU = g.connection.Status.MTU
	}
	if g.connection != nil {
		spec.Waiting = g.isWaiting()
	}
	return spec.GatewayIP != "" && len(spec.RemoteCIDRs) > 0
}
