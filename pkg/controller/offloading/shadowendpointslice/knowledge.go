package shadowendpointslice

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/addressing"
	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/translation"
)

// knowledge gathers what is known of the consumer of a ShadowEndpointSlice. Everything is read from caches that are in step.
func (r *reconciler) knowledge(ctx context.Context, shadow *offloadingv1beta1.ShadowEndpointSlice) (Knowledge, error) {
	consumer, others := shadow.Labels[offloadingv1beta1.OriginLabel], hints(shadow, len(shadow.Spec.Template.Endpoints))
	peer, err := r.peer(ctx, consumer)
	if err != nil {
		return Knowledge{}, err
	}
	ranges, err := r.ranges(ctx, consumer, peer)
	if err != nil {
		return Knowledge{}, err
	}
	protected := addressing.Protected{Prefixes: r.Own}
	if len(ranges)+len(others) > 0 {
		if protected.Addresses, err = r.nodes(ctx); err != nil {
			return Knowledge{}, err
		}
	}
	know := Knowledge{Mapping: peer.Mapping}
	know.Accepted, know.Refused = addressing.Accept(ranges, protected)
	if know.Direct, err = r.direct(ctx, others, protected); err != nil {
		return Knowledge{}, err
	}
	know.Down, err = r.down(ctx, consumer, peer)
	return know, err
}

// ranges are those in which this cluster reaches a consumer's pods: by the consumer's Configuration, or else by what it announces.
func (r *reconciler) ranges(ctx context.Context, consumer string, peer translation.Peer) ([]string, error) {
	if !peer.Known {
		return r.announced(ctx, consumer)
	}
	return texts(peer.Seen), nil
}

func texts(prefixes []netip.Prefix) []string {
	texts := make([]string, 0, len(prefixes))
	for _, prefix := range prefixes {
		texts = append(texts, prefix.String())
	}
	return texts
}

// peer is how this cluster sees a consumer. What was published stays while that is not known.
func (r *reconciler) peer(ctx context.Context, consumer string) (translation.Peer, error) {
	if !r.Networking {
		return translation.Peer{}, nil
	}
	configuration, err := translation.Find(ctx, r.Client, consumer)
	if err != nil {
		return translation.Peer{}, err
	}
	peer, err := translation.Of(configuration)
	if err != nil {
		return translation.Peer{}, reconcile.Wait(offloadingv1beta1.ReasonRangesPending, err.Error(), reconcile.RefusedRetry)
	}
	return peer, nil
}

// announced are the ranges that a consumer's ResourceSlices announce.
func (r *reconciler) announced(ctx context.Context, consumer string) ([]string, error) {
	var list authv1beta1.ResourceSliceList
	err := r.List(ctx, &list, client.MatchingLabels{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: consumer})
	if err != nil {
		return nil, fmt.Errorf("listing the ResourceSlices of cluster %q: %w", consumer, err)
	}
	seen := map[string]bool{}
	var announced []string
	for i := range list.Items {
		for _, text := range list.Items[i].Spec.PodCIDRs {
			if !seen[text] {
				seen[text] = true
				announced = append(announced, text)
			}
		}
	}
	return announced, nil
}

// nodes are the addresses of this cluster's nodes.
func (r *reconciler) nodes(ctx context.Context) ([]netip.Addr, error) {
	var list corev1.NodeList
	// The nodes are only looked at.
	if err := r.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes, whose addresses no consumer may claim: %w", err)
	}
	var addresses []netip.Addr
	for i := range list.Items {
		addresses = append(addresses, addressesOf(&list.Items[i])...)
	}
	return addresses, nil
}

func addressesOf(node *corev1.Node) []netip.Addr {
	var addresses []netip.Addr
	for _, address := range node.Status.Addresses {
		if parsed, err := netip.ParseAddr(address.Address); err == nil {
			addresses = append(addresses, parsed)
		}
	}
	return addresses
}

// down tells whether the way to a consumer is known not to work. One that has a Configuration is reached through its tunnel alone.
func (r *reconciler) down(ctx context.Context, consumer string, peer translation.Peer) (bool, error) {
	var foreign corev1beta1.ForeignCluster
	err := r.Get(ctx, types.NamespacedName{Name: consumer}, &foreign)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ForeignCluster %q: %w", consumer, err)
	}
	if err == nil && Down(&foreign) || !peer.Known {
		return err == nil && Down(&foreign), nil
	}
	connected, err := translation.Connected(ctx, r.Client, consumer)
	return !connected, err
}

// Down tells whether what is observed of a peer says that its pods cannot be reached: its tunnel or its API server does not
// answer. What is not observed, as of a peer that is only a consumer and has no data plane, says nothing.
func Down(foreign *corev1beta1.ForeignCluster) bool {
	broken := func(conditions []corev1beta1.Condition, kind string) bool {
		for i := range conditions {
			if conditions[i].Type == kind {
				return conditions[i].Status == corev1beta1.StatusError || conditions[i].Status == corev1beta1.StatusNotReady
			}
		}
		return false
	}
	return foreign.Status.Modules.Networking.Enabled && broken(foreign.Status.Modules.Networking.Conditions, corev1beta1.NetworkConnectionStatus) ||
		broken(foreign.Status.Conditions, corev1beta1.APIServerStatus)
}
