package unpeer

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/residue"
	"liqo.io/liqo/pkg/cli/target"
)

// side is one cluster of the peering, with what it knows of its peer.
type side struct {
	cluster   *target.Cluster
	namespace string
	peerID    string
	observer  progress.Observer
	// release, if set, removes objects whose finalizers wait for a dead peer.
	release removal.Waiter
}

func newSide(cluster *target.Cluster, peerID string, observer progress.Observer) *side {
	return &side{cluster: cluster, namespace: corev1beta1.TenantNamespacePrefix + peerID, peerID: peerID, observer: observer}
}

// replicated are the labels of what this cluster sends to its peer.
func (s *side) replicated() client.MatchingLabels {
	return client.MatchingLabels{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: s.peerID}
}

// leaveProvider gives back everything that this cluster, as a consumer, has of the provider.
func (s *side) leaveProvider(ctx context.Context) error {
	// A slice that still asks for a virtual node would get a new one as soon as the present one is gone.
	if err := s.stopAsking(ctx); err != nil {
		return err
	}
	nodes := &offloadingv1beta1.VirtualNodeList{}
	if err := s.deleteAll(ctx, nodes, nil, func(object client.Object) bool {
		node, ok := object.(*offloadingv1beta1.VirtualNode)
		return ok && string(node.Spec.ClusterID) == s.peerID
	}); err != nil {
		return err
	}
	for _, list := range []client.ObjectList{&offloadingv1beta1.NamespaceMapList{}, &authv1beta1.ResourceSliceList{}, &authv1beta1.RenewList{}} {
		if err := s.deleteAll(ctx, list, s.replicated(), nil); err != nil {
			return err
		}
	}
	identities := &authv1beta1.IdentityList{}
	return s.deleteAll(ctx, identities, nil, func(object client.Object) bool {
		identity, ok := object.(*authv1beta1.Identity)
		return ok && string(identity.Spec.ClusterID) == s.peerID && identity.Spec.Type == authv1beta1.ResourceSliceIdentityType
	})
}

// requireProvider refuses if the controllers could not give back what this cluster has of its provider, because the provider does not
// answer them or does not let them work any more. If nothing is left that needs the provider, it need not work.
func (s *side) requireProvider(ctx context.Context) error {
	lost := s.cluster.RequireAnswering(ctx, s.peerID)
	if lost == nil {
		return nil
	}
	nodes, maps, slices := &offloadingv1beta1.VirtualNodeList{}, &offloadingv1beta1.NamespaceMapList{}, &authv1beta1.ResourceSliceList{}
	left := 0
	for list, labels := range map[client.ObjectList]client.MatchingLabels{nodes: nil, maps: s.replicated(), slices: s.replicated()} {
		if err := s.cluster.List(ctx, list, client.InNamespace(s.namespace), labels); err != nil {
			return err
		}
		left += meta.LenList(list)
	}
	if left == 0 {
		return nil
	}
	return lost
}

func (s *side) stopAsking(ctx context.Context) error {
	slices := &authv1beta1.ResourceSliceList{}
	if err := s.cluster.List(ctx, slices, client.InNamespace(s.namespace), s.replicated()); err != nil {
		return err
	}
	for i := range slices.Items {
		slice := &slices.Items[i]
		if !slice.DeletionTimestamp.IsZero() {
			continue
		}
		if err := share.StopAsking(ctx, s.cluster, slice); err != nil {
			return err
		}
	}
	return nil
}

// deleteAll deletes the objects in the tenant namespace that match, all at once, and waits until they are gone.
func (s *side) deleteAll(ctx context.Context, list client.ObjectList, labels client.MatchingLabels, include func(client.Object) bool) error {
	options := []client.ListOption{client.InNamespace(s.namespace)}
	if len(labels) > 0 {
		options = append(options, labels)
	}
	return removal.DeleteAll(ctx, s.observer, s.cluster, removal.All{List: list, Options: options, Include: include, Wait: s.release})
}

// leaveNetwork removes what this cluster has of the network to its peer.
func (s *side) leaveNetwork(ctx context.Context, noWait bool) error {
	_, err := network.Part(ctx, network.Parting{Cluster: s.cluster, PeerID: s.peerID, Ranges: true, NoWait: noWait, Wait: s.release, Observer: s.observer})
	return err
}

// deleteNamespaces deletes tenant namespaces. API servers let seconds pass before they delete what is in one, so all are told before any is waited
// for.
func deleteNamespaces(ctx context.Context, wait bool, sides ...*side) error {
	var there []*side
	namespaces := map[*side]*corev1.Namespace{}
	for _, s := range sides {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
		found, err := s.cluster.Get(ctx, namespace)
		if err != nil {
			return err
		}
		// A namespace that somebody made without our label is not ours, whatever its name.
		if found && residue.IsTenantNamespace(namespace) {
			there, namespaces[s] = append(there, s), namespace
		}
	}
	begin := func(ctx context.Context, task progress.Task) error {
		for _, s := range there {
			if err := removal.Begin(ctx, task, s.cluster, namespaces[s]); err != nil {
				return err
			}
		}
		return nil
	}
	for i, s := range there {
		name := target.Name(namespaces[s])
		if err := progress.Run(ctx, s.observer, s.cluster.Name, "Deleting "+name, func(ctx context.Context, task progress.Task) (string, error) {
			if i == 0 {
				if err := begin(ctx, task); err != nil {
					return "", err
				}
			}
			if !wait {
				return fmt.Sprintf("Deletion of %s begun", name), nil
			}
			return "Deleted " + name, removal.Gone(ctx, task, s.cluster, namespaces[s])
		}); err != nil {
			return err
		}
	}
	return nil
}

func join(items []residue.Item) string { return strings.Join(residue.Strings(items), ", ") }
