package virtualnode

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/storage/hold"
)

// guard keeps the last VirtualNode of a cluster while volumes there hold data: what is offloaded there goes with it. A dead
// cluster holds nothing, and the user may decide otherwise.
func (r *reconciler) guard(ctx context.Context, s *scope) error {
	if s.dead {
		return nil
	}
	last, err := r.isLast(ctx, s.vn)
	if err != nil || !last {
		return err
	}
	volumes, err := hold.Volumes(ctx, r, s.vn, string(s.vn.Spec.ClusterID), "")
	if err != nil || len(volumes) == 0 {
		return err
	}
	if s.node != nil {
		s.nodeState = offloadingv1beta1.StatusRunning
	}
	if s.deployment != nil {
		s.kubelet = offloadingv1beta1.StatusRunning
	}
	return hold.Wait(string(s.vn.Spec.ClusterID), volumes, "liqoctl unpeer")
}

// isLast tells whether no other VirtualNode of the cluster stays.
func (r *reconciler) isLast(ctx context.Context, vn *offloadingv1beta1.VirtualNode) (bool, error) {
	var vns offloadingv1beta1.VirtualNodeList
	if err := r.List(ctx, &vns, client.InNamespace(vn.Namespace)); err != nil {
		return false, fmt.Errorf("listing VirtualNodes in %s: %w", vn.Namespace, err)
	}
	for i := range vns.Items {
		if other := &vns.Items[i]; other.Name != vn.Name && other.DeletionTimestamp.IsZero() && other.Spec.ClusterID == vn.Spec.ClusterID {
			return false, nil
		}
	}
	return true, nil
}
