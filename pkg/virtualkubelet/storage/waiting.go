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
	r.mu.Lock()
	waiting := r.settings.Waiting
	r.mu.Unlock()
	for _, name := range waiting {
		r.queue.Add(key{Name: name})
	}
}

// settle lets a volume go that was given back or deleted, and whose claim at the provider is gone, by the provider's own word. One
// whose claim is there is left to what is known of that claim.
func (r *Reconciler) settle(ctx context.Context, name string) error {
	volume, err := r.options.Local.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading PersistentVolume %s: %w", name, err)
	}
	handle, ok := reflection.HandleOf(volume)
	ref := volume.Spec.ClaimRef
	if !ok || handle.Cluster != r.options.Remote || ref == nil || ref.UID == "" || !given(volume) {
		return nil
	}
	r.mu.Lock()
	a, leads := r.areas[ref.Namespace], r.leads
	r.mu.Unlock()
	clients, err := r.options.Peer.Clients()
	if a == nil || !leads || a.twin != handle.Namespace || err != nil || !r.options.Peer.State().Connected {
		return nil // What changes of these is an event.
	}
	claim, err := r.options.Local.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	if err == nil && claim.UID == ref.UID {
		return nil
	}
	_, err = r.confirm(ctx, place{area: a, view: &view{kube: clients.Kube}}, handle)
	switch {
	case err == nil:
		return reconcile.Wait(offloadingv1beta1.ReasonVolumesHoldData, fmt.Sprintf("waiting for the data of PersistentVolume %s to be given up", name), 4*poll)
	case reconcile.Classify(err) != reconcile.Refused:
		return err
	}
	return r.let(ctx, volume)
}

// given tells whether a volume was given back, or is to go.
func given(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed || !volume.DeletionTimestamp.IsZero()
}
