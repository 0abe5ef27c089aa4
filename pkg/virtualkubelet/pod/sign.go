package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/reflection"
)

// signTimeout bounds a sign of life: one that is late must not be taken for a new one.
const signTimeout = 5 * time.Second

// leftToStop is how long it takes until the provider, which is lost since then, must have stopped a pod.
func leftToStop(local *corev1.Pod, since, now time.Time) time.Duration {
	return reflection.StoppedAfter(local) - now.Sub(since)
}

// SignOfLife tells the provider that this cluster lives, with one write whatever the number of pods, and none if no pod of the node asks for
// it. A provider that does not know the like, or has not met such a pod yet, takes none: then nothing follows from silence.
func (r *Reconciler) SignOfLife(ctx context.Context) error {
	if !r.signsAsked() || !r.options.Peer.State().Usable() {
		return nil
	}
	clients, err := r.options.Peer.Clients()
	if err != nil || clients.User == "" {
		return err
	}
	now := metav1.NewMicroTime(r.options.Clock.Now())
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"holderIdentity": r.options.Node, "renewTime": now}})
	if err != nil {
		return fmt.Errorf("encoding a sign of life: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, signTimeout)
	defer cancel()
	namespace, name := corev1beta1.TenantNamespacePrefix+r.options.Home, offloadingv1beta1.SignOfLifePrefix+capacity.UserLabel(clients.User)
	_, err = clients.Kube.CoordinationV1().Leases(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		r.setHeeded(false)
		return nil
	}
	if err != nil {
		return fmt.Errorf("renewing Lease %s/%s: %w", namespace, name, err)
	}
	r.setHeeded(true)
	return nil
}

func (r *Reconciler) setHeeded(heeded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heeded = heeded
}

// signsAsked tells whether a pod of the node is to be stopped by its provider without signs of life.
func (r *Reconciler) signsAsked() bool {
	for _, object := range r.locals.GetStore().List() {
		if held, ok := object.(*packed); ok && held.asksForSigns {
			return true
		}
	}
	return false
}
