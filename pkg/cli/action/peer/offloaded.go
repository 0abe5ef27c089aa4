package peer

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
)

// offloaded are the namespaces that are offloaded to the virtual node already: those of an earlier peering, and others that select it. None if
// that cannot be read, as for want of rights: the peering is in place all the same.
func (r *run) offloaded(ctx context.Context) (namespaces []string) {
	node, list := &corev1.Node{}, &offloadingv1beta1.NamespaceOffloadingList{}
	node.Name = r.report.VirtualNode
	if found, err := r.Consumer.Get(ctx, node); err != nil || !found {
		return nil
	}
	if r.Consumer.List(ctx, list) != nil {
		return nil
	}
	for i := range list.Items {
		offloading := &list.Items[i]
		selected, err := placement.Selects(offloading.Spec.ClusterSelector, node.Name, node.Labels)
		if err == nil && selected && offloading.DeletionTimestamp.IsZero() {
			namespaces = append(namespaces, offloading.Namespace)
		}
	}
	slices.Sort(namespaces)
	return namespaces
}
