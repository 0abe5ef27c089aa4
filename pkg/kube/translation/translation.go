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
	// Seen are the ranges under which this cluster reaches the peer.
	Seen []netip.Prefix
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
	return Peer{Known: true, Pods: pods, Seen: seen, Mapping: mapping}, nil
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
