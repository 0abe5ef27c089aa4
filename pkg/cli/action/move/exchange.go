package move

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/reflection"
)

// attempts at deleting the claim while others change it.
const attempts = 5

// exchange gives the claim the copy instead of its volume. Until the memory at the copy says that it is proved, the source is
// what counts: whatever happens, the claim gets it back. From then on the copy counts.
func (j *job) exchange(ctx context.Context) error {
	m := j.memory()
	for _, s := range []struct {
		title string
		run   func(context.Context, progress.Task) error
	}{
		{"Keeping both volumes", func(ctx context.Context, _ progress.Task) error { return j.keep(ctx, m) }},
		{"Taking the volume off the claim", func(ctx context.Context, task progress.Task) error { return j.take(ctx, task, m) }},
		{"Making sure that nothing was written since", func(ctx context.Context, task progress.Task) error { return j.prove(ctx, task, m) }},
	} {
		if err := j.step(ctx, s.title, "", s.run); err != nil {
			return err
		}
	}
	return j.finish(ctx, m)
}

// memory of the move that is about to happen.
func (j *job) memory() *moved {
	old := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: j.Claim, Labels: j.claim.Labels, Annotations: carried(j.claim.Annotations),
			OwnerReferences: j.claim.OwnerReferences,
		},
		Spec: *j.claim.Spec.DeepCopy(),
	}
	for _, key := range []string{reflection.SelectedNodeAnnotation, reflection.StorageProvisionerAnnotation} {
		if value, given := j.claim.Annotations[key]; given {
			old.Annotations[key] = value
		}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: *old.ObjectMeta.DeepCopy(), Spec: *j.temporary.Spec.DeepCopy()}
	claim.Annotations[reflection.SelectedNodeAnnotation] = j.TargetNode
	claim.Annotations[reflection.StorageProvisionerAnnotation] = offloadingv1beta1.StorageProvisioner
	claim.Spec.VolumeName = j.copy.Name
	return &moved{
		Run: j.run, Claim: claim, Old: old, UID: j.claim.UID, From: j.volume.Name, Policy: j.copy.Spec.PersistentVolumeReclaimPolicy,
		FromPolicy: j.volume.Spec.PersistentVolumeReclaimPolicy,
	}
}

// keep writes the move down, and has both volumes outlive their claims. What the source's policy was is written down first.
func (j *job) keep(ctx context.Context, m *moved) error {
	if err := j.mark(ctx, j.claim.DeepCopy(), m.Run); err != nil {
		return err
	}
	if err := j.remember(ctx, m); err != nil {
		return err
	}
	return j.policy(ctx, m.From, corev1.PersistentVolumeReclaimRetain, nil)
}

// take deletes the claim, if nothing uses it and nothing has changed, and waits until it is gone: from then on nobody can write
// to the source, because there is no claim for it.
func (j *job) take(ctx context.Context, task progress.Task, m *moved) error {
	for range attempts {
		claim, err := j.unchanged(ctx, m)
		if err != nil {
			return err
		}
		if err := j.idle(ctx); err != nil {
			return err
		}
		err = j.Cluster.Client.Delete(ctx, claim, client.Preconditions{UID: ptr.To(m.UID), ResourceVersion: ptr.To(claim.ResourceVersion)})
		if apierrors.IsConflict(err) {
			continue // Somebody changed it since it was read, perhaps another run that takes the move back.
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s: %w", j.Cluster.Describe(claim), err)
		}
		return j.gone(ctx, task, m.UID)
	}
	return fmt.Errorf("PersistentVolumeClaim %s/%s changes all the time", j.Namespace, j.Claim)
}

// unchanged reads the claim, and refuses to go on unless it, both volumes and the memory are what this run left.
func (j *job) unchanged(ctx context.Context, m *moved) (*corev1.PersistentVolumeClaim, error) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Claim}}
	source := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: m.From}}
	for _, object := range []client.Object{claim, source} {
		if found, err := j.Cluster.Get(ctx, object); err != nil {
			return nil, err
		} else if !found {
			return nil, fmt.Errorf("%s was deleted by somebody else", j.Cluster.Describe(object))
		}
	}
	temporary, err := j.made(ctx, j.name())
	if err != nil {
		return nil, err
	}
	target, now, err := j.remembered(ctx)
	if err != nil {
		return nil, err
	}
	copied := temporary != nil && temporary.UID == j.temporary.UID && temporary.DeletionTimestamp.IsZero() &&
		now != nil && now.Run == m.Run && kept(target)
	if !m.marked(claim) || !copied || !kept(source) {
		return nil, errors.New("somebody else changed the claim or a volume meanwhile")
	}
	return claim, nil
}

// marked tells whether a claim is still the one that this run marked, as it was then.
func (m *moved) marked(claim *corev1.PersistentVolumeClaim) bool {
	return claim.UID == m.UID && claim.DeletionTimestamp.IsZero() && claim.Annotations[offloadingv1beta1.MovingAnnotation] == m.Run &&
		maps.Equal(claim.Labels, m.Old.Labels) && apiequality.Semantic.DeepEqual(claim.Spec, m.Old.Spec)
}

// kept tells whether a volume outlives its claim.
func kept(volume *corev1.PersistentVolume) bool {
	return volume.DeletionTimestamp.IsZero() && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// gone waits until the claim that moves is gone. Pods that came in between keep it until they end.
func (j *job) gone(ctx context.Context, task progress.Task, uid types.UID) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: j.Claim}}
	return await.Until(ctx, task, j.Cluster.Describe(claim)+" to be gone", func(ctx context.Context) (bool, string, error) {
		found, err := j.Cluster.Get(ctx, claim)
		if err != nil || !found || claim.UID != uid {
			return err == nil, "", err
		}
		active, ended, err := j.users(ctx)
		if users := append(active, ended...); err == nil && len(users) > 0 {
			return false, "pods began to use it, and have to be deleted: " + firsts(users), nil
		}
		return false, "Kubernetes is releasing it", err
	})
}

// prove reads the source once more, through a claim that only this move uses: what was written to it since it was copied must
// not be lost. If it is what was copied, the copy takes its place.
func (j *job) prove(ctx context.Context, task progress.Task, m *moved) error {
	claim := m.Old.DeepCopy()
	claim.ObjectMeta = metav1.ObjectMeta{Namespace: j.Namespace, Name: j.name() + sender, Labels: j.labels()}
	if err := j.bind(ctx, task, claim); err != nil {
		return err
	}
	if err := j.start(ctx, task, j.sender(claim.Name)); err != nil {
		return err
	}
	now, err := j.identify(ctx, sender)
	if err != nil {
		return err
	}
	if now != (content{j.report.Checksum, j.report.Files, j.report.Bytes}) {
		return failure.New(failure.Failed, "stop whatever writes to it, and run the same command again",
			"the source was written to after it was copied, so the copy is not used")
	}
	if err := j.unlock(ctx, task); err != nil {
		return err
	}
	m.Proved = true
	return j.remember(ctx, m)
}

// unlock removes the helpers, and the claim by which the source was read.
func (j *job) unlock(ctx context.Context, task progress.Task) error {
	if err := j.dismiss(ctx, task); err != nil {
		return err
	}
	claim, err := j.made(ctx, j.name()+sender)
	if err != nil || claim == nil {
		return err
	}
	return j.remove(ctx, task, claim)
}

// finish goes on with an exchange whose copy is proved; each part of it may have happened already.
func (j *job) finish(ctx context.Context, m *moved) error {
	err := j.step(ctx, "Giving the claim the copy", "The claim has its volume on node "+m.node(), func(ctx context.Context, task progress.Task) error {
		if err := j.unlock(ctx, task); err != nil {
			return err
		}
		if err := j.removeTemporary(ctx, task); err != nil {
			return err
		}
		return j.bind(ctx, task, m.Claim)
	})
	if err != nil {
		return err
	}
	return j.step(ctx, "Giving up the old volume, as its policy says", "", func(ctx context.Context, _ progress.Task) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error { return m.end(ctx, j) })
	})
}

// end has both volumes be as their policies say, and forgets the move. Another run may have ended it meanwhile, and may be moving the copy on: that is
// left to it, since its policy would take the data away with the claim.
func (m *moved) end(ctx context.Context, j *job) error {
	copied, now, err := j.remembered(ctx)
	if err != nil || now == nil || now.Run != m.Run {
		return err
	}
	if err := j.policy(ctx, m.From, m.FromPolicy, nil); err != nil {
		return err
	}
	err = j.patch(ctx, copied, map[string]any{
		"metadata": map[string]any{"resourceVersion": copied.ResourceVersion, "annotations": map[string]any{offloadingv1beta1.MovedClaimAnnotation: nil}},
		"spec":     map[string]any{"persistentVolumeReclaimPolicy": m.Policy},
	})
	if err != nil {
		return fmt.Errorf("setting the policy of PersistentVolume %s: %w", m.Claim.Spec.VolumeName, err)
	}
	return nil
}

// removeTemporary removes the claim that the copy was made with; what becomes of the copy is said by its policy.
func (j *job) removeTemporary(ctx context.Context, task progress.Task) error {
	temporary, err := j.made(ctx, j.name())
	if err != nil || temporary == nil {
		return err
	}
	return j.remove(ctx, task, temporary)
}

// bind makes a claim with a certain volume, which no other claim has.
func (j *job) bind(ctx context.Context, task progress.Task, wanted *corev1.PersistentVolumeClaim) error {
	claim := wanted.DeepCopy()
	found, err := j.Cluster.Get(ctx, claim)
	if err != nil {
		return err
	}
	if !found {
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: wanted.Spec.VolumeName}}
		ref := map[string]any{
			"kind": "PersistentVolumeClaim", "apiVersion": "v1", "uid": nil, "resourceVersion": nil,
			"namespace": claim.Namespace, "name": claim.Name,
		}
		if err := j.patch(ctx, volume, map[string]any{"spec": map[string]any{"claimRef": ref}}); err != nil {
			return fmt.Errorf("giving PersistentVolume %s to the claim: %w", volume.Name, err)
		}
		claim = wanted.DeepCopy()
		if err := j.Cluster.Client.Create(ctx, claim); err != nil {
			return fmt.Errorf("creating PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	return await.Until(ctx, task, "the claim to be bound", func(ctx context.Context) (bool, string, error) {
		found, err := j.Cluster.Get(ctx, claim)
		switch {
		case err != nil:
			return false, "", err
		case !found:
			return false, "", failure.New(failure.Failed, "run the same command again",
				"PersistentVolumeClaim %s/%s was deleted by somebody else", claim.Namespace, claim.Name)
		case claim.Spec.VolumeName != wanted.Spec.VolumeName:
			return false, "", foreign(claim, wanted.Spec.VolumeName)
		}
		return claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp.IsZero(), "it is " + string(claim.Status.Phase), nil
	})
}

// foreign is the error about a claim that has another volume than the one with the data.
func foreign(claim *corev1.PersistentVolumeClaim, volume string) error {
	return failure.New(failure.Failed, "the data is in volume "+volume+"; delete that claim and run the same command again",
		"somebody made another PersistentVolumeClaim %s/%s meanwhile", claim.Namespace, claim.Name)
}
