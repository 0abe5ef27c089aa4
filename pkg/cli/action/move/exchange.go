package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/reflection"
)

// moved is what the copy's volume remembers until its claim is bound.
type moved struct {
	// Claim as it is to be.
	Claim *corev1.PersistentVolumeClaim `json:"claim"`
	// UID of the claim as it was.
	UID types.UID `json:"uid"`
	// From is the volume that the data comes from.
	From string `json:"from"`
	// Policy and FromPolicy are those of both volumes.
	Policy     corev1.PersistentVolumeReclaimPolicy `json:"policy"`
	FromPolicy corev1.PersistentVolumeReclaimPolicy `json:"fromPolicy"`
	// Temporary is the claim that the copy was made with.
	Temporary    string    `json:"temporary"`
	TemporaryUID types.UID `json:"temporaryUID"`
}

// exchange gives the claim the copy instead of its volume. What it does is written down at the copy first.
func (j *job) exchange(ctx context.Context) error {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: j.Namespace, Name: j.Claim, Labels: j.claim.Labels, Annotations: carried(j.claim.Annotations),
			OwnerReferences: j.claim.OwnerReferences,
		},
		Spec: *j.temporary.Spec.DeepCopy(),
	}
	claim.Annotations[reflection.SelectedNodeAnnotation] = j.TargetNode
	claim.Annotations[reflection.StorageProvisionerAnnotation] = offloadingv1beta1.StorageProvisioner
	claim.Spec.VolumeName = j.copy.Name
	m := moved{
		Claim: claim, UID: j.claim.UID, From: j.volume.Name, Policy: j.copy.Spec.PersistentVolumeReclaimPolicy,
		FromPolicy: j.volume.Spec.PersistentVolumeReclaimPolicy, Temporary: j.temporary.Name, TemporaryUID: j.temporary.UID,
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing the move down: %w", err)
	}
	err = j.step(ctx, "Keeping both volumes", "", func(ctx context.Context, _ progress.Task) error {
		if err := j.policy(ctx, m.From, corev1.PersistentVolumeReclaimRetain, nil); err != nil {
			return err
		}
		return j.policy(ctx, j.copy.Name, corev1.PersistentVolumeReclaimRetain, ptrTo(string(text)))
	})
	if err != nil {
		return err
	}
	return j.finish(ctx, m)
}

// finish goes on with an exchange that was written down; each part of it may have happened already.
func (j *job) finish(ctx context.Context, m moved) error {
	err := j.step(ctx, "Giving the claim the copy", "The claim has its volume on node "+m.Claim.Annotations[reflection.SelectedNodeAnnotation],
		func(ctx context.Context, task progress.Task) error {
			if err := j.removeClaim(ctx, task, m.Temporary, m.TemporaryUID); err != nil {
				return err
			}
			if err := j.removeClaim(ctx, task, m.Claim.Name, m.UID); err != nil {
				return err
			}
			return j.bind(ctx, task, m)
		})
	if err != nil {
		return err
	}
	return j.step(ctx, "Giving up the old volume, as its policy says", "", func(ctx context.Context, _ progress.Task) error {
		if err := j.policy(ctx, m.From, m.FromPolicy, nil); err != nil {
			return err
		}
		return j.policy(ctx, m.Claim.Spec.VolumeName, m.Policy, ptrTo(""))
	})
}

// removeClaim deletes one certain claim; its volume is retained.
func (j *job) removeClaim(ctx context.Context, task progress.Task, name string, uid types.UID) error {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: j.Namespace, Name: name}}
	found, err := j.Cluster.Get(ctx, claim)
	if err != nil || !found || claim.UID != uid {
		return err
	}
	return j.remove(ctx, task, claim)
}

// bind makes the claim with the copy as its volume.
func (j *job) bind(ctx context.Context, task progress.Task, m moved) error {
	claim := m.Claim.DeepCopy()
	found, err := j.Cluster.Get(ctx, claim)
	if err != nil {
		return err
	}
	if found && claim.Spec.VolumeName != m.Claim.Spec.VolumeName {
		return failure.New(failure.Failed, fmt.Sprintf("delete that claim and run the same command again; the data is in volumes %s and %s", m.From, m.Claim.Spec.VolumeName),
			"somebody made another PersistentVolumeClaim %s/%s meanwhile", claim.Namespace, claim.Name)
	}
	if !found {
		patch := []byte(`{"spec":{"claimRef":{"uid":null,"resourceVersion":null,"namespace":"` + claim.Namespace + `","name":"` + claim.Name + `"}}}`)
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: m.Claim.Spec.VolumeName}}
		if err := j.Cluster.Client.Patch(ctx, volume, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("giving PersistentVolume %s to the claim: %w", volume.Name, err)
		}
		claim = m.Claim.DeepCopy()
		if err := j.Cluster.Client.Create(ctx, claim); err != nil {
			return fmt.Errorf("creating PersistentVolumeClaim %s/%s again: %w", claim.Namespace, claim.Name, err)
		}
	}
	return await.Until(ctx, task, "the claim to be bound", func(ctx context.Context) (bool, string, error) {
		found, err := j.Cluster.Get(ctx, claim)
		if err == nil && !found {
			err = errors.New("the claim was deleted by somebody else")
		}
		return err == nil && claim.Status.Phase == corev1.ClaimBound, "it is " + string(claim.Status.Phase), err
	})
}

// policy sets what becomes of a volume, and what it remembers of a move: nil leaves that as it is, empty removes it.
func (j *job) policy(ctx context.Context, name string, policy corev1.PersistentVolumeReclaimPolicy, memory *string) error {
	patch := map[string]any{"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}}
	if memory != nil {
		var value any
		if *memory != "" {
			value = *memory
		}
		patch["metadata"] = map[string]any{"annotations": map[string]any{offloadingv1beta1.MovedClaimAnnotation: value}}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding the policy of PersistentVolume %s: %w", name, err)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := j.Cluster.Client.Patch(ctx, volume, client.RawPatch(types.MergePatchType, text)); err != nil && (memory != nil || client.IgnoreNotFound(err) != nil) {
		return fmt.Errorf("setting the policy of PersistentVolume %s: %w", name, err)
	}
	return nil
}

// resume ends a move of this claim that was interrupted after its copy was proved.
func (j *job) resume(ctx context.Context) (bool, error) {
	volumes := &corev1.PersistentVolumeList{}
	if err := j.Cluster.List(ctx, volumes); err != nil {
		return false, err
	}
	for i := range volumes.Items {
		var m moved
		text := volumes.Items[i].Annotations[offloadingv1beta1.MovedClaimAnnotation]
		if text == "" || json.Unmarshal([]byte(text), &m) != nil || m.Claim == nil || m.Claim.Namespace != j.Namespace || m.Claim.Name != j.Claim ||
			m.Claim.Spec.VolumeName != volumes.Items[i].Name {
			continue
		}
		j.Observer.Note(progress.Info, j.Cluster.Name, "Going on with a move to node "+m.Claim.Annotations[reflection.SelectedNodeAnnotation]+" that was interrupted")
		j.report.From, j.report.To = m.From, m.Claim.Spec.VolumeName
		return true, j.finish(ctx, m)
	}
	return false, nil
}

func ptrTo[T any](v T) *T { return &v }
