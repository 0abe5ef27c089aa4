package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// Resolve tells which claim at the provider a pod that uses a claim of this cluster has to use there. A pod whose volume is not
// there is refused, with the way out; one whose claim is not bound yet has to wait. Claims of ephemeral volumes come with the UID
// of their pod as owner, and are used only if Kubernetes made them for it.
func (r *Reconciler) Resolve(ctx context.Context, namespace, name string, owner types.UID) (remote string, refused *reflection.Skip, err error) {
	a := r.areaOf(namespace)
	waiting := reconcile.Wait(offloadingv1beta1.ReasonVolumePending,
		fmt.Sprintf("waiting for PersistentVolumeClaim %s to be bound", name), poll/3)
	if a == nil || !a.locals.Synced() {
		return "", nil, waiting
	}
	claim := a.local(name)
	if claim == nil || claim.Spec.VolumeName == "" || claim.Status.Phase == corev1.ClaimPending {
		return "", nil, waiting
	}
	if owner != "" && !madeFor(claim, owner) {
		return "", &reflection.Skip{Reason: offloadingv1beta1.ReasonClaimConflict, Message: fmt.Sprintf(
			"PersistentVolumeClaim %s has the name that an ephemeral volume of the pod needs, and was not made for it: delete that claim, or rename the pod", name)}, nil
	}
	volume, handle, err := r.volumeOf(ctx, claim)
	if err != nil {
		return "", nil, err
	}
	if volume != nil && handle.Cluster == r.options.Remote {
		refused, err := r.holds(ctx, a, handle)
		return handle.Name, refused, err
	}
	where := "in this cluster"
	if volume != nil {
		where = fmt.Sprintf("in cluster %q", handle.Cluster)
	}
	return "", &reflection.Skip{Reason: offloadingv1beta1.ReasonVolumeNotAtProvider, Message: fmt.Sprintf(
		"PersistentVolumeClaim %s has its volume %s, so its pods cannot run in cluster %q: "+
			"use a claim of a class of provisioner %s there, or move the volume with liqoctl move volume",
		name, where, r.options.Remote, offloadingv1beta1.StorageProvisioner)}, nil
}

// madeFor tells whether Kubernetes made a claim for an ephemeral volume of a pod.
func madeFor(claim *corev1.PersistentVolumeClaim, pod types.UID) bool {
	owner := metav1.GetControllerOf(claim)
	return owner != nil && owner.Kind == "Pod" && owner.UID == pod
}

// holds tells why what a volume at this provider stands for cannot be used: it is not in the twin of its namespace, it is gone, or
// another claim has its name now. A pod is not given an empty volume, or one of somebody else, in the place of its own.
func (r *Reconciler) holds(ctx context.Context, a *area, handle reflection.VolumeHandle) (*reflection.Skip, error) {
	p := place{area: a, view: r.viewOf(a)}
	if p.view == nil || !p.view.ready() {
		if err := r.tooMuch(a); err != nil {
			return nil, reconcile.Wait(offloadingv1beta1.ReasonVolumePending, err.Error(), poll/3)
		}
		return nil, reconcile.Wait(offloadingv1beta1.ReasonVolumePending, fmt.Sprintf("waiting for the claims in cluster %q to be known", r.options.Remote), poll/3)
	}
	err := r.elsewhere(p, handle)
	if live := p.view.remote(handle.Name); err == nil && (live == nil || live.UID != handle.UID) {
		_, err = r.confirm(ctx, p, handle)
	}
	if err != nil && reconcile.Classify(err) == reconcile.Refused {
		return &reflection.Skip{Reason: reconcile.ReasonOf(err), Message: reconcile.MessageOf(err)}, nil
	}
	return nil, err
}

// elsewhere is the error if a volume's claim at this provider is not in the twin that its namespace has now.
func (r *Reconciler) elsewhere(p place, handle reflection.VolumeHandle) error {
	if handle.Namespace == p.twin {
		return nil
	}
	return reconcile.Refuse(offloadingv1beta1.ReasonVolumeNotAtProvider, fmt.Errorf(
		"the data is in PersistentVolumeClaim %s/%s of cluster %q, but this namespace is offloaded to namespace %s there now: "+
			"no pod can use it; have it restored there, or delete this claim to start anew",
		handle.Namespace, handle.Name, r.options.Remote, p.twin))
}
