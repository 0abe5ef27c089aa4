package network

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/target"
)

// Disconnect removes the tunnel between two clusters. Each still knows the ranges of the other one, and sees them where it did once the two
// are connected again; its gateway is then made as it was.
func Disconnect(ctx context.Context, o Options) (*Report, error) {
	return o.part(ctx, false, "Disconnecting %s and %s cuts off their pods from each other.")
}

// Reset removes the tunnel between two clusters, and what each knows of the ranges of the other one.
func Reset(ctx context.Context, o Options) (*Report, error) {
	return o.part(ctx, true, "Resetting the network of %s and %s cuts off their pods from each other; later each may see the other under other ranges.")
}

func (o *Options) part(ctx context.Context, ranges bool, question string) (*Report, error) {
	limited, cancel := o.begin(ctx)
	defer cancel()
	pair, err := o.check(limited, true, func(ctx context.Context, pair *target.Pair) error {
		if err := RequirePartRights(ctx, pair.Consumer, pair.ProviderID); err != nil {
			return err
		}
		return RequirePartRights(ctx, pair.Provider, pair.ConsumerID)
	})
	if err != nil {
		return nil, err
	}
	if o.Confirm != nil {
		if err := o.Confirm(ctx, fmt.Sprintf(question, pair.ConsumerID, pair.ProviderID)); err != nil {
			return nil, err
		}
	}
	// Whoever is asked may take their time.
	ctx, again := o.begin(ctx)
	defer again()
	report := &Report{}
	for _, p := range []Parting{{Cluster: pair.Consumer, PeerID: pair.ProviderID}, {Cluster: pair.Provider, PeerID: pair.ConsumerID}} {
		p.Ranges, p.NoWait, p.Observer = ranges, o.NoWait, o.Observer
		changed, err := Part(ctx, p)
		report.Changed = report.Changed || changed
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// Parting is what Part removes.
type Parting struct {
	// Cluster to remove it from, and the PeerID for which it stands.
	Cluster *target.Cluster
	PeerID  string
	// Ranges of the peer are removed too.
	Ranges bool
	// NoWait returns once the deletions have begun.
	NoWait bool
	// Wait waits until an object whose deletion has begun is gone; nil means until its controller let it go.
	Wait removal.Waiter
	// Observer is told each step.
	Observer progress.Observer
}

// made are the kinds that stand for a peer and that users make, in the order in which they are removed.
func made(ranges bool) []client.ObjectList {
	lists := []client.ObjectList{
		&networkingv1beta1.GatewayClientList{}, &networkingv1beta1.GatewayServerList{}, &networkingv1beta1.PublicKeyList{},
	}
	if ranges {
		lists = append(lists, &networkingv1beta1.ConfigurationList{})
	}
	return lists
}

// follow are the kinds that go with those of made.
func follow(ranges bool) []client.ObjectList {
	lists := []client.ObjectList{
		&networkingv1beta1.WgGatewayClientList{}, &networkingv1beta1.WgGatewayServerList{}, &networkingv1beta1.ConnectionList{},
		&networkingv1beta1.InternalFabricList{},
	}
	if ranges {
		lists = append(lists, &ipamv1alpha1.NetworkList{})
	}
	return lists
}

// Part removes the network of a peering from one cluster, whether the peer answers or not, and tells whether there was anything to remove.
func Part(ctx context.Context, p Parting) (changed bool, err error) {
	here := side{cluster: p.Cluster, peerID: p.PeerID, namespace: corev1beta1.TenantNamespacePrefix + p.PeerID}
	if !p.Ranges {
		// A tunnel is cut whether or not anything can be noted.
		if err := here.remember(ctx); err != nil {
			p.Observer.Note(progress.Warning, p.Cluster.Name, "how the gateway to "+p.PeerID+" is made is not remembered: give its --gw- flags again: "+err.Error())
		}
	}
	for _, list := range made(p.Ranges) {
		all := removal.All{List: list, Options: here.ofPeer(), NoWait: p.NoWait, Wait: p.Wait}
		if err := removal.DeleteAll(ctx, p.Observer, p.Cluster, all); err != nil {
			return changed, err
		}
		changed = changed || meta.LenList(list) > 0
	}
	if p.NoWait {
		return changed, nil
	}
	left, err := here.left(ctx, follow(p.Ranges))
	if err != nil || left == "" {
		return changed, err
	}
	return true, progress.Run(ctx, p.Observer, p.Cluster.Name, "Waiting for the gateway to "+p.PeerID+" to be gone",
		func(ctx context.Context, task progress.Task) (string, error) {
			return "The gateway to " + p.PeerID + " is gone", until(ctx, task, "what the controllers made for the network to "+p.PeerID+" to be gone",
				"see why with 'kubectl get ... -o yaml', and run the same command again", func(ctx context.Context) (bool, string, error) {
					left, err := here.left(ctx, follow(p.Ranges))
					return err == nil && left == "", left, err
				})
		})
}

// HasTunnel tells whether a cluster has a gateway to a peer, or the key of one: what Part removes besides ranges.
func HasTunnel(ctx context.Context, cluster *target.Cluster, peerID string) (bool, error) {
	left, err := side{cluster: cluster, peerID: peerID, namespace: corev1beta1.TenantNamespacePrefix + peerID}.left(ctx, made(false))
	return left != "", err
}

// left names the first object for the peer that is left of some kinds; nothing if there is none.
func (s side) left(ctx context.Context, lists []client.ObjectList) (string, error) {
	for _, list := range lists {
		if err := s.cluster.List(ctx, list, s.ofPeer()...); err != nil {
			return "", err
		}
		name := ""
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && name == "" {
				name = s.cluster.Describe(object)
			}
			return nil
		})
		if name != "" {
			return name + " is still there", nil
		}
	}
	return "", nil
}

// RequirePartRights checks that the user may do what Part does to what there is of a peer's network in a cluster.
func RequirePartRights(ctx context.Context, cluster *target.Cluster, peerID string) error {
	here := side{cluster: cluster, peerID: peerID, namespace: corev1beta1.TenantNamespacePrefix + peerID}
	group, kinds := networkingv1beta1.GroupVersion.Group, []string{"gatewayclients", "gatewayservers", "publickeies", "configurations"}
	var listing, deleting []target.Right
	for _, resource := range kinds {
		listing = append(listing, target.Rights(group, resource, here.namespace, "list")...)
		deleting = append(deleting, target.Rights(group, resource, here.namespace, "get", "delete")...)
	}
	if err := cluster.RequireRights(ctx, listing); err != nil {
		return err
	}
	left, err := here.left(ctx, made(true))
	if err != nil || left == "" {
		return err
	}
	for _, resource := range []string{"wggatewayclients", "wggatewayservers", "connections", "internalfabrics"} {
		deleting = append(deleting, target.Rights(group, resource, here.namespace, "list")...)
	}
	deleting = append(deleting, target.Rights(ipamv1alpha1.GroupVersion.Group, "networks", here.namespace, "list")...)
	return cluster.RequireRights(ctx, deleting)
}
