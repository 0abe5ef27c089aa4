package network

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/networking/inputs"
)

// The kinds of ranges.
const (
	// Pod ranges are those of a cluster's pods.
	Pod = "pod"
	// External ranges are those of what is no pod.
	External = "external"
)

// Range of a peer, and where a cluster sees it.
type Range struct {
	// Kind of the range: Pod or External.
	Kind string `json:"kind"`
	// CIDR as the peer itself knows it.
	CIDR string `json:"cidr"`
	// SeenAs is the range under which the cluster reaches it; empty as long as none was found.
	SeenAs string `json:"seenAs,omitempty"`
}

// String is the range in a few words.
func (r Range) String() string {
	switch r.SeenAs {
	case r.CIDR:
		return r.CIDR
	case "":
		return r.CIDR + " (not seen yet)"
	default:
		return r.CIDR + " as " + r.SeenAs
	}
}

// RangesOf are the ranges of the peer that a Configuration stands for.
func RangesOf(c *networkingv1beta1.Configuration) []Range {
	// Of ranges that are not all seen yet, those that were before still are.
	own, given, _ := inputs.Seen(c)
	seen := map[networkingv1beta1.CIDR]networkingv1beta1.CIDR{}
	for _, pair := range [][2][]networkingv1beta1.CIDR{{own.Pod, given.Pod}, {own.External, given.External}} {
		for i := range min(len(pair[0]), len(pair[1])) {
			seen[pair[0][i]] = pair[1][i]
		}
	}
	var ranges []Range
	for _, cidr := range c.Spec.Remote.CIDR.Pod {
		ranges = append(ranges, Range{Kind: Pod, CIDR: string(cidr), SeenAs: string(seen[cidr])})
	}
	for _, cidr := range c.Spec.Remote.CIDR.External {
		ranges = append(ranges, Range{Kind: External, CIDR: string(cidr), SeenAs: string(seen[cidr])})
	}
	return ranges
}

// Own are the ranges of a cluster, by the Networks that it keeps for itself.
type Own struct {
	// Pod, External, Internal and Service ranges; those that have not been found are empty.
	Pod, External, Internal, Service []networkingv1beta1.CIDR
}

// OwnRanges reads the ranges of a cluster.
func OwnRanges(ctx context.Context, cluster *target.Cluster) (Own, error) {
	list := &ipamv1alpha1.NetworkList{}
	if err := cluster.List(ctx, list, client.InNamespace(cluster.LiqoNamespace)); err != nil {
		return Own{}, err
	}
	slices.SortFunc(list.Items, func(a, b ipamv1alpha1.Network) int { return strings.Compare(a.Name, b.Name) })
	own := Own{}
	for i := range list.Items {
		network := &list.Items[i]
		if network.Status.CIDR == "" || !network.DeletionTimestamp.IsZero() {
			continue
		}
		switch network.Labels[ipamv1alpha1.NetworkTypeLabel] {
		case ipamv1alpha1.NetworkTypePod:
			own.Pod = append(own.Pod, network.Status.CIDR)
		case ipamv1alpha1.NetworkTypeExternal:
			own.External = append(own.External, network.Status.CIDR)
		case ipamv1alpha1.NetworkTypeInternal:
			own.Internal = append(own.Internal, network.Status.CIDR)
		case ipamv1alpha1.NetworkTypeService:
			own.Service = append(own.Service, network.Status.CIDR)
		}
	}
	return own, nil
}

// announced is what the cluster tells a peer, and what is missing of it.
func (o Own) announced() (cidrs networkingv1beta1.ClusterConfigCIDR, missing string) {
	switch {
	case len(o.Pod) == 0:
		missing = "it has no range of pods yet (Network pod-cidr)"
	case len(o.External) == 0:
		missing = "it has no external range yet (Network external-cidr)"
	}
	return networkingv1beta1.ClusterConfigCIDR{Pod: o.Pod, External: o.External}, missing
}

// exchange tells each side the ranges of the other one, and waits until both have a place for them.
func (r *run) exchange(ctx context.Context) error {
	for _, ends := range [][2]side{{r.local, r.remote}, {r.remote, r.local}} {
		if err := r.announce(ctx, ends[0], ends[1]); err != nil {
			return err
		}
	}
	for _, s := range []side{r.local, r.remote} {
		if err := r.remapped(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// announce tells a side the ranges of the other one.
func (r *run) announce(ctx context.Context, to, of side) error {
	return progress.Run(ctx, r.observer, to.cluster.Name, "Announcing the ranges of "+of.id, func(ctx context.Context, task progress.Task) (string, error) {
		var cidrs networkingv1beta1.ClusterConfigCIDR
		err := until(ctx, task, "the ranges of cluster "+of.id, "see whether liqo-controller-manager runs there: "+of.cluster.Command("liqoctl info"),
			func(ctx context.Context) (bool, string, error) {
				own, err := OwnRanges(ctx, of.cluster)
				var missing string
				cidrs, missing = own.announced()
				return err == nil && missing == "", missing, err
			})
		if err != nil {
			return "", err
		}
		object := &networkingv1beta1.Configuration{}
		change, err := to.ensure(ctx, task, object, func() error {
			object.Spec.Transit = ptr.Deref(r.settings.Transit, object.Spec.Transit)
			wanted := withTransit(cidrs, &object.Spec)
			if !equality.Semantic.DeepEqual(object.Spec.Remote.CIDR, wanted) {
				object.Spec.Remote.CIDR = wanted
			}
			return nil
		})
		r.note(change)
		return fmt.Sprintf("Configuration %s %s", object.Name, change), err
	})
}

// withTransit adds to the ranges of a peer those of clusters behind it, which its gateway announced: the controller keeps them.
func withTransit(cidrs networkingv1beta1.ClusterConfigCIDR, spec *networkingv1beta1.ConfigurationSpec) networkingv1beta1.ClusterConfigCIDR {
	if there := spec.Remote.CIDR.External; spec.Transit && len(there) > len(cidrs.External) && slices.Equal(there[:len(cidrs.External)], cidrs.External) {
		cidrs.External = there
	}
	return cidrs
}

// remapped waits until a side has a place for the ranges of the other one.
func (r *run) remapped(ctx context.Context, s side) error {
	title := "Finding a place for the ranges of " + s.peerID
	return progress.Run(ctx, r.observer, s.cluster.Name, title, func(ctx context.Context, task progress.Task) (string, error) {
		object := &networkingv1beta1.Configuration{}
		if _, err := s.find(ctx, object); err != nil {
			return "", err
		}
		judge := &judge{object: s.cluster.Describe(object)}
		err := until(ctx, task, s.cluster.Describe(object)+" to be configured",
			"look the reason up in docs/troubleshooting.md, and run the same command again",
			func(ctx context.Context) (bool, string, error) {
				if found, err := s.cluster.Get(ctx, object); err != nil || !found {
					return false, "it is gone", err
				}
				if configured(object) {
					return true, "", nil
				}
				missing, err := judge.look(object.Status.Conditions, object.Generation)
				return false, missing, err
			})
		if err != nil {
			return "", err
		}
		ranges := RangesOf(object)
		r.report.Ranges[s.id] = ranges
		return s.peerID + " is seen as " + strings.Join(seen(ranges), ", "), nil
	})
}

func seen(ranges []Range) []string {
	words := make([]string, len(ranges))
	for i, r := range ranges {
		words[i] = r.SeenAs
	}
	return words
}

// configured tells whether each range of a peer has its place.
func configured(c *networkingv1beta1.Configuration) bool {
	condition := meta.FindStatusCondition(c.Status.Conditions, networkingv1beta1.NetworkCIDRsConfigured)
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration < c.Generation || c.Status.Remote == nil {
		return false
	}
	have, seen := c.Spec.Remote.CIDR, c.Status.Remote.CIDR
	return len(have.Pod) == len(seen.Pod) && len(have.External) == len(seen.External)
}
