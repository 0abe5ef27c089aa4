package network

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
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

// surroundings are what may be in the way of a range.
type surroundings struct {
	// networks are all Networks.
	networks []ipamv1alpha1.Network
	// nodes are the addresses of this cluster's nodes and API servers, around the networks that nodes are in.
	nodes  []netip.Addr
	around []netip.Prefix
	// fabrics are all InternalFabrics: nodes send what is for their ranges to peers, whatever Networks say.
	fabrics []networkingv1beta1.InternalFabric
}

// usedWithout is all that is in the way of a range for a Network: the own ranges, what all other Networks hold, and what is around. Missing names
// own ranges that are not known yet.
func (s surroundings) usedWithout(self *ipamv1alpha1.Network, o Options) (used addressing.Used, missing []string) {
	used = addressing.Used{
		Pods: o.Pods, Services: o.Services, External: o.External, Internal: o.Internal, Reserved: slices.Clone(o.Reserved),
		Nodes: s.nodes, Networks: s.around, Peers: s.inUse(peerOf(self)),
	}
	known := map[string]bool{}
	for i := range s.networks {
		other := &s.networks[i]
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
		case ipamv1alpha1.NetworkTypeReserved:
			used.Reserved = append(used.Reserved, prefix)
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

// inUse are the ranges for which there are ways to peers, by cluster ID, without those of one peer.
func (s surroundings) inUse(without string) map[string][]netip.Prefix {
	ranges := map[string][]netip.Prefix{}
	for i := range s.fabrics {
		peer := s.fabrics[i].Labels[corev1beta1.RemoteClusterIDLabel]
		if peer == without {
			continue
		}
		for _, text := range s.fabrics[i].Spec.RemoteCIDRs {
			if prefix, err := text.Prefix(); err == nil {
				ranges[peer] = append(ranges[peer], prefix)
			}
		}
	}
	return ranges
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

// keeps tells whether a Network stays with the range that it was given: nobody had it before.
func (s surroundings) keeps(network *ipamv1alpha1.Network, namespace string) bool {
	_, ok := given(network)
	return ok && whoWasFirst(network, s.networks, namespace) == nil
}

// inside returns the address of a node that is in the range of a Network, if there is one. The range stays all the same: what address a node has its
// kubelet says, and no connection to the peer would survive a move.
func (s surroundings) inside(network *ipamv1alpha1.Network) (netip.Addr, bool) {
	prefix, ok := given(network)
	if !ok {
		return netip.Addr{}, false
	}
	// Nodes come in any order; of several the same one is named each time.
	var first netip.Addr
	for _, address := range s.nodes {
		if prefix.Contains(address) && (!first.IsValid() || address.Less(first)) {
			first = address
		}
	}
	return first, first.IsValid()
}

// whyNotPeers says why a range cannot be a peer's; empty if it can.
func whyNotPeers(want string) string {
	if _, refused := addressing.Accept([]string{want}, addressing.Protected{}); len(refused) > 0 {
		return refused[0]
	}
	return ""
}

// mostOfNode is how many addresses of one node count. Around each no peer is given a range, and its kubelet says them; nodes with more than one
// have one of each family, or one of each network interface.
const mostOfNode = 8

// addressesOf are the internal ones of all physical nodes, and those of the API servers.
func addressesOf(nodes []corev1.Node, apiServers []discoveryv1.EndpointSlice) (all []netip.Addr) {
	add := func(text string) {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, address)
		}
	}
	for i := range nodes {
		if nodes[i].Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType {
			continue
		}
		counted := 0
		for _, address := range nodes[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP && counted < mostOfNode {
				counted++
				add(address.Address)
			}
		}
	}
	for i := range apiServers {
		for _, endpoint := range apiServers[i].Endpoints {
			for _, address := range endpoint.Addresses {
				add(address)
			}
		}
	}
	return all
}

// How wide networks of a node may be, in bits, to be kept free of peers. Each node's agent tells them; wider ones would leave no room.
const (
	// widest is that of the one around the node's address: none is wider than the largest private range of IPv4.
	widest = 8
	// widestBeside is that of the others, such as one for storage, of which mostBeside count of one node.
	widestBeside, mostBeside = 16, 4
)

// networksOf are those that nodes are in.
func networksOf(nodes []networkingv1beta1.InternalNode) (all []netip.Prefix) {
	for i := range nodes {
		if nodes[i].Status.NodeIP.Remote == nil {
			continue
		}
		address, err := nodes[i].Status.NodeIP.Remote.Addr()
		if err != nil {
			continue
		}
		beside := 0
		for _, text := range nodes[i].Status.Networks {
			prefix, err := text.Prefix()
			if err != nil || prefix.Bits() < widest || slices.Contains(all, prefix) {
				continue
			}
			if !prefix.Contains(address) {
				if beside++; prefix.Bits() < widestBeside || beside > mostBeside {
					continue
				}
			}
			all = append(all, prefix)
		}
	}
	return all
}
