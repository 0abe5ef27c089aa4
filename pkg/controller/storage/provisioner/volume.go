package provisioner

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// behindOf is the name of the claim behind a volume on a physical node. It comes from the volume's own name, because the claim
// that the volume is bound to may be another one than it was made for, once it moved.
func behindOf(volume *corev1.PersistentVolume) string {
	return strings.TrimPrefix(volume.Name, offloadingv1beta1.VolumePrefix)
}

// Reconcile gives up what is behind one volume when its claim is gone, as its policy says.
func (r *volumes) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var volume corev1.PersistentVolume
	if err := r.Get(ctx, req.NamespacedName, &volume); err != nil {
		if apierrors.IsNotFound(err) {
			err = r.announce(ctx)
		}
		return reconcile.Result(err)
	}
	if !reflection.OwnVolume(&volume) || !controllerutil.ContainsFinalizer(&volume, offloadingv1beta1.VolumeFinalizer) || !given(&volume) {
		return ctrl.Result{}, nil
	}
	if gone, err := claimGone(ctx, r.Live, &volume); err != nil || !gone {
		return reconcile.Result(err)
	}
	if handle, remote := reflection.HandleOf(&volume); remote {
		return reconcile.Result(r.releaseRemote(ctx, &volume, handle))
	}
	return reconcile.Result(r.release(ctx, &volume))
}

// given tells whether a volume was given back, or is to go.
func given(volume *corev1.PersistentVolume) bool {
	return volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed || !volume.DeletionTimestamp.IsZero()
}

// claimGone asks, past the cache, whether the claim of a volume exists no more.
func claimGone(ctx context.Context, live client.Reader, volume *corev1.PersistentVolume) (bool, error) {
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		// Somebody is giving it to another claim.
		return !volume.DeletionTimestamp.IsZero(), nil
	}
	var claim corev1.PersistentVolumeClaim
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	err := live.Get(ctx, key, &claim)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading PersistentVolumeClaim %s: %w", key, err)
	}
	return err != nil || claim.UID != ref.UID, nil
}

// release gives up the claim behind a volume on a physical node.
func (r *volumes) release(ctx context.Context, volume *corev1.PersistentVolume) error {
	key := client.ObjectKey{Namespace: r.Namespace, Name: behindOf(volume)}
	var behind corev1.PersistentVolumeClaim
	err := r.Live.Get(ctx, key, &behind)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", key, err)
	}
	there := err == nil && r.behind(&behind)
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		if volume.DeletionTimestamp.IsZero() {
			return nil // It keeps its data until somebody deletes it.
		}
		if there {
			if err := retain(ctx, r.Client, &behind); err != nil {
				return err
			}
		}
		return r.let(ctx, volume)
	}
	if there {
		if behind.DeletionTimestamp.IsZero() {
			if err := keep.Delete(ctx, r.Client, &behind); err != nil {
				return err
			}
		}
		return reconcile.Wait(offloadingv1beta1.ReasonVolumePending, fmt.Sprintf("waiting for PersistentVolumeClaim %s to go", key), poll)
	}
	return r.let(ctx, volume)
}

// retain marks a claim behind a volume that is given up with its data left in place.
func retain(ctx context.Context, c client.Client, behind *corev1.PersistentVolumeClaim) error {
	if behind.Labels[offloadingv1beta1.RetainedLabel] == "true" {
		return nil
	}
	changed := behind.DeepCopy()
	changed.Labels[offloadingv1beta1.RetainedLabel] = "true"
	if err := c.Patch(ctx, changed, client.MergeFrom(behind)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("marking PersistentVolumeClaim %s/%s as retained: %w", behind.Namespace, behind.Name, err)
	}
	return nil
}

// let removes the finalizer and the volume.
func (r *volumes) let(ctx context.Context, volume *corev1.PersistentVolume) error {
	changed := volume.DeepCopy()
	controllerutil.RemoveFinalizer(changed, offloadingv1beta1.VolumeFinalizer)
	patch := client.MergeFromWithOptions(volume, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, changed, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("releasing PersistentVolume %s: %w", volume.Name, err)
	}
	return keep.Delete(ctx, r.Client, changed)
}

// releaseRemote lets a volume at a provider go that no virtual kubelet looks after any more: its namespace is not offloaded
// there, and what was behind it went with the twin; or the namespace itself is being deleted, with the rights of virtual kubelets
// in it, and the twin follows once its volumes are given up.
func (r *volumes) releaseRemote(ctx context.Context, volume *corev1.PersistentVolume, handle reflection.VolumeHandle) error {
	if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete && volume.DeletionTimestamp.IsZero() {
		return nil
	}
	if ref := volume.Spec.ClaimRef; ref != nil {
		leaving, err := r.leaving(ctx, ref.Namespace)
		if err != nil {
			return err
		}
		if leaving && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			return r.let(ctx, volume)
		}
		var nm offloadingv1beta1.NamespaceMap
		key := client.ObjectKey{Namespace: corev1beta1.TenantNamespacePrefix + handle.Cluster, Name: handle.Cluster}
		err = r.Live.Get(ctx, key, &nm)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading NamespaceMap %s: %w", key, err)
		}
		_, wanted := nm.Spec.DesiredMapping[ref.Namespace]
		_, there := nm.Status.CurrentMapping[ref.Namespace]
		if err == nil && (wanted || there) {
			if err := r.announce(ctx); err != nil {
				return err
			}
			return reconcile.Wait(offloadingv1beta1.ReasonVolumePending, fmt.Sprintf(
				"waiting for the virtual kubelet of cluster %s to give up what is behind PersistentVolume %s", handle.Cluster, volume.Name), poll)
		}
	}
	return r.let(ctx, volume)
}

// leaving tells whether a namespace is gone or going.
func (r *volumes) leaving(ctx context.Context, name string) (bool, error) {
	var ns corev1.Namespace
	err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &ns)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	return err != nil || !ns.DeletionTimestamp.IsZero(), nil
}

// abandoned deletes the claims behind volumes that were never made, because their claim went before. A claim with the given
// UID is not gone.
func (r *claims) abandoned(ctx context.Context, key client.ObjectKey, uid types.UID) error {
	var list corev1.PersistentVolumeClaimList
	err := r.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingLabels{
		offloadingv1beta1.StorageProvisionerLabel:    "true",
		offloadingv1beta1.VirtualClaimNamespaceLabel: reflection.BoundedLabel(key.Namespace),
		offloadingv1beta1.VirtualClaimNameLabel:      reflection.BoundedLabel(key.Name),
	})
	if err != nil {
		return fmt.Errorf("listing what is behind PersistentVolumeClaim %s: %w", key, err)
	}
	for i := range list.Items {
		behind := &list.Items[i]
		namespace, name, ok := reflection.VirtualClaim(behind)
		if !ok || namespace != key.Namespace || name != key.Name || behind.Name == string(uid) || !behind.DeletionTimestamp.IsZero() ||
			behind.Labels[offloadingv1beta1.RetainedLabel] == "true" ||
			behind.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] != string(corev1.PersistentVolumeReclaimDelete) {
			continue
		}
		if err := r.abandon(ctx, key, behind); err != nil {
			return err
		}
	}
	return nil
}

func (r *claims) abandon(ctx context.Context, key client.ObjectKey, behind *corev1.PersistentVolumeClaim) error {
	var claim corev1.PersistentVolumeClaim
	err := r.Live.Get(ctx, key, &claim)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", key, err)
	}
	if err == nil && string(claim.UID) == behind.Name {
		return nil
	}
	var volume corev1.PersistentVolume
	name := offloadingv1beta1.VolumePrefix + behind.Name
	err = r.Live.Get(ctx, client.ObjectKey{Name: name}, &volume)
	if err == nil {
		return nil // The volume decides.
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading PersistentVolume %s: %w", name, err)
	}
	return keep.Delete(ctx, r.Client, behind)
}
