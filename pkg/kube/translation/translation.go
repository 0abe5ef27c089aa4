package translation

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/networking/inputs"
)

// Peer is how this cluster sees the addresses of a peer. The zero value is that of a peer without a Configuration.
type Peer struct {
	// Known says that there is a Configuration.
	Known bool
	// Pods are the ranges of the peer's pods, as the peer itself knows them.
	Pods []netip.Prefix
	// Own are all ranges of the peer, as the peer itself knows them, and Seen those under which this cluster reaches it. Without any it is not
	// known yet how this cluster sees the peer.
	Own, Seen []netip.Prefix
	// Ours are the ranges of this cluster. How the peer sees them only the peer knows.
	Ours []netip.Prefix
	// Mapping translates the peer's own addresses into those.
	addressing.Mapping
}

// Of reads a Configuration; nil is one that is not there. It fails as long as not all ranges of the peer are given one.
func Of(c *networkingv1beta1.Configuration) (Peer, error) {
	if c == nil {
		return Peer{}, nil
	}
	mapping, err := inputs.Mapping(c)
	if err != nil {
		return Peer{}, fmt.Errorf("reading Configuration %s/%s: %w", c.Namespace, c.Name, err)
	}
	// The Mapping was made of the same ranges.
	own, given, _ := inputs.Seen(c)
	pods, _ := networkingv1beta1.ClusterConfigCIDR{Pod: own.Pod}.Prefixes()
	seen, _ := given.Prefixes()
	all, _ := own.Prefixes()
	peer := Peer{Known: true, Pods: pods, Own: all, Seen: seen, Mapping: mapping}
	if c.Spec.Local != nil {
		peer.Ours, err = c.Spec.Local.CIDR.Prefixes()
	}
	if err != nil {
		return Peer{}, fmt.Errorf("reading Configuration %s/%s: %w", c.Namespace, c.Name, err)
	}
	return peer, nil
}

// Range returns what the peer calls a range of addresses that this cluster knows: one of the peer as the peer has it, one around both clusters
// or outside of them as it is. It returns false for what the peer sees by a translation of its own, for what means something else there, and for what
// is around the peer's addresses as one of the two knows them alone.
func (p Peer) Range(here netip.Prefix) (there netip.Prefix, known bool) {
	here = here.Masked()
	within := func(ranges []netip.Prefix) bool {
		return slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Bits() <= here.Bits() && r.Contains(here.Addr()) })
	}
	switch {
	case !p.Known || here.Bits() == 0:
		return here, true
	case within(p.Seen):
		own, ok := p.Restore(here.Addr())
		return netip.PrefixFrom(own, here.Bits()), ok
	case len(p.Seen) == 0 || within(p.Ours) || within(p.Own) || p.halfIn(here):
		return netip.Prefix{}, false
	}
	return here, true
}

// halfIn tells whether a range has addresses of the peer as one of the two clusters knows them alone.
func (p Peer) halfIn(r netip.Prefix) bool {
	for i, own := range p.Own {
		if r.Overlaps(own) != r.Overlaps(p.Seen[i]) {
			return true
		}
	}
	return false
}

// Find returns the Configuration of a peer, nil if there is none.
func Find(ctx context.Context, reader client.Reader, peer string) (*networkingv1beta1.Configuration, error) {
	var list networkingv1beta1.ConfigurationList
	if err := reader.List(ctx, &list, client.InNamespace(corev1beta1.TenantNamespacePrefix+peer)); err != nil {
		return nil, fmt.Errorf("listing the Configurations of cluster %q: %w", peer, err)
	}
	return inputs.OfPeer(list.Items, peer), nil
}

// Choose returns the one that counts of the Configurations of a peer; nil if there is none.
func Choose(all []*networkingv1beta1.Configuration, peer string) *networkingv1beta1.Configuration {
	values := make([]networkingv1beta1.Configuration, 0, len(all))
	for _, c := range all {
		values = append(values, *c)
	}
	return inputs.OfPeer(values, peer)
}

// Connected tells whether the tunnel to a peer is known to work.
func Connected(ctx context.Context, reader client.Reader, peer string) (bool, error) {
	var list networkingv1beta1.ConnectionList
	if err := reader.List(ctx, &list, client.InNamespace(corev1beta1.TenantNamespacePrefix+peer)); err != nil {
		return false, fmt.Errorf("listing the Connections of cluster %q: %w", peer, err)
	}
	return slices.ContainsFunc(list.Items, func(c networkingv1beta1.Connection) bool {
		return c.Labels[corev1beta1.RemoteClusterIDLabel] == peer && c.Status.Value == networkingv1beta1.Connected
	}), nil
}
