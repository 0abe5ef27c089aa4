package shadowendpointslice

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/addressing"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/translation"
)

// mostDirect bounds, in bytes, what a consumer may write of other clusters: more than a slice of 1000 endpoints takes.
const mostDirect = 64 << 10

// Way is a network of this cluster's own to a cluster that is not the consumer.
type Way struct {
	// Peer is how this cluster sees that cluster.
	translation.Peer
	// Accepted are the ranges, as this cluster sees them, that it accepts of that cluster's pods.
	Accepted []netip.Prefix
	// Up says that the tunnel works.
	Up bool
}

// hint is what a consumer says of an endpoint: its cluster, and its address there.
type hint struct {
	cluster string
	address netip.Addr
}

// hints are what a consumer says of the first of so many endpoints. What cannot be understood as a whole says nothing.
func hints(shadow client.Object, endpoints int) (all []hint) {
	text := shadow.GetAnnotations()[offloadingv1beta1.DirectConnectionsDataAnnotation]
	if text == "" || len(text) > mostDirect {
		return nil
	}
	var said map[string][]string
	if json.Unmarshal([]byte(text), &said) != nil {
		return nil
	}
	for _, cluster := range slices.Sorted(maps.Keys(said)) {
		for _, address := range said[cluster] {
			parsed, err := netip.ParseAddr(address)
			if err != nil || len(all) == endpoints {
				return nil
			}
			all = append(all, hint{cluster, parsed})
		}
	}
	return all
}

// directly is how this cluster reaches the endpoint of a hint by a network of its own; false if that leads to no pod of that cluster.
func (k Knowledge) directly(h hint, family discoveryv1.AddressType) (seen string, up, found bool) {
	way, known := k.Direct[h.cluster]
	if !known || !addressing.Within(h.address, way.Pods) {
		return "", false, false
	}
	seen, found = published(h.address.String(), family, way.Mapping, way.Accepted)
	return seen, way.Up, found
}

// direct gathers this cluster's own networks to the clusters that hints name. One whose ranges are not known yet is no way.
func (r *reconciler) direct(ctx context.Context, all []hint, protected addressing.Protected) (map[string]Way, error) {
	if r.DenyDirect || !r.Networking {
		return nil, nil
	}
	ways := map[string]Way{}
	for _, h := range all {
		if _, known := ways[h.cluster]; known {
			continue
		}
		configuration, err := translation.Find(ctx, r.Client, h.cluster)
		if err != nil {
			return nil, err
		}
		way := Way{}
		if way.Peer, err = translation.Of(configuration); err == nil && way.Known {
			way.Accepted, _ = addressing.Accept(texts(way.Seen), protected)
			if way.Up, err = translation.Connected(ctx, r.Client, h.cluster); err != nil {
				return nil, err
			}
		}
		ways[h.cluster] = way
	}
	return ways, nil
}
