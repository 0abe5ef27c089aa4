package provisioner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// Reconcile gives one claim its volume, or lets its volume grow.
func (r *claims) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var claim corev1.PersistentVolumeClaim
	err := r.Get(ctx, req.NamespacedName, &claim)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result(r.abandoned(ctx, req.NamespacedName, ""))
	case err != nil:
		return reconcile.Result(fmt.Errorf("reading PersistentVolumeClaim %s: %w", req, err))
	case !reflection.OwnClaim(&claim) || !claim.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil
	}
	if claim.Spec.VolumeName != "" {
		err = r.grow(ctx, &claim)
	} else {
		err = r.provision(ctx, &claim)
	}
	if class := reconcile.Classify(err); err != nil && (class == reconcile.Refused || class == reconcile.Terminal) {
		r.warn(&claim, offloadingv1beta1.ReasonVolumeRefused, reconcile.MessageOf(err))
	}
	if err == nil {
		err = r.abandoned(ctx, req.NamespacedName, claim.UID)
	}
	return reconcile.Result(err)
}

// provision makes the claim behind, and the volume once that one has its own.
func (r *claims) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := claim.Annotations[reflection.SelectedNodeAnnotation]
	if name == "" || claim.Spec.StorageClassName == nil {
		return nil // Its first pod has no node yet.
	}
	var node corev1.Node
	err := r.Get(ctx, client.ObjectKey{Name: name}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return r.reschedule(ctx, claim, name)
	case err != nil:
		return fmt.Errorf("reading Node %s: %w", name, err)
	case node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType:
		return nil // The virtual kubelet does it.
	}
	var class storagev1.StorageClass
	if err := r.Get(ctx, client.ObjectKey{Name: *claim.Spec.StorageClassName}, &class); err != nil {
		return fmt.Errorf("reading StorageClass %s: %w", *claim.Spec.StorageClassName, err)
	}
	if class.Provisioner != offloadingv1beta1.StorageProvisioner {
		return nil
	}
	behind, err := r.ensureBehind(ctx, claim, &class, name)
	if err != nil {
		return err
	}
	if err := r.place(ctx, claim, behind, name); err != nil {
		return err
	}
	return r.provideVolume(ctx, claim, &class, behind, name)
}

// provideVolume makes the volume once the claim behind has its own.
func (r *claims) provideVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass,
	behind *corev1.PersistentVolumeClaim, node string) error {
	if behind.Status.Phase != corev1.ClaimBound || behind.Spec.VolumeName == "" {
		return r.pending(claim, behind, node) // Its binding is an event.
	}
	var real corev1.PersistentVolume
	if err := r.Get(ctx, client.ObjectKey{Name: behind.Spec.VolumeName}, &real); err != nil {
		return fmt.Errorf("reading PersistentVolume %s: %w", behind.Spec.VolumeName, err)
	}
	if real.Spec.ClaimRef == nil || real.Spec.ClaimRef.UID != behind.UID {
		return reconcile.Wait(offloadingv1beta1.ReasonVolumePending, fmt.Sprintf("waiting for PersistentVolume %s to be bound", real.Name), poll)
	}
	volume := reflection.PhysicalVolume(claim, class, &real)
	if _, err := keep.Known[*corev1.PersistentVolume](ctx, keep.Keeper{Client: r.Client}, nil, keep.Wanted{Object: volume}); err != nil {
		return client.IgnoreAlreadyExists(err) // it stays as it was made
	}
	r.Events.Eventf(claim, nil, corev1.EventTypeNormal, offloadingv1beta1.ReasonVolumeProvisioned, "Provision",
		"Volume %s has the data on node %s", volume.Name, node)
	return nil
}

// ensureBehind makes the claim behind, unless it is there.
func (r *claims) ensureBehind(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node string,
) (*corev1.PersistentVolumeClaim, error) {
	want, refused := reflection.BehindClaim(claim, class, r.Namespace, r.RealStorageClass, node)
	if refused != nil {
		return nil, reconcile.Terminate(refused.Reason, errors.New(refused.Message))
	}
	var behind corev1.PersistentVolumeClaim
	key := client.ObjectKeyFromObject(want)
	err := r.Get(ctx, key, &behind)
	if apierrors.IsNotFound(err) {
		if err := r.notItself(ctx, class); err != nil {
			return nil, err
		}
		if err = r.Create(ctx, want); err == nil {
			return want, nil
		}
		if apierrors.IsAlreadyExists(err) {
			err = r.Live.Get(ctx, key, &behind)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("making PersistentVolumeClaim %s: %w", key, err)
	}
	if !r.behind(&behind) || behind.Annotations[offloadingv1beta1.VolumeAnnotation] != reflection.VolumeName(claim.UID) {
		return nil, reconcile.NotOurs(offloadingv1beta1.ReasonClaimConflict, "PersistentVolumeClaim", key)
	}
	return &behind, nil
}

// reschedule has the scheduler choose again for a claim whose node is gone.
func (r *claims) reschedule(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) error {
	if err := r.Live.Get(ctx, client.ObjectKey{Name: node}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		if err != nil {
			return fmt.Errorf("reading Node %s: %w", node, err)
		}
		return reconcile.Wait(offloadingv1beta1.ReasonVolumePending, fmt.Sprintf("waiting for the cache to show Node %s", node), poll)
	}
	return r.unselect(ctx, claim, node)
}

// grow carries a larger request to the claim behind, its size to the volume, and the volume's size to the claim.
func (r *claims) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	var volume corev1.PersistentVolume
	if err := r.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &volume); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // Kubernetes calls such a claim lost.
		}
		return fmt.Errorf("reading PersistentVolume %s: %w", claim.Spec.VolumeName, err)
	}
	ref := volume.Spec.ClaimRef
	if !reflection.OwnVolume(&volume) || ref == nil || ref.UID != claim.UID {
		return nil
	}
	if _, remote := reflection.HandleOf(&volume); !remote {
		if err := r.growBehind(ctx, claim, &volume); err != nil {
			return err
		}
	}
	if claim.Status.Phase != corev1.ClaimBound || volume.Spec.Capacity.Storage().Cmp(*claim.Status.Capacity.Storage()) <= 0 {
		return nil
	}
	changed := claim.DeepCopy()
	changed.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: *volume.Spec.Capacity.Storage()}
	changed.Status.Conditions = withoutResize(changed.Status.Conditions)
	if err := r.Status().Patch(ctx, changed, client.MergeFrom(claim)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("showing the new size of PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

func (r *claims) growBehind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	var behind corev1.PersistentVolumeClaim
	key := client.ObjectKey{Namespace: r.Namespace, Name: behindOf(volume)}
	if err := r.Get(ctx, key, &behind); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", key, err)
	}
	if !r.behind(&behind) {
		return nil
	}
	size := claim.Spec.Resources.Requests.Storage().DeepCopy()
	if len(reflection.Growth(&behind, size)) > 0 {
		changed := behind.DeepCopy()
		changed.Spec.Resources.Requests[corev1.ResourceStorage] = size
		if err := r.Patch(ctx, changed, client.MergeFrom(&behind)); err != nil {
			return fmt.Errorf("letting PersistentVolumeClaim %s grow to %s: %w", key, size.String(), err)
		}
	}
	if size, changed := reflection.Capacity(volume, &behind); changed {
		return setCapacity(ctx, r.Client, volume, size)
	}
	return nil
}

func setCapacity(ctx context.Context, c client.Client, volume *corev1.PersistentVolume, size resource.Quantity) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"capacity": map[string]string{"storage": size.String()}}})
	if err != nil {
		return fmt.Errorf("encoding the size of PersistentVolume %s: %w", volume.Name, err)
	}
	if err := c.Patch(ctx, volume, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("showing the new size of PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}

func withoutResize(conditions []corev1.PersistentVolumeClaimCondition) []corev1.PersistentVolumeClaimCondition {
	var kept []corev1.PersistentVolumeClaimCondition
	for _, condition := range conditions {
		if condition.Type != corev1.PersistentVolumeClaimResizing && condition.Type != corev1.PersistentVolumeClaimFileSystemResizePending {
			kept = append(kept, condition)
		}
	}
	return kept
}
