package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// Resolve tells which claim at the provider a pod that uses a claim of this cluster has to use there. A pod whose volume is not
// there is refused, with the way out; one whose claim is not bound yet has to wait.
func (r *Reconciler) Resolve(ctx context.Context, namespace, name string) (remote string, refused *reflection.Skip, err error) {
	r.mu.Lock()
	a := r.areas[namespace]
	r.mu.Unlock()
	waiting := reconcile.Wait(offloadingv1beta1.ReasonVolumePending,
		fmt.Sprintf("waiting for PersistentVolumeClaim %s to be bound", name), poll/3)
	if a == nil || !a.locals.Synced() {
		return "", nil, waiting
	}
	claim := a.local(name)
	if claim == nil || claim.Spec.VolumeName == "" || claim.Status.Phase == corev1.ClaimPending {
		return "", nil, waiting
	}
	volume, handle, err := r.volumeOf(ctx, claim)
	if err != nil {
		return "", nil, err
	}
	if volume != nil && handle.Cluster == r.options.Remote {
		return handle.Name, nil, nil
	}
	where := "in this cluster"
	if volume != nil {
		where = fmt.Sprintf("in cluster %q", handle.Cluster)
	}
	return "", &reflection.Skip{Reason: offloadingv1beta1.ReasonVolumeNotAtProvider, Message: fmt.Sprintf(
		"PersistentVolumeClaim %s has its volume %s, so its pods cannot run in cluster %q: use a claim of a class of provisioner %s there, or move the volume with liqoctl move volume",
		name, where, r.options.Remote, offloadingv1beta1.StorageProvisioner)}, nil
}
