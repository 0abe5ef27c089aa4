package reflection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Annotations by which Kubernetes binds claims.
const (
	// StorageProvisionerAnnotation on a claim names who is to provide its volume.
	StorageProvisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// SelectedNodeAnnotation on a claim is the node that its first pod is going to run on.
	SelectedNodeAnnotation = "volume.kubernetes.io/selected-node"
	// ProvisionedByAnnotation on a volume names who made it.
	ProvisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
)

// claimPrefixes begin the keys of labels and annotations that mean something in the claim's own cluster only: how it is bound,
// and how we reflect it.
var claimPrefixes = []string{
	"pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/", "volume.alpha.kubernetes.io/", "storage.liqo.io/",
	offloadingv1beta1.RemoteStorageClassAnnotation, offloadingv1beta1.RemoteAccessModesAnnotation,
	offloadingv1beta1.StorageProvisionerLabel,
}

// ClaimInput is all that RemoteClaim may depend on.
type ClaimInput struct {
	// Local is the claim in this cluster; it is not changed.
	Local *corev1.PersistentVolumeClaim
	// Home and Remote are the IDs of this cluster and of the provider.
	Home, Remote string
	// Namespace is the twin of the claim's namespace.
	Namespace string
	// Name is that of the claim at the provider.
	Name string
	// Volume is the name of the local volume.
	Volume string
	// Reclaim is the policy of the local volume.
	Reclaim corev1.PersistentVolumeReclaimPolicy
	// Offered are the storage classes that were negotiated with the provider.
	Offered []authv1beta1.StorageType
	// NotReflected is what stays at home of every object.
	NotReflected NotReflected
	// Live is the claim that is at the provider already; nil if there is none.
	Live *corev1.PersistentVolumeClaim
}

// RemoteClaim says what the claim at the provider must look like, or why there must be none.
func RemoteClaim(in ClaimInput) Result {
	local := in.Local
	if in.Live == nil {
		if why := whyNotProvisioned(&local.Spec); why != "" {
			return refusedClaim(why)
		}
	}
	modes, err := accessModes(local)
	if err != nil {
		return refusedClaim(err.Error())
	}
	class, why := remoteClass(in)
	if why != "" {
		return refusedClaim(why)
	}
	meta := remoteMeta(Input{
		Local: local, Home: in.Home, Remote: in.Remote, RemoteNamespace: in.Namespace,
		NotReflected: NotReflected{
			Labels:      append(slices.Clone(in.NotReflected.Labels), keysWith(local.Labels, claimPrefixes)...),
			Annotations: slices.Concat(in.NotReflected.Annotations, keysWith(local.Annotations, claimPrefixes), ofProvisioners(local.Annotations)),
		},
	}, in.Name)
	meta.Annotations[offloadingv1beta1.VirtualClaimAnnotation] = local.Namespace + "/" + local.Name
	meta.Annotations[offloadingv1beta1.VolumeAnnotation] = in.Volume
	meta.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] = string(in.Reclaim)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, StorageClassName: &class, VolumeMode: local.Spec.VolumeMode,
		Resources: corev1.VolumeResourceRequirements{Requests: storageOf(local.Spec.Resources.Requests)},
	}}
	if local.Spec.Resources.Limits != nil {
		claim.Spec.Resources.Limits = storageOf(local.Spec.Resources.Limits)
	}
	return Result{Apply: claim}
}

func refusedClaim(message string) Result {
	return Result{Skip: &Skip{Reason: offloadingv1beta1.ReasonVolumeRefused, Message: message, Keep: true}}
}

// whyNotProvisioned names what of a claim a provisioner that starts with an empty volume cannot honour.
func whyNotProvisioned(spec *corev1.PersistentVolumeClaimSpec) string {
	switch {
	case spec.Selector != nil:
		return "spec.selector cannot be honoured by a volume that is made anew; remove it"
	case spec.DataSource != nil || spec.DataSourceRef != nil:
		return "spec.dataSource and spec.dataSourceRef cannot be honoured: snapshots and clones do not cross clusters; remove them"
	case spec.VolumeAttributesClassName != nil && *spec.VolumeAttributesClassName != "":
		return "spec.volumeAttributesClassName cannot be honoured; remove it"
	}
	return ""
}

// accessModes are the claim's own, unless its annotation says otherwise.
func accessModes(local *corev1.PersistentVolumeClaim) ([]corev1.PersistentVolumeAccessMode, error) {
	text, given := local.Annotations[offloadingv1beta1.RemoteAccessModesAnnotation]
	if !given {
		return local.Spec.AccessModes, nil
	}
	var modes []corev1.PersistentVolumeAccessMode
	for part := range strings.SplitSeq(text, ",") {
		mode := corev1.PersistentVolumeAccessMode(strings.TrimSpace(part))
		switch mode {
		case corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod:
		default:
			return nil, fmt.Errorf("annotation %s: %q is no access mode; use ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod",
				offloadingv1beta1.RemoteAccessModesAnnotation, cutOff(string(mode), 64))
		}
		if !slices.Contains(modes, mode) {
			modes = append(modes, mode)
		}
	}
	return modes, nil
}

// remoteClass is the class of the claim that is there, else the one that the annotation names, else the provider's default.
func remoteClass(in ClaimInput) (class, why string) {
	if in.Live != nil && in.Live.Spec.StorageClassName != nil {
		return *in.Live.Spec.StorageClassName, ""
	}
	names := make([]string, 0, len(in.Offered))
	var standard string
	for _, offer := range in.Offered {
		names = append(names, offer.StorageClassName)
		if offer.Default && standard == "" {
			standard = offer.StorageClassName
		}
	}
	asked, given := in.Local.Annotations[offloadingv1beta1.RemoteStorageClassAnnotation]
	switch {
	case given && slices.Contains(names, asked):
		return asked, ""
	case len(names) == 0:
		return "", fmt.Sprintf("cluster %q offers no storage; let the pod run elsewhere", in.Remote)
	case given:
		return "", fmt.Sprintf("cluster %q does not offer storage class %q; set annotation %s to one of %s",
			in.Remote, cutOff(asked, 253), offloadingv1beta1.RemoteStorageClassAnnotation, enumerated(names))
	case standard == "":
		return "", fmt.Sprintf("cluster %q has no default storage class; set annotation %s to one of %s",
			in.Remote, offloadingv1beta1.RemoteStorageClassAnnotation, enumerated(names))
	}
	return standard, ""
}

// RemoteClaimChanges lists what of the live claim at the provider has to change: labels, annotations, and the size if more is
// wanted. Nothing else of a claim may change, and a claim is never made anew.
func RemoteClaimChanges(live, wanted *corev1.PersistentVolumeClaim) []Change {
	return append(metadataChanges(live, wanted), Growth(live, wanted.Spec.Resources.Requests.Storage().DeepCopy())...)
}

// RemoteClaimName is the name at the provider of a claim that has no volume yet.
func RemoteClaimName(local *corev1.PersistentVolumeClaim) (string, error) {
	name, given := local.Annotations[offloadingv1beta1.RemoteClaimNameAnnotation]
	if !given {
		return local.Name, nil
	}
	if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
		return "", fmt.Errorf("annotation %s: %q is no name of a claim: %s", offloadingv1beta1.RemoteClaimNameAnnotation, cutOff(name, 253), errs[0])
	}
	return name, nil
}

// VirtualClaim names the claim that a claim behind a volume stands for.
func VirtualClaim(behind metav1.Object) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(behind.GetAnnotations()[offloadingv1beta1.VirtualClaimAnnotation], "/")
	return namespace, name, ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
}

// BoundedLabel shortens a name to what a label can hold; different names stay different.
func BoundedLabel(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:])[:10]
	return strings.TrimRight(name[:validation.LabelValueMaxLength-len(digest)-1], "-_.") + "-" + digest
}

// toolPrefixes begin the annotations of other domains that no provisioner reads.
var toolPrefixes = []string{"app.kubernetes.io/", "helm.sh/", "meta.helm.sh/", "kubectl.kubernetes.io/"}

// ofProvisioners are the annotations of a claim by which somebody may provide its volume; providers refuse them.
func ofProvisioners(annotations map[string]string) (keys []string) {
	_, keys = allowed(annotations, toolPrefixes, nil)
	return keys
}

func keysWith(all map[string]string, prefixes []string) []string {
	var keys []string
	for key := range all {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			keys = append(keys, key)
		}
	}
	return keys
}

func storageOf(list corev1.ResourceList) corev1.ResourceList {
	if quantity, there := list[corev1.ResourceStorage]; there {
		return corev1.ResourceList{corev1.ResourceStorage: quantity}
	}
	return nil
}

// enumerated names at most ten.
func enumerated(names []string) string {
	if len(names) > 10 {
		return strings.Join(names[:10], ", ") + fmt.Sprintf(" and %d more", len(names)-10)
	}
	return strings.Join(names, ", ")
}

func cutOff(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "…"
}

// everything is the decision that all volumes may be lost.
const everything = "true"

// GivenUp tells whether the user has decided that the volume of a claim may be lost with an object. A decision is about the
// claims that it names. One about everything counts only while the object is being deleted: it would otherwise outlive its
// occasion, and one day take volumes with it that nobody had in mind.
func GivenUp(object metav1.Object, claim *corev1.ObjectReference) bool {
	decision := object.GetAnnotations()[offloadingv1beta1.DeleteVolumesAnnotation]
	if decision == everything {
		return !object.GetDeletionTimestamp().IsZero()
	}
	if claim == nil || claim.UID == "" {
		return false // Somebody is giving the volume to another claim.
	}
	for uid := range strings.SplitSeq(decision, ",") {
		if strings.TrimSpace(uid) == string(claim.UID) {
			return true
		}
	}
	return false
}

// GiveUp is the decision, as the annotation has it, that the volumes of these claims may be lost.
func GiveUp(claims []corev1.ObjectReference) string {
	var uids []string
	for i := range claims {
		if uid := string(claims[i].UID); uid != "" {
			uids = append(uids, uid)
		}
	}
	slices.Sort(uids)
	return strings.Join(slices.Compact(uids), ",")
}
