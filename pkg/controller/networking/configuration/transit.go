package configuration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/networking/inputs"
)

// mostCarried is how many addresses the clusters behind a peer may have together, as 32 ranges of /16 do. More would fill the pools, which
// other peers need, too.
const mostCarried = 1 << 21

// pass keeps the further ranges of both sides: those of clusters that are reached through them. Notes say what was left out.
func (r *Reconciler) pass(ctx context.Context, configuration *networkingv1beta1.Configuration) (changed bool, notes []string, err error) {
	updated := configuration.DeepCopy()
	all, connections := &networkingv1beta1.ConfigurationList{}, &networkingv1beta1.ConnectionList{}
	if configuration.Spec.Transit {
		if err := r.client.List(ctx, all); err != nil {
			return false, nil, fmt.Errorf("listing the Configurations of other peers: %w", err)
		}
		ofPeer := client.MatchingLabels{corev1beta1.RemoteClusterIDLabel: configuration.Labels[corev1beta1.RemoteClusterIDLabel]}
		if err := r.client.List(ctx, connections, client.InNamespace(configuration.Namespace), ofPeer); err != nil {
			return false, nil, fmt.Errorf("listing the Connections of the peer: %w", err)
		}
	}
	if note := carry(updated, all.Items); note != "" {
		notes = append(notes, note)
	}
	if note := heed(updated, connections.Items); note != "" {
		notes = append(notes, note)
	}
	if equality.Semantic.DeepEqual(configuration.Spec, updated.Spec) {
		return false, notes, nil
	}
	patch := client.MergeFromWithOptions(configuration, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, updated, patch); err != nil {
		return false, nil, fmt.Errorf("telling Configuration %s/%s which clusters are reached through others: %w", configuration.Namespace, configuration.Name, err)
	}
	return true, notes, nil
}

// carry has this cluster announce how it sees its other peers. The elder peerings come first, so that another one takes no place from them.
func carry(configuration *networkingv1beta1.Configuration, all []networkingv1beta1.Configuration) (note string) {
	local := &configuration.Spec.Local.CIDR
	if len(local.External) == 0 {
		return ""
	}
	local.External = slices.Clone(local.External[:1])
	if !configuration.Spec.Transit {
		return ""
	}
	var others []networkingv1beta1.Configuration
	for i := range all {
		if c := &all[i]; carried(c, configuration) && inputs.OfPeer(all, c.Labels[corev1beta1.RemoteClusterIDLabel]) == c {
			others = append(others, *c)
		}
	}
	slices.SortFunc(others, func(a, b networkingv1beta1.Configuration) int {
		if byAge := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); byAge != 0 {
			return byAge
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	var left []string
	for i := range others {
		// What that peer carries for others is not passed on: else ranges would go round between hubs.
		seen := others[i].Status.Remote.CIDR
		own := append(slices.Clone(seen.Pod), seen.External[:min(1, len(seen.External))]...)
		if len(local.Pod)+len(local.External)+len(own) > addressing.MaxAnnounced {
			left = append(left, others[i].Labels[corev1beta1.RemoteClusterIDLabel])
			continue
		}
		local.External = append(local.External, own...)
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("not announced to it, because a cluster has at most %d ranges: %s", addressing.MaxAnnounced, strings.Join(left, ", "))
}

// carried tells whether a Configuration is that of another peer, which takes part in transit and is seen.
func carried(other, configuration *networkingv1beta1.Configuration) bool {
	peer := other.Labels[corev1beta1.RemoteClusterIDLabel]
	return other.Spec.Transit && other.Status.Remote != nil && other.DeletionTimestamp.IsZero() && peer != "" &&
		peer != configuration.Labels[corev1beta1.RemoteClusterIDLabel]
}

// heed takes over what the peer announces in the same way. It is taken as a whole or not at all; what is not known stays.
func heed(configuration *networkingv1beta1.Configuration, connections []networkingv1beta1.Connection) (note string) {
	remote := &configuration.Spec.Remote.CIDR
	if len(remote.External) == 0 {
		return ""
	}
	own := slices.Clone(remote.External[:1])
	if !configuration.Spec.Transit {
		remote.External = own
		return ""
	}
	for i := range connections {
		said := connections[i].Status.Transit
		if said == nil {
			continue
		}
		wanted := networkingv1beta1.ClusterConfigCIDR{Pod: remote.Pod, External: append(own, said.CIDRs...)}
		err := Judge(wanted)
		if err == nil {
			err = ofIPv4(said.CIDRs)
		}
		if err != nil {
			return fmt.Sprintf("what it announces of other clusters is refused: %v", err)
		}
		remote.External = wanted.External
		return ""
	}
	return ""
}

// ofIPv4 refuses ranges of clusters behind a peer that are of another family. They were judged.
func ofIPv4(ranges []networkingv1beta1.CIDR) error {
	for _, text := range ranges {
		if prefix, err := text.Prefix(); err != nil || !prefix.Addr().Is4() {
			return fmt.Errorf("%s is no range of IPv4", text)
		}
	}
	return nil
}

// others selects the Configurations that tell how this cluster sees the peer of another one.
func others(of client.Object) []client.ListOption {
	return []client.ListOption{watch.If(func(c *networkingv1beta1.Configuration) bool { return c.Spec.Transit && c.UID != of.GetUID() })}
}

// ofPeer selects the Configurations of the peer that a Connection leads to.
func ofPeer(connection client.Object) []client.ListOption {
	peer := connection.GetLabels()[corev1beta1.RemoteClusterIDLabel]
	return []client.ListOption{client.InNamespace(connection.GetNamespace()), watch.If(func(c *networkingv1beta1.Configuration) bool {
		return c.Spec.Transit && c.Labels[corev1beta1.RemoteClusterIDLabel] == peer
	})}
}

// views passes changes of how this cluster sees a peer that others may be told of.
func views() predicate.Predicate {
	return watch.Changed(func(c *networkingv1beta1.Configuration) any {
		return []any{c.Spec.Transit, c.DeletionTimestamp.IsZero(), c.Status.Remote, c.Labels}
	})
}

// announcements passes changes of what a peer announces of other clusters.
func announcements() predicate.Predicate {
	return watch.Changed(func(c *networkingv1beta1.Connection) any { return c.Status.Transit })
}
