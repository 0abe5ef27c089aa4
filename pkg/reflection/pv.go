package reflection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// VolumeHandle identifies the claim at a provider that is behind a volume. A volume's source cannot be changed, so what it
// says is what was true when the volume was made.
type VolumeHandle struct {
	// Cluster is the provider.
	Cluster string
	// Namespace and Name of the claim there.
	Namespace, Name string
	// UID of the claim there.
	UID types.UID
}

func (h VolumeHandle) text() string {
	return strings.Join([]string{h.Cluster, h.Namespace, h.Name, string(h.UID)}, "/")
}

// HandleOf reads the handle of a volume; ok is false for volumes that are not at a provider.
func HandleOf(volume *corev1.PersistentVolume) (handle VolumeHandle, ok bool) {
	csi := volume.Spec.CSI
	if csi == nil || csi.Driver != offloadingv1beta1.PlaceholderDriver || !OwnVolume(volume) {
		return VolumeHandle{}, false
	}
	parts := strings.Split(csi.VolumeHandle, "/")
	if len(parts) != 4 || slices.Contains(parts, "") {
		return VolumeHandle{}, false
	}
	return VolumeHandle{Cluster: parts[0], Namespace: parts[1], Name: parts[2], UID: types.UID(parts[3])}, true
}

// OwnVolume tells whether the storage fabric made a volume.
func OwnVolume(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[ProvisionedByAnnotation] == offloadingv1beta1.StorageProvisioner
}

// GivenBack tells whether a volume goes with its data, because its claim was deleted: nobody wants what is in it.
func GivenBack(volume *corev1.PersistentVolume) bool {
	released := volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
	return !volume.DeletionTimestamp.IsZero() || released && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// Kept are those of some claims that are not being deleted.
func Kept(claims []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(claims), func(claim corev1.PersistentVolumeClaim) bool { return !claim.DeletionTimestamp.IsZero() })
}

// OwnClaim tells whether a claim asks the storage fabric for its volume.
func OwnClaim(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[StorageProvisionerAnnotation] == offloadingv1beta1.StorageProvisioner
}

// VolumeName is the name of the volume that is made for a claim.
func VolumeName(claim types.UID) string { return offloadingv1beta1.VolumePrefix + string(claim) }

// newVolume is what the volumes of the storage fabric have in common.
func newVolume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        VolumeName(claim.UID),
			Annotations: map[string]string{ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner},
			Finalizers:  []string{offloadingv1beta1.VolumeFinalizer},
		},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: ReclaimPolicy(class),
			MountOptions:                  slices.Clone(class.MountOptions),
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
}

// ReclaimPolicy is what becomes of the volumes of a class.
func ReclaimPolicy(class *storagev1.StorageClass) corev1.PersistentVolumeReclaimPolicy {
	return ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
}

// PlaceholderVolume is the volume of this cluster that stands for a claim at a provider. Nobody can mount it: it tells the
// scheduler where the data is, and says which claim there holds it.
func PlaceholderVolume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, cluster string, remote *corev1.PersistentVolumeClaim,
) *corev1.PersistentVolume {
	volume := newVolume(claim, class)
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{
		Driver:       offloadingv1beta1.PlaceholderDriver,
		VolumeHandle: VolumeHandle{Cluster: cluster, Namespace: remote.Namespace, Name: remote.Name, UID: remote.UID}.text(),
	}
	volume.Spec.AccessModes = slices.Clone(claim.Spec.AccessModes)
	volume.Spec.VolumeMode = claim.Spec.VolumeMode
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: largest(
		*claim.Spec.Resources.Requests.Storage(), providedSize(remote))}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1beta1.RemoteClusterIDLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{cluster},
		}},
	}}}}
	return volume
}

// PhysicalVolume is the volume of a claim whose data is on a physical node: what is behind it is the volume of another claim.
func PhysicalVolume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, behind *corev1.PersistentVolume) *corev1.PersistentVolume {
	volume := newVolume(claim, class)
	volume.Spec.PersistentVolumeSource = *behind.Spec.PersistentVolumeSource.DeepCopy()
	volume.Spec.AccessModes = slices.Clone(behind.Spec.AccessModes)
	volume.Spec.VolumeMode = behind.Spec.VolumeMode
	volume.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: *behind.Spec.Capacity.Storage()}
	for _, option := range behind.Spec.MountOptions {
		if !slices.Contains(volume.Spec.MountOptions, option) {
			volume.Spec.MountOptions = append(volume.Spec.MountOptions, option)
		}
	}
	volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: physicalOnly(behind.Spec.NodeAffinity)}
	return volume
}

// physicalOnly narrows an affinity to nodes that are no virtual ones.
func physicalOnly(affinity *corev1.VolumeNodeAffinity) *corev1.NodeSelector {
	physical := corev1.NodeSelectorRequirement{Key: corev1beta1.TypeLabel, Operator: corev1.NodeSelectorOpDoesNotExist}
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) == 0 {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{physical}}}}
	}
	selector := affinity.Required.DeepCopy()
	for i := range selector.NodeSelectorTerms {
		term := &selector.NodeSelectorTerms[i]
		if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
			continue // An empty term selects no node; narrowed, it would select many.
		}
		if !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return apiequality.Semantic.DeepEqual(r, physical)
		}) {
			term.MatchExpressions = append(term.MatchExpressions, physical)
		}
	}
	return selector
}

// BehindClaim is the claim that provides what is behind a volume on a physical node.
func BehindClaim(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, namespace, realClass, node string) (*corev1.PersistentVolumeClaim, *Skip) {
	if why := whyNotProvisioned(&claim.Spec); why != "" {
		return nil, refusedClaim(why).Skip
	}
	behind := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: string(claim.UID),
			Labels: map[string]string{
				offloadingv1beta1.StorageProvisionerLabel:    "true",
				offloadingv1beta1.VirtualClaimNamespaceLabel: BoundedLabel(claim.Namespace),
				offloadingv1beta1.VirtualClaimNameLabel:      BoundedLabel(claim.Name),
			},
			Annotations: map[string]string{
				offloadingv1beta1.VirtualClaimAnnotation:  claim.Namespace + "/" + claim.Name,
				offloadingv1beta1.VolumeAnnotation:        VolumeName(claim.UID),
				offloadingv1beta1.ReclaimPolicyAnnotation: string(ReclaimPolicy(class)),
				SelectedNodeAnnotation:                    node,
				offloadingv1beta1.SelectedNodeAnnotation:  node,
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: slices.Clone(claim.Spec.AccessModes), VolumeMode: claim.Spec.VolumeMode,
			Resources: *claim.Spec.Resources.DeepCopy(),
		},
	}
	if realClass != "" {
		behind.Spec.StorageClassName = &realClass
	}
	return behind, nil
}

// Growth lists what must change for a claim to ask for that size; nothing if it asks for as much already. Volumes never shrink.
func Growth(claim *corev1.PersistentVolumeClaim, size resource.Quantity) []Change {
	if size.Cmp(*claim.Spec.Resources.Requests.Storage()) <= 0 {
		return nil
	}
	return []Change{{Path: []string{"spec", "resources", "requests", "storage"}, Value: size.String()}}
}

// Capacity is the size that a volume has to show, and whether it shows another one: that of what is behind it, once that is
// larger.
func Capacity(volume *corev1.PersistentVolume, behind *corev1.PersistentVolumeClaim) (size resource.Quantity, changed bool) {
	size = largest(*volume.Spec.Capacity.Storage(), providedSize(behind))
	return size, size.Cmp(*volume.Spec.Capacity.Storage()) != 0
}

// providedSize is the size that a bound claim has, else none.
func providedSize(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	if claim.Status.Phase != corev1.ClaimBound {
		return resource.Quantity{}
	}
	return *claim.Status.Capacity.Storage()
}

func largest(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) >= 0 {
		return a.DeepCopy()
	}
	return b.DeepCopy()
}
