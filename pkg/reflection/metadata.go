package reflection

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// NotReflected are keys that stay at home.
type NotReflected struct {
	// Labels are label keys.
	Labels []string
	// Annotations are annotation keys.
	Annotations []string
}

// ownershipLabels are ours or a peer's to set; a local object's own never cross.
var ownershipLabels = []string{
	offloadingv1beta1.OriginLabel, offloadingv1beta1.DestinationLabel, offloadingv1beta1.NodeNameLabel,
	offloadingv1beta1.ManagedByLabel, offloadingv1beta1.LocalPodLabel, offloadingv1beta1.RemoteUnavailableLabel,
	offloadingv1beta1.MarkedLabel, offloadingv1beta1.SizeCheckedLabel,
	offloadingv1beta1.CreatorUserLabel, offloadingv1beta1.ServiceAccountNameLabel, offloadingv1beta1.ComponentLabel, offloadingv1beta1.VirtualNodeLabel,
	corev1beta1.RemoteClusterIDLabel, corev1beta1.ReplicationLabel, corev1beta1.RemoteIDLabel, corev1beta1.OriginIDLabel,
	corev1beta1.ReplicatedLabel, corev1beta1.ManagedLabel, corev1beta1.WebhookLabel, corev1beta1.TenantNamespaceLabel,
	networkingv1beta1.GatewayComponentLabel, networkingv1beta1.GatewayNameLabel, networkingv1beta1.ActiveLabel,
}

// ourLabelPrefix begins those of our labels that are about copies and twins.
const ourLabelPrefix = "offloading.liqo.io/"

// isOurLabel tells labels that we write from those of users: by none of them an object at the provider can be selected as at home.
func isOurLabel(key string) bool {
	return slices.Contains(ownershipLabels, key) || strings.HasPrefix(key, ourLabelPrefix)
}

// withoutOurLabels is a selector as it holds at the provider: kubectl expose copies all labels of a pod into one. The selector itself, if
// none of them is ours.
func withoutOurLabels(selector *metav1.LabelSelector) *metav1.LabelSelector {
	ours := func(e metav1.LabelSelectorRequirement) bool { return isOurLabel(e.Key) }
	if selector == nil || !hasOurLabel(selector.MatchLabels) && !slices.ContainsFunc(selector.MatchExpressions, ours) {
		return selector
	}
	selector = selector.DeepCopy()
	maps.DeleteFunc(selector.MatchLabels, func(key, _ string) bool { return isOurLabel(key) })
	selector.MatchExpressions = slices.DeleteFunc(selector.MatchExpressions, ours)
	return selector
}

func hasOurLabel(labels map[string]string) bool {
	for key := range labels {
		if isOurLabel(key) {
			return true
		}
	}
	return false
}

// homeAnnotations mean something to this cluster's tools and controllers only.
var homeAnnotations = []string{
	corev1.LastAppliedConfigAnnotation,
	// Locks of leader election are rewritten every few seconds.
	"control-plane.alpha.kubernetes.io/leader",
	// Argo CD at the provider would take the copy for a resource that is to be pruned.
	"argocd.argoproj.io/tracking-id",
	"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation",
	// Written by this cluster's API server about what its own admission did.
	"kubernetes.io/limit-ranger", "kubernetes.io/psp", "openshift.io/scc", "security.openshift.io/validated-scc-subject-type",
	offloadingv1beta1.SkipReflectionAnnotation, offloadingv1beta1.AllowReflectionAnnotation,
	offloadingv1beta1.ManagedByNamespaceMapAnnotation, offloadingv1beta1.ReflectedKeysAnnotation, offloadingv1beta1.DroppedFieldsAnnotation,
	offloadingv1beta1.RefusedPartAnnotation, offloadingv1beta1.GivenClassAnnotation,
	offloadingv1beta1.LogsRequestedAnnotation, offloadingv1beta1.EndsInAnnotation,
	offloadingv1beta1.OriginNamespaceAnnotation, offloadingv1beta1.OriginLabelsAnnotation,
	offloadingv1beta1.OpenGatesAnnotation, offloadingv1beta1.ResourcesAskedAnnotation, offloadingv1beta1.AskedAnnotation,
	offloadingv1beta1.TokenPodNameAnnotation, offloadingv1beta1.TokenPodUIDAnnotation, offloadingv1beta1.TokenExpirationAnnotation,
	corev1beta1.OriginUIDAnnotation,
}

// RemoteLabels are the labels that a local object has at the provider: its own minus those that stay at home, plus the
// ownership labels.
func RemoteLabels(local metav1.Object, home, remote string, not NotReflected) map[string]string {
	labels := without(local.GetLabels(), not.Labels, ownershipLabels)
	labels[offloadingv1beta1.OriginLabel] = home
	labels[offloadingv1beta1.DestinationLabel] = remote
	return labels
}

// RemoteAnnotations are the annotations that a local object has at the provider: its own minus those that stay at home,
// plus the UID that links the two.
func RemoteAnnotations(local metav1.Object, not NotReflected) map[string]string {
	annotations := without(local.GetAnnotations(), not.Annotations, homeAnnotations)
	annotations[corev1beta1.OriginUIDAnnotation] = string(local.GetUID())
	return annotations
}

func without(all map[string]string, lists ...[]string) map[string]string {
	kept := make(map[string]string, len(all)+2)
	maps.Copy(kept, all)
	for _, list := range lists {
		for _, key := range list {
			delete(kept, key)
		}
	}
	return kept
}

// remoteMeta is the metadata of the remote object.
func remoteMeta(in Input, name string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name:        name,
		Namespace:   in.RemoteNamespace,
		Labels:      RemoteLabels(in.Local, in.Home, in.Remote, in.NotReflected),
		Annotations: RemoteAnnotations(in.Local, in.NotReflected),
	}
	recordKeys(&meta)
	return meta
}

// IsOurs tells whether a remote object carries both halves of the mark: the ownership labels and the UID of its origin.
func IsOurs(remote metav1.Object, home, destination string) bool {
	labels := remote.GetLabels()
	return labels[offloadingv1beta1.OriginLabel] == home && labels[offloadingv1beta1.DestinationLabel] == destination &&
		OriginUID(remote) != ""
}

// OriginUID is the UID of the local object that a remote object stands for; empty if it does not say.
func OriginUID(remote metav1.Object) string {
	return remote.GetAnnotations()[corev1beta1.OriginUIDAnnotation]
}

// The record of reflected keys: which labels and annotations of a remote object are ours, so that those which vanish at
// home can be told from those which somebody at the provider added. Each key takes four characters.
const (
	keyMark = 4
	maxKeys = 200
)

// mark stands for a key of the labels or the annotations.
func mark(field, key string) string {
	sum := sha256.Sum256([]byte(field + "/" + key))
	return base64.RawURLEncoding.EncodeToString(sum[:3])
}

// recordKeys writes the record. Objects with very many keys get none: their vanished labels stay at the provider.
func recordKeys(meta metav1.Object) {
	labels, annotations := meta.GetLabels(), meta.GetAnnotations()
	if len(labels)+len(annotations) > maxKeys {
		return
	}
	marks := make([]string, 0, len(labels)+len(annotations))
	for key := range labels {
		marks = append(marks, mark("labels", key))
	}
	for key := range annotations {
		marks = append(marks, mark("annotations", key))
	}
	slices.Sort(marks)
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	record := strings.Join(slices.Compact(marks), "")
	if size+len(offloadingv1beta1.ReflectedKeysAnnotation)+len(record) > maxAnnotations {
		return
	}
	annotations[offloadingv1beta1.ReflectedKeysAnnotation] = record
	meta.SetAnnotations(annotations)
}

// recorded reads the record of an object.
func recorded(object metav1.Object) map[string]bool {
	record := object.GetAnnotations()[offloadingv1beta1.ReflectedKeysAnnotation]
	marks := map[string]bool{}
	for ; len(record) >= keyMark && len(marks) < 2*maxKeys; record = record[keyMark:] {
		marks[record[:keyMark]] = true
	}
	return marks
}

// metadataChanges lists the labels and annotations that have to change. Those that somebody at the provider added stay.
func metadataChanges(live, wanted Object) []Change {
	if live == nil {
		return unseenMetadataChanges(wanted)
	}
	stale := recorded(live)
	for key := range recorded(wanted) {
		delete(stale, key)
	}
	changes := mapChanges("labels", live.GetLabels(), wanted.GetLabels(), stale)
	return append(changes, mapChanges("annotations", live.GetAnnotations(), wanted.GetAnnotations(), stale)...)
}

// unseenMetadataChanges lists the labels and annotations of an object that cannot be read, but for the record of them: as long as
// that is the old one it tells which have to go. Without a record nobody could tell those from others, and all are ours.
func unseenMetadataChanges(wanted Object) []Change {
	labels, annotations := wanted.GetLabels(), wanted.GetAnnotations()
	if _, kept := annotations[offloadingv1beta1.ReflectedKeysAnnotation]; !kept {
		return []Change{
			{Path: []string{"metadata", "labels"}, Value: labels},
			{Path: []string{"metadata", "annotations"}, Value: annotations},
		}
	}
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		changes = append(changes, Change{Path: []string{"metadata", "labels", key}, Value: labels[key]})
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if key != offloadingv1beta1.ReflectedKeysAnnotation {
			changes = append(changes, Change{Path: []string{"metadata", "annotations", key}, Value: annotations[key]})
		}
	}
	return changes
}

// ChangesKeys tells whether a change is of which labels and annotations there are, or of the record of them, and not of a value.
func ChangesKeys(c Change) bool {
	return len(c.Path) == 3 && c.Path[0] == "metadata" && (c.Value == nil || c.Path[2] == offloadingv1beta1.ReflectedKeysAnnotation)
}

func mapChanges(field string, live, wanted map[string]string, stale map[string]bool) []Change {
	var changes []Change
	if len(live) == 0 && len(wanted) > 0 {
		return []Change{{Path: []string{"metadata", field}, Value: wanted}}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if value, there := live[key]; !there || value != wanted[key] {
			changes = append(changes, Change{Path: []string{"metadata", field, key}, Value: wanted[key]})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(live)) {
		if _, keep := wanted[key]; !keep && stale[mark(field, key)] {
			changes = append(changes, Change{Path: []string{"metadata", field, key}})
		}
	}
	return changes
}
