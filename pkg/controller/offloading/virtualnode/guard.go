package virtualnode

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/storage/hold"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// confirm makes sure that it is the present VirtualNode of the name that ends: a cache of the past may show an earlier one.
func (r *reconciler) confirm(ctx context.Context, s *scope) error {
	var present offloadingv1beta1.VirtualNode
	key := client.ObjectKeyFromObject(s.vn)
	found, err := find(ctx, r.Live, key, &present)
	if err != nil {
		return err
	}
	if !found || present.UID != s.vn.UID {
		return reconcile.Wait(offloadingv1beta1.ReasonDraining, fmt.Sprintf("waiting for the cache to show what became of VirtualNode %s", key), time.Second)
	}
	return nil
}

// guard keeps the last VirtualNode of a cluster while volumes there hold data: what is offloaded there goes with it. A dead
// cluster holds nothing, and the user may decide otherwise.
func (r *reconciler) guard(ctx context.Context, s *scope) error {
	if s.dead {
		return nil
	}
	others, err := r.others(ctx, s.vn)
	if err != nil || oneStays(others) {
		return err
	}
	volumes, err := hold.Volumes(ctx, r.Client, r.Live, s.vn, string(s.vn.Spec.ClusterID), "")
	if err != nil || len(volumes) == 0 {
		return err
	}
	if s.deployment != nil {
		s.kubelet = offloadingv1beta1.StatusRunning
	}
	return hold.Wait(string(s.vn.Spec.ClusterID), volumes, "liqoctl unpeer")
}

// others are the cluster's other VirtualNodes. The API server itself is asked: with the last one goes all that is offloaded to the cluster.
func (r *reconciler) others(ctx context.Context, vn *offloadingv1beta1.VirtualNode) ([]offloadingv1beta1.VirtualNode, error) {
	var vns offloadingv1beta1.VirtualNodeList
	if err := r.Live.List(ctx, &vns, client.InNamespace(vn.Namespace)); err != nil {
		return nil, fmt.Errorf("listing VirtualNodes in %s: %w", vn.Namespace, err)
	}
	return slices.DeleteFunc(vns.Items, func(other offloadingv1beta1.VirtualNode) bool {
		return other.Name == vn.Name || other.Spec.ClusterID != vn.Spec.ClusterID
	}), nil
}

// oneStays tells whether one of the VirtualNodes is not being deleted.
func oneStays(vns []offloadingv1beta1.VirtualNode) bool {
	return slices.ContainsFunc(vns, func(vn offloadingv1beta1.VirtualNode) bool { return vn.DeletionTimestamp.IsZero() })
}

// oneDrains tells whether one of the VirtualNodes, which are being deleted, still has a Node: its pods run in the twins. It removes the
// NamespaceMap once they have left.
func (r *reconciler) oneDrains(ctx context.Context, vns []offloadingv1beta1.VirtualNode) (bool, error) {
	for i := range vns {
		var node corev1.Node
		if found, err := find(ctx, r.Live, client.ObjectKey{Name: vns[i].Name}, &node); err != nil || found && isNodeOf(&node, &vns[i]) {
			return true, err
		}
	}
	return false, nil
}
