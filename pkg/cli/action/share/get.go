package share

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
)

// GetOptions of Slices and Nodes.
type GetOptions struct {
	// Cluster that has the objects.
	Cluster *target.Cluster
	// Name of the objects; empty means all. That there is none of the name is an error.
	Name string
	// PeerID of the cluster that they are of; empty means any.
	PeerID string
}

// Slices reads the ResourceSlices, both those that ask providers and those that consumers ask with.
func Slices(ctx context.Context, o GetOptions) ([]authv1beta1.ResourceSlice, error) {
	list := &authv1beta1.ResourceSliceList{}
	if err := read(ctx, o.Cluster, o.PeerID, list, authv1beta1.GroupVersion.Group, "resourceslices"); err != nil {
		return nil, err
	}
	return chosen(o, "resourceslice", list.Items, func(slice *authv1beta1.ResourceSlice) client.Object { return slice })
}

// Nodes reads the VirtualNodes.
func Nodes(ctx context.Context, o GetOptions) ([]offloadingv1beta1.VirtualNode, error) {
	list := &offloadingv1beta1.VirtualNodeList{}
	if err := read(ctx, o.Cluster, o.PeerID, list, offloadingv1beta1.GroupVersion.Group, "virtualnodes"); err != nil {
		return nil, err
	}
	return chosen(o, "virtualnode", list.Items, func(node *offloadingv1beta1.VirtualNode) client.Object { return node })
}

// chosen are the objects that have the name, sorted by namespace and name. Several may have it, in several namespaces.
func chosen[T any](o GetOptions, kind string, items []T, object func(*T) client.Object) ([]T, error) {
	var known []string
	for i := range items {
		known = append(known, object(&items[i]).GetName())
	}
	if o.Name != "" {
		items = slices.DeleteFunc(items, func(item T) bool { return object(&item).GetName() != o.Name })
		if len(items) == 0 {
			return nil, o.Cluster.NoneNamed(target.Choice{Kind: kind, ListedBy: "liqoctl get " + kind, Name: o.Name, PeerID: o.PeerID, Role: "peer"}, known)
		}
	}
	slices.SortFunc(items, func(a, b T) int {
		first, second := object(&a), object(&b)
		return cmp.Or(cmp.Compare(first.GetNamespace(), second.GetNamespace()), cmp.Compare(first.GetName(), second.GetName()))
	})
	return items, nil
}

// StateOf says in words how far a slice has come.
func StateOf(slice *authv1beta1.ResourceSlice) string {
	state := "Waiting"
	denied := slices.IndexFunc(slice.Status.Conditions, func(c corev1beta1.Condition) bool { return c.Status == authv1beta1.Denied })
	switch {
	case !slice.DeletionTimestamp.IsZero():
		return "Deleting"
	case denied >= 0:
		return "Denied: " + slice.Status.Conditions[denied].Reason
	case accepted(slice):
		state = "Accepted"
	}
	if slice.WhyCordoned() != "" {
		state += ", cordoned"
	}
	return state
}

// NodeStateOf says in words how a virtual node is.
func NodeStateOf(node *offloadingv1beta1.VirtualNode) string {
	ready := find(node.Status.All(), corev1beta1.ConditionReady)
	state := "Waiting"
	switch {
	case !node.DeletionTimestamp.IsZero():
		return "Deleting"
	case ready != nil && ready.Status == string(metav1.ConditionTrue):
		state = "Ready"
	case ready != nil:
		state = "NotReady: " + ready.Reason
	}
	if cordoned := find(node.Status.All(), offloadingv1beta1.CordonedCondition); cordoned != nil && cordoned.Status == string(metav1.ConditionTrue) {
		state += ", cordoned"
	}
	return state
}
