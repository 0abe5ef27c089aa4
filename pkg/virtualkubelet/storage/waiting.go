package storage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// enqueueWaiting has the volumes looked at that are said to wait. In the queue, a name without a namespace is one of a volume.
func (r *Reconciler) enqueueWaiting() {
	for _, name := range r.options.Wanted.Get().Waiting {
		r.queue.Add(key{Name: name})
	}
}

// settle lets a volume go that was given back or deleted, and whose claim at the provider is gone, by the provider's own word. One
// whose claim is there is left to what is known of that claim.
func (r *Reconciler) settle(ctx context.Context, name string) error {
	volume, handle, err := r.unclaimed(ctx, name)
	if err != nil || volume == nil {
		return err
	}
	a := r.areaOf(volume.Spec.ClaimRef.Namespace)
	clients, err := r.options.Peer.Clients()
	if a == nil || !r.options.Leads.Get() || a.twin != handle.Namespace || err != nil || !r.options.Peer.State().Connected {
		return nil // What changes of these is an event.
	}
	_, err = r.confirm(ctx, place{area: a, view: &view{kube: clients.Kube}}, handle)
	switch {
	case err == nil:
		return reconcile.Wait(offloadingv1beta1.ReasonVolumesHoldData, fmt.Sprintf("waiting for the data of PersistentVolume %s to be given up", name), 4*poll)
	case !dataGone(err):
		return err
	}
	return r.let(ctx, volume)
}

// unclaimed reads a volume at this provider that was given back or deleted, and whose claim in this cluster is gone; nil if it is none.
func (r *Reconciler) unclaimed(ctx context.Context, name string) (*corev1.PersistentVolume, reflection.VolumeHandle, error) {
	volume, err := r.options.Local.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, reflection.VolumeHandle{}, nil
	}
	if err != nil {
		return nil, reflection.VolumeHandle{}, fmt.Errorf("reading PersistentVolume %s: %w", name, err)
	}
	handle, ok := reflection.HandleOf(volume)
	ref := volume.Spec.ClaimRef
	if !ok || handle.Cluster != r.options.Remote || ref == nil || ref.UID == "" || !given(volume) || r.areaOf(ref.Namespace) == nil {
		return nil, handle, nil
	}
	claim, err := r.options.Local.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, handle, fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", ref.Namespace, ref.Name, err)
	case err == nil && claim.UID == ref.UID:
		return nil, handle, nil
	}
	return volume, handle, nil
}

func (r *Reconciler) areaOf(namespace string) *area {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.areas[namespace]
}

// given tells whether a volume was given back, or is to go.
func given(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed || !volume.DeletionTimestamp.IsZero()
}
