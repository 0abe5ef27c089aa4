package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// fieldManager owns what is written at the provider.
const fieldManager = "storage.liqo.io"

// place is where a claim is handled, as it is at that moment.
type place struct {
	*area
	view     *view
	settings Settings
	// leads says that volumes are looked after from here.
	leads bool
}

// keep makes what is behind one local claim if its first pod runs on this node, and maintains it if this node leads: the one that it
// was made from may be gone.
func (r *Reconciler) keep(ctx context.Context, p place, claim *corev1.PersistentVolumeClaim) error {
	switch {
	case !claim.DeletionTimestamp.IsZero():
		return nil
	case claim.Spec.VolumeName != "":
		if !p.leads {
			return nil
		}
		return r.maintain(ctx, p, claim)
	case claim.Annotations[reflection.SelectedNodeAnnotation] != r.options.Node:
		return nil
	}
	return r.provision(ctx, p, claim)
}

// provision makes the claim at the provider, and then the volume that stands for it.
func (r *Reconciler) provision(ctx context.Context, p place, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := r.options.Local.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading StorageClass %s: %w", *claim.Spec.StorageClassName, err)
	}
	if class.Provisioner != offloadingv1beta1.StorageProvisioner {
		return nil
	}
	name, err := reflection.RemoteClaimName(claim)
	if err != nil {
		return reconcile.Terminate(offloadingv1beta1.ReasonVolumeRefused, err)
	}
	in := reflection.ClaimInput{
		Local: claim, Home: r.options.Home, Remote: r.options.Remote, Namespace: p.twin, Name: name,
		Volume: reflection.VolumeName(claim.UID), Reclaim: reflection.ReclaimPolicy(class),
		Offered: p.settings.Offered, NotReflected: p.settings.NotReflected, Live: p.view.remote(name),
	}
	remote, err := r.ensure(ctx, p, in)
	if err != nil {
		return err
	}
	volume := reflection.PlaceholderVolume(claim, class, r.options.Remote, remote)
	_, err = r.options.Local.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil // Kubernetes is about to bind it.
	case err != nil:
		return fmt.Errorf("creating PersistentVolume %s: %w", volume.Name, err)
	}
	r.provided(p, claim, class, volume, remote)
	return nil
}

// provided tells, once, that a claim has its volume, and what of its class does not apply there: mount options are those of a class,
// and a claim at the provider cannot carry them.
func (r *Reconciler) provided(p place, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, volume *corev1.PersistentVolume,
	remote *corev1.PersistentVolumeClaim) {
	if r.options.Recorder == nil {
		return
	}
	if len(class.MountOptions) > 0 {
		r.options.Recorder.Event(claim, corev1.EventTypeWarning, offloadingv1beta1.ReasonMountOptionsIgnored, fmt.Sprintf(
			"the mount options of StorageClass %s (%s) do not apply in cluster %q: there the volume is mounted with those of its class %s",
			class.Name, strings.Join(class.MountOptions, ","), r.options.Remote, ptr.Deref(remote.Spec.StorageClassName, "")))
	}
	r.options.Recorder.Event(claim, corev1.EventTypeNormal, offloadingv1beta1.ReasonVolumeProvisioned,
		fmt.Sprintf("Volume %s has the data in cluster %q, PersistentVolumeClaim %s/%s", volume.Name, r.options.Remote, p.twin, remote.Name))
}

// ensure returns the claim at the provider that was made for this one, and makes it if there is none of the name.
func (r *Reconciler) ensure(ctx context.Context, p place, in reflection.ClaimInput) (*corev1.PersistentVolumeClaim, error) {
	claims := p.view.kube.CoreV1().PersistentVolumeClaims(p.twin)
	live := in.Live
	wanted := reflection.RemoteClaim(in)
	if wanted.Skip != nil {
		return nil, reconcile.Refuse(wanted.Skip.Reason, errors.New(wanted.Skip.Message))
	}
	if live == nil {
		made, err := claims.Create(ctx, wanted.Apply.(*corev1.PersistentVolumeClaim), metav1.CreateOptions{FieldManager: fieldManager})
		if err == nil {
			return made, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, r.refused(err, p.twin)
		}
	}
	if live == nil || reflection.OriginUID(live) != string(in.Local.UID) {
		// The view may show one that has just been deleted, or not show one that has just been made.
		var err error
		if live, err = claims.Get(ctx, in.Name, metav1.GetOptions{}); err != nil {
			return nil, fmt.Errorf("reading PersistentVolumeClaim %s/%s of cluster %q: %w", p.twin, in.Name, r.options.Remote, err)
		}
	}
	switch {
	case !live.DeletionTimestamp.IsZero():
		return nil, reconcile.Wait(offloadingv1beta1.ReasonTwinPending, fmt.Sprintf(
			"waiting for PersistentVolumeClaim %s/%s of cluster %q to go, which is being deleted", p.twin, in.Name, r.options.Remote), poll/3)
	case !reflection.IsOurs(live, r.options.Home, r.options.Remote) || reflection.OriginUID(live) != string(in.Local.UID):
		return nil, reconcile.NotOursAt(r.options.Remote, offloadingv1beta1.ReasonClaimConflict, "PersistentVolumeClaim",
			types.NamespacedName{Namespace: p.twin, Name: in.Name})
	case live.Status.Phase == corev1.ClaimLost:
		return nil, r.lost(p, live)
	}
	return live, nil
}

// refused is what the provider answered to a creation.
func (r *Reconciler) refused(err error, twin string) error {
	if apierrors.IsNotFound(err) {
		return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, "waiting for the provider to make the namespace", poll)
	}
	class := reconcile.Classify(err)
	err = fmt.Errorf("cluster %q refused the PersistentVolumeClaim in namespace %q: %s", r.options.Remote, twin, words(err.Error()))
	if class == reconcile.Refused || class == reconcile.Terminal {
		// What the provider finds wrong today it may accept tomorrow.
		return reconcile.Refuse(offloadingv1beta1.ReasonVolumeRefused, err)
	}
	return err
}

func (r *Reconciler) lost(p place, remote *corev1.PersistentVolumeClaim) error {
	return reconcile.Refuse(offloadingv1beta1.ReasonVolumeLost, fmt.Errorf(
		"cluster %q says that PersistentVolumeClaim %s/%s lost its volume; the data has to be restored there", r.options.Remote, p.twin, remote.Name))
}

// maintain carries changes of a claim that has its volume to the provider, and the size back. A claim that is gone there is
// never made again: an empty volume in the place of a full one would be a loss that nobody notices.
func (r *Reconciler) maintain(ctx context.Context, p place, claim *corev1.PersistentVolumeClaim) error {
	volume, handle, err := r.volumeOf(ctx, claim)
	if err != nil || volume == nil || handle.Cluster != r.options.Remote {
		return err
	}
	if err := r.elsewhere(p, handle); err != nil {
		return err
	}
	live := p.view.remote(handle.Name)
	if live == nil || live.UID != handle.UID {
		if live, err = r.confirm(ctx, p, handle); err != nil {
			return err
		}
	}
	wanted := reflection.RemoteClaim(reflection.ClaimInput{
		Local: claim, Home: r.options.Home, Remote: r.options.Remote, Namespace: p.twin, Name: handle.Name,
		Volume: volume.Name, Reclaim: volume.Spec.PersistentVolumeReclaimPolicy,
		Offered: p.settings.Offered, NotReflected: p.settings.NotReflected, Live: live,
	})
	if wanted.Skip != nil {
		return reconcile.Refuse(wanted.Skip.Reason, errors.New(wanted.Skip.Message))
	}
	if _, err := r.change(ctx, p, live, reflection.RemoteClaimChanges(live, wanted.Apply.(*corev1.PersistentVolumeClaim))); err != nil {
		return err
	}
	if size, changed := reflection.Capacity(volume, live); changed {
		_, err := r.patchVolume(ctx, volume, []reflection.Change{{Path: []string{"spec", "capacity", "storage"}, Value: size.String()}})
		if err != nil {
			return err
		}
	}
	if live.Status.Phase == corev1.ClaimLost {
		return r.lost(p, live)
	}
	return r.pending(ctx, p, live)
}

// volumeOf reads the volume that a claim is bound to; nil if it is not one at a provider, or not bound yet.
func (r *Reconciler) volumeOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, reflection.VolumeHandle, error) {
	volume, err := r.options.Local.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, reflection.VolumeHandle{}, nil // Kubernetes calls such a claim lost.
	}
	if err != nil {
		return nil, reflection.VolumeHandle{}, fmt.Errorf("reading PersistentVolume %s: %w", claim.Spec.VolumeName, err)
	}
	handle, remote := reflection.HandleOf(volume)
	if ref := volume.Spec.ClaimRef; !remote || ref == nil || ref.UID != claim.UID {
		return nil, reflection.VolumeHandle{}, nil
	}
	return volume, handle, nil
}

// dataGone tells whether confirm saw that the claim of a volume is gone. That the provider refuses to show it, as it does to who has no
// rights any more, says nothing.
func dataGone(err error) bool {
	reason := reconcile.ReasonOf(err)
	return err != nil && (reason == offloadingv1beta1.ReasonVolumeLost || reason == offloadingv1beta1.ReasonClaimConflict)
}

// confirm reads past the view the claim that a volume stands for.
func (r *Reconciler) confirm(ctx context.Context, p place, handle reflection.VolumeHandle) (*corev1.PersistentVolumeClaim, error) {
	live, err := p.view.kube.CoreV1().PersistentVolumeClaims(p.twin).Get(ctx, handle.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, reconcile.Refuse(offloadingv1beta1.ReasonVolumeLost, fmt.Errorf(
			"PersistentVolumeClaim %s/%s is gone from cluster %q, and the data with it; delete this claim to start anew", p.twin, handle.Name, r.options.Remote))
	case err != nil:
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s/%s of cluster %q: %w", p.twin, handle.Name, r.options.Remote, err)
	case live.UID != handle.UID:
		return nil, reconcile.Refuse(offloadingv1beta1.ReasonClaimConflict, fmt.Errorf(
			"PersistentVolumeClaim %s/%s of cluster %q is another one than this volume was made with, which is gone with its data; "+
				"the other one is not used: delete this claim to start anew", p.twin, handle.Name, r.options.Remote))
	}
	return live, nil
}

// change writes at the provider what differs, on this version only, and returns what came of it.
func (r *Reconciler) change(ctx context.Context, p place, live *corev1.PersistentVolumeClaim, changes []reflection.Change,
) (*corev1.PersistentVolumeClaim, error) {
	if len(changes) == 0 || !live.DeletionTimestamp.IsZero() {
		return live, nil
	}
	patch, err := reflection.MergePatch(live, changes)
	if err != nil {
		return nil, err
	}
	changed, err := p.view.kube.CoreV1().PersistentVolumeClaims(p.twin).Patch(ctx, live.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, r.refused(err, p.twin)
	}
	return changed, nil
}

// patchVolume changes a volume, on this version only, and returns what came of it; nil if it is gone.
func (r *Reconciler) patchVolume(ctx context.Context, volume *corev1.PersistentVolume, changes []reflection.Change) (*corev1.PersistentVolume, error) {
	patch, err := reflection.MergePatch(volume, changes)
	if err != nil {
		return nil, err
	}
	changed, err := r.options.Local.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("changing PersistentVolume %s: %w", volume.Name, err)
	}
	return changed, nil
}

// pending looks for the provider's words about a claim that has no volume there yet. Waiting for the first pod is no trouble.
func (r *Reconciler) pending(ctx context.Context, p place, remote *corev1.PersistentVolumeClaim) error {
	if remote.Status.Phase != corev1.ClaimPending {
		return nil
	}
	list, err := p.view.kube.CoreV1().Events(p.twin).List(ctx, metav1.ListOptions{Limit: 50, FieldSelector: fields.Set{
		"involvedObject.uid": string(remote.UID), "type": corev1.EventTypeWarning,
	}.String()})
	if err != nil {
		return fmt.Errorf("asking cluster %q why PersistentVolumeClaim %s/%s is pending: %w", r.options.Remote, p.twin, remote.Name, err)
	}
	again := min(max(r.options.Clock.Since(remote.CreationTimestamp.Time)/2, poll), maxPoll)
	var last *corev1.Event
	for i := range list.Items {
		if event := &list.Items[i]; event.InvolvedObject.UID == remote.UID && (last == nil || seen(event).After(seen(last))) {
			last = event
		}
	}
	if last == nil {
		return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, "the claim is pending at the provider, and nothing is wrong with it", again)
	}
	return reconcile.Wait(offloadingv1beta1.ReasonVolumePending, fmt.Sprintf("PersistentVolumeClaim %s/%s of cluster %q is pending: %s: %s",
		p.twin, remote.Name, r.options.Remote, words(last.Reason), words(last.Message)), again)
}

func seen(event *corev1.Event) time.Time {
	if event.LastTimestamp.IsZero() {
		return event.CreationTimestamp.Time
	}
	return event.LastTimestamp.Time
}

// words bounds what is repeated of what the provider says.
func words(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "…"
	}
	return text
}
