package network

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
)

// isOwn tells whether a Network is one of this cluster's own ranges.
func isOwn(network *ipamv1alpha1.Network, namespace string) bool {
	return network.Namespace == namespace && network.Labels[ipamv1alpha1.NetworkTypeLabel] != ""
}

// peerOf names whom a Network is for: the peer, or the Network itself if it is nobody's.
func peerOf(network *ipamv1alpha1.Network) string {
	if peer := network.Labels[corev1beta1.RemoteClusterIDLabel]; peer != "" {
		return peer
	}
	return network.Namespace + "/" + network.Name
}

// given is the range that a Network holds.
func given(network *ipamv1alpha1.Network) (netip.Prefix, bool) {
	prefix, err := network.Status.CIDR.Prefix()
	return prefix, err == nil
}

// usedWithout is all that is in the way of a range for a Network: the own ranges, and what all other Networks hold. Missing names own ranges
// that are not known yet.
func usedWithout(self types.NamespacedName, all []ipamv1alpha1.Network, nodes []netip.Addr, o Options) (used addressing.Used, missing []string) {
	used = addressing.Used{
		Pods: o.Pods, Services: o.Services, External: o.External, Internal: o.Internal, Reserved: o.Reserved,
		Nodes: nodes, Peers: map[string][]netip.Prefix{},
	}
	known := map[string]bool{}
	for i := range all {
		other := &all[i]
		prefix, ok := given(other)
		if !ok || other.Namespace == self.Namespace && other.Name == self.Name {
			continue
		}
		kind := ""
		if isOwn(other, o.Namespace) {
			kind = other.Labels[ipamv1alpha1.NetworkTypeLabel]
			known[kind] = true
		}
		switch kind {
		case "":
			used.Peers[peerOf(other)] = append(used.Peers[peerOf(other)], prefix)
		case ipamv1alpha1.NetworkTypeExternal:
			used.External = append(used.External[:len(used.External):len(used.External)], prefix)
		case ipamv1alpha1.NetworkTypeInternal:
			used.Internal = append(used.Internal[:len(used.Internal):len(used.Internal)], prefix)
		default: // stands in the options
		}
	}
	for _, kind := range []string{ipamv1alpha1.NetworkTypeExternal, ipamv1alpha1.NetworkTypeInternal} {
		if !known[kind] {
			missing = append(missing, kind)
		}
	}
	return used, missing
}

// isElder tells whether the first of two Networks is the elder one.
func isElder(a, b *ipamv1alpha1.Network) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return strings.Compare(string(a.UID), string(b.UID)) < 0
}

// whoWasFirst returns the elder Network of a peer that holds what a Network holds too, or part of it; nil if there is none.
func whoWasFirst(self *ipamv1alpha1.Network, all []ipamv1alpha1.Network, namespace string) *ipamv1alpha1.Network {
	mine, ok := given(self)
	if !ok {
		return nil
	}
	for i := range all {
		other := &all[i]
		if other.UID == self.UID || isOwn(other, namespace) || !isElder(other, self) {
			continue
		}
		if prefix, ok := given(other); ok && prefix.Overlaps(mine) {
			return other
		}
	}
	return nil
}

// whyNotPeers says why a range cannot be a peer's; empty if it can.
func whyNotPeers(want string) string {
	if _, refused := addressing.Accept([]string{want}, addressing.Protected{}); len(refused) > 0 {
		return refused[0]
	}
	return ""
}

// nodeAddresses are those of all physical nodes.
func nodeAddresses(nodes []corev1.Node) (all []netip.Addr) {
	for i := range nodes {
		if nodes[i].Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType {
			continue
		}
		for _, address := range nodes[i].Status.Addresses {
			if parsed, err := netip.ParseAddr(address.Address); err == nil {
				all = append(all, parsed)
			}
		}
	}
	return all
}
