package translation

import (
	"maps"
	"net/netip"
	"slices"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// Peers are how this cluster sees its peers, by cluster ID.
type Peers map[string]Peer

// PeersOf reads Configurations, each in the tenant namespace of its peer. A peer that does not have its ranges yet is known without any.
func PeersOf(all []*networkingv1beta1.Configuration) Peers {
	byPeer := map[string][]*networkingv1beta1.Configuration{}
	for _, c := range all {
		if peer := c.Labels[corev1beta1.RemoteClusterIDLabel]; peer != "" && c.Namespace == corev1beta1.TenantNamespacePrefix+peer {
			byPeer[peer] = append(byPeer[peer], c)
		}
	}
	peers := Peers{}
	for id, theirs := range byPeer {
		peer, err := Of(Choose(theirs, id))
		if err != nil {
			peer = Peer{Known: true}
		}
		peers[id] = peer
	}
	return peers
}

// Home tells whose pod has an address that this cluster sees, and which address the pod has there.
func (p Peers) Home(seen netip.Addr) (cluster string, own netip.Addr, found bool) {
	for _, id := range slices.Sorted(maps.Keys(p)) {
		if address, ok := p[id].Restore(seen); ok && addressing.Within(address, p[id].Pods) {
			return id, address, true
		}
	}
	return "", netip.Addr{}, false
}
