package move

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// moved is what the copy's volume remembers until the claim has one of the two volumes for good.
type moved struct {
	// Run that wrote it.
	Run string `json:"run"`
	// Claim as it is to be.
	Claim *corev1.PersistentVolumeClaim `json:"claim"`
	// Old is the claim as it was, with the UID that it had.
	Old *corev1.PersistentVolumeClaim `json:"old"`
	UID types.UID                     `json:"uid"`
	// From is the volume that the data comes from.
	From string `json:"from"`
	// Policy and FromPolicy are those of both volumes.
	Policy     corev1.PersistentVolumeReclaimPolicy `json:"policy"`
	FromPolicy corev1.PersistentVolumeReclaimPolicy `json:"fromPolicy"`
	// Proved says that the copy was what the source held when nobody could write to that any more. Without it, the source is
	// what counts.
	Proved bool `json:"proved,omitempty"`
}

// node that the volume moves to.
func (m *moved) node() string { return m.Claim.Annotations[reflection.SelectedNodeAnnotation] }

// remember writes the memory at the copy, which is kept from now on.
func (j *job) remember(ctx context.Context, m *moved) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("writing the move down: %w", err)
	}
	return j.policy(ctx, m.Claim.Spec.VolumeName, corev1.PersistentVolumeReclaimRetain, ptr.To(string(text)))
}

// remembered finds the volume that remembers a move of the claim; nil if there is none.
func (j *job) remembered(ctx context.Context) (*corev1.PersistentVolume, *moved, error) {
	volumes := &corev1.PersistentVolumeList{}
	if err := j.Cluster.List(ctx, volumes); err != nil {
		return nil, nil, err
	}
	for i := range volumes.Items {
		m := &moved{}
		text := volumes.Items[i].Annotations[offloadingv1beta1.MovedClaimAnnotation]
		if text == "" || json.Unmarshal([]byte(text), m) != nil || m.Claim == nil || m.Old == nil || m.From == "" || m.UID == "" ||
			m.Claim.Namespace != j.Namespace || m.Claim.Name != j.Claim || m.Claim.Spec.VolumeName != volumes.Items[i].Name {
			continue
		}
		return &volumes.Items[i], m, nil
	}
	return nil, nil, nil
}

// policy sets what becomes of a volume, and what it remembers of a move: nil leaves that as it is, empty removes it. A volume
// that is gone needs neither, but cannot remember anything.
func (j *job) policy(ctx context.Context, name string, policy corev1.PersistentVolumeReclaimPolicy, memory *string) error {
	content := map[string]any{"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}}
	if memory != nil {
		var value any
		if *memory != "" {
			value = *memory
		}
		content["metadata"] = map[string]any{"annotations": map[string]any{offloadingv1beta1.MovedClaimAnnotation: value}}
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := j.patch(ctx, volume, content); err != nil && (memory != nil && *memory != "" || client.IgnoreNotFound(err) != nil) {
		return fmt.Errorf("setting the policy of PersistentVolume %s: %w", name, err)
	}
	return nil
}

// patch merges content into an object; what that is afterwards is in it.
func (j *job) patch(ctx context.Context, object client.Object, content map[string]any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding a change of %s: %w", j.Cluster.Describe(object), err)
	}
	return j.Cluster.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, text))
}
