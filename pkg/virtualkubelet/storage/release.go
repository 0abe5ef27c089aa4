package storage

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// release gives up the claims at the provider whose local claim, of the given name, is gone. The present claim of that name
// may be nil.
func (r *Reconciler) release(ctx context.Context, p place, k key, present *corev1.PersistentVolumeClaim) error {
	var again error
	if claims := p.view.of(k); len(claims) == 0 || present != nil && len(claims) == 1 && reflection.OriginUID(claims[0]) == string(present.UID) {
		r.options.Removals.Settle(claimKind, k.Namespace, k.Name)
	}
	for _, remote := range p.view.of(k) {
		if !reflection.IsOurs(remote, r.options.Home, r.options.Remote) || !remote.DeletionTimestamp.IsZero() ||
			remote.Labels[offloadingv1beta1.RetainedLabel] == "true" ||
			present != nil && reflection.OriginUID(remote) == string(present.UID) {
			continue
		}
		if err := r.releaseOne(ctx, p, k, remote); err != nil {
			again = err
		}
	}
	if err := r.unkeep(ctx, p, k); err != nil {
		again = err
	}
	return again
}

// unkeep lets the volumes go that were deleted and kept for the sake of their data, once the claims at the provider that had it are
// gone: whoever deleted those has decided.
func (r *Reconciler) unkeep(ctx context.Context, p place, k key) error {
	r.mu.Lock()
	kept := maps.Clone(r.kept[k])
	r.mu.Unlock()
	for name, handle := range kept {
		if live := p.view.remote(handle.Name); handle.Namespace != p.twin || live != nil && live.UID == handle.UID {
			continue
		}
		if _, err := r.confirm(ctx, p, handle); !dataGone(err) {
			return err
		}
		volume, err := r.options.Local.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading PersistentVolume %s: %w", name, err)
		}
		if now, ok := reflection.HandleOf(volume); err == nil && ok && now == handle && !volume.DeletionTimestamp.IsZero() {
			if err := r.let(ctx, volume); err != nil {
				return err
			}
		}
		r.mu.Lock()
		delete(r.kept[k], name)
		if len(r.kept[k]) == 0 {
			delete(r.kept, k)
		}
		r.mu.Unlock()
	}
	return nil
}

// retain remembers a volume that was deleted and holds data, and has it looked at again: nobody tells when its policy changes.
func (r *Reconciler) retain(k key, volume *corev1.PersistentVolume) {
	if handle, ok := reflection.HandleOf(volume); ok && !volume.DeletionTimestamp.IsZero() {
		r.mu.Lock()
		if r.kept[k] == nil {
			r.kept[k] = map[string]reflection.VolumeHandle{}
		}
		r.kept[k][volume.Name] = handle
		r.mu.Unlock()
	}
	r.queue.AddAfter(k, 4*poll)
}

// releaseOne gives up one claim at the provider, if that is certain.
func (r *Reconciler) releaseOne(ctx context.Context, p place, k key, remote *corev1.PersistentVolumeClaim) error {
	local, err := r.options.Local.CoreV1().PersistentVolumeClaims(k.Namespace).Get(ctx, k.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading PersistentVolumeClaim %s: %w", k, err)
	}
	if err == nil && string(local.UID) == reflection.OriginUID(remote) {
		return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, "waiting for the cache to show the claim", poll)
	}
	name := remote.Annotations[offloadingv1beta1.VolumeAnnotation]
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil // Somebody broke the link: nothing is concluded from that.
	}
	volume, err := r.options.Local.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if remote.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] != string(corev1.PersistentVolumeReclaimDelete) || !r.mayDelete(k, remote) {
			return nil
		}
		return r.delete(ctx, p, remote)
	}
	if err != nil {
		return fmt.Errorf("reading PersistentVolume %s: %w", name, err)
	}
	handle, ok := reflection.HandleOf(volume)
	if !ok || handle.Cluster != r.options.Remote || handle.Namespace != p.twin || handle.UID != remote.UID {
		return nil
	}
	return r.giveUp(ctx, p, remote, volume)
}

// giveUp gives a volume back once its claim is gone for good.
func (r *Reconciler) giveUp(ctx context.Context, p place, remote *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	later := reconcile.Wait(offloadingv1beta1.ReasonTwinPending, fmt.Sprintf("waiting for PersistentVolume %s to be given back", volume.Name), poll)
	ref := volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return later // Somebody is giving it to another claim.
	}
	claim, err := r.options.Local.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("reading PersistentVolumeClaim %s/%s: %w", ref.Namespace, ref.Name, err)
	case err == nil && claim.UID == ref.UID:
		return later // Another claim has it now.
	case !given(volume):
		return later
	}
	return r.reclaim(ctx, p, remote, volume)
}

// reclaim does what the policy of a volume says that nobody claims any more. The policy is recorded at the provider first: should the
// volume be taken away by force, the record alone decides about the data.
func (r *Reconciler) reclaim(ctx context.Context, p place, remote *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	policy := volume.Spec.PersistentVolumeReclaimPolicy
	record := []string{"metadata", "annotations", offloadingv1beta1.ReclaimPolicyAnnotation}
	var changes []reflection.Change
	if remote.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] != string(policy) {
		changes = append(changes, reflection.Change{Path: record, Value: string(policy)})
	}
	remote, err := r.change(ctx, p, remote, changes)
	if err != nil {
		return err
	}
	if policy != corev1.PersistentVolumeReclaimDelete {
		// Also a volume that is being deleted stays as long as its data does: without it nobody would know of the data any more,
		// and the twin would go with it.
		r.retain(localKey(p.area, remote), volume)
		return nil
	}
	if err := r.unchanged(ctx, p, remote); err != nil {
		return err
	}
	// The volume goes first: should this end in between, what is recorded at the provider tells the rest.
	if err := r.let(ctx, volume); err != nil {
		return err
	}
	r.options.Removals.Allow(copyOf(localKey(p.area, remote), remote))
	return r.delete(ctx, p, remote)
}

// copyOf names a claim at the provider by the local claim that it was made for.
func copyOf(k key, remote *corev1.PersistentVolumeClaim) massremoval.Copy {
	return massremoval.Copy{Kind: claimKind, Namespace: k.Namespace, Name: k.Name, Origin: types.UID(reflection.OriginUID(remote))}
}

// mayDelete tells whether a claim at the provider may go of whose claim and volume nothing is known here. Where an old backup was
// restored both are missing, and the data is not to go for that: not even of one claim, unless the volume was given back by this process.
func (r *Reconciler) mayDelete(k key, remote *corev1.PersistentVolumeClaim) bool {
	this := copyOf(k, remote)
	// No error can come of what is not asked.
	may, _ := r.options.Removals.May(this, func() (massremoval.Inventory, error) {
		return massremoval.Inventory{Missing: []massremoval.Copy{this}, Data: true}, nil
	}, func(massremoval.Copy) { r.queue.Add(k) })
	return may
}

// let removes our finalizer and the volume, if it is still what was read.
func (r *Reconciler) let(ctx context.Context, volume *corev1.PersistentVolume) error {
	kept := slices.DeleteFunc(slices.Clone(volume.Finalizers), func(f string) bool { return f == offloadingv1beta1.VolumeFinalizer })
	if len(kept) != len(volume.Finalizers) {
		changed, err := r.patchVolume(ctx, volume, []reflection.Change{{Path: []string{"metadata", "finalizers"}, Value: kept}})
		if err != nil || changed == nil {
			return err
		}
		volume = changed
	}
	err := r.options.Local.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{Preconditions: asRead(volume)})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}

// unchanged tells whether a claim at the provider is what it was when it was read, or gone: a view may lag, and what it does not show yet
// may be that somebody decided to keep the data.
func (r *Reconciler) unchanged(ctx context.Context, p place, remote *corev1.PersistentVolumeClaim) error {
	live, err := p.view.kube.CoreV1().PersistentVolumeClaims(p.twin).Get(ctx, remote.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading PersistentVolumeClaim %s/%s of cluster %q: %w", p.twin, remote.Name, r.options.Remote, err)
	case live.UID != remote.UID || live.ResourceVersion != remote.ResourceVersion:
		return r.lags(p, remote)
	}
	return nil
}

// lags is the error if a claim at the provider is not what it was when it was read.
func (r *Reconciler) lags(p place, remote *corev1.PersistentVolumeClaim) error {
	return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, fmt.Sprintf(
		"waiting for PersistentVolumeClaim %s/%s of cluster %q to be seen as it is", p.twin, remote.Name, r.options.Remote), poll)
}

// delete removes a claim at the provider if it is still what was read.
func (r *Reconciler) delete(ctx context.Context, p place, remote *corev1.PersistentVolumeClaim) error {
	err := p.view.kube.CoreV1().PersistentVolumeClaims(p.twin).Delete(ctx, remote.Name, metav1.DeleteOptions{Preconditions: asRead(remote)})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return r.lags(p, remote)
	case err != nil:
		return fmt.Errorf("deleting PersistentVolumeClaim %s/%s of cluster %q: %w", p.twin, remote.Name, r.options.Remote, err)
	}
	return nil
}

// asRead are the preconditions that an object is the very one, in the very version, that was read.
func asRead(object metav1.Object) *metav1.Preconditions {
	uid, version := object.GetUID(), object.GetResourceVersion()
	return &metav1.Preconditions{UID: &uid, ResourceVersion: &version}
}
