package reflection

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Values of the annotation liqo.io/anti-affinity-preset.
const (
	presetSoft      = "soft"
	presetHard      = "hard"
	presetPropagate = "propagate"
)

// labelsOfOneRevision tell replicas of one workload apart, which is the opposite of what the preset needs.
var labelsOfOneRevision = []string{appsv1.ControllerRevisionHashLabelKey, appsv1.DefaultDeploymentUniqueLabelKey, appsv1.StatefulSetPodNameLabel}

// applyPatch gives the pod what the virtual node gives to all its pods.
func applyPatch(spec *corev1.PodSpec, patch *offloadingv1beta1.OffloadingPatch) {
	if patch == nil {
		return
	}
	spec.NodeSelector = maps.Clone(patch.NodeSelector)
	spec.Tolerations = append(spec.Tolerations, patch.DeepCopy().Tolerations...)
	if a := patch.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.DeepCopy()}}
	}
}

// applyAntiAffinity spreads the pod over the provider's nodes, as its annotation asks.
func applyAntiAffinity(spec *corev1.PodSpec, local *corev1.Pod) *Refusal {
	preset := local.Annotations[offloadingv1beta1.AntiAffinityPresetAnnotation]
	var anti *corev1.PodAntiAffinity
	switch preset {
	case "":
		return nil
	case presetPropagate:
		if local.Spec.Affinity == nil || local.Spec.Affinity.PodAntiAffinity == nil {
			return nil
		}
		anti = local.Spec.Affinity.PodAntiAffinity.DeepCopy()
		if looksElsewhere(anti) {
			return &Refusal{Reason: offloadingv1beta1.ReasonPodRefused, Message: "the pod's anti-affinity names other namespaces, " +
				"which the provider does not have; remove them or the annotation " + offloadingv1beta1.AntiAffinityPresetAnnotation}
		}
	case presetSoft, presetHard:
		term := corev1.PodAffinityTerm{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: presetLabels(local)},
		}
		anti = &corev1.PodAntiAffinity{}
		if preset == presetSoft {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}
		} else {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
		}
	default:
		return &Refusal{Reason: offloadingv1beta1.ReasonPodRefused, Message: fmt.Sprintf("annotation %s must be %s, %s or %s",
			offloadingv1beta1.AntiAffinityPresetAnnotation, presetSoft, presetHard, presetPropagate)}
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	spec.Affinity.PodAntiAffinity = anti
	return nil
}

// presetLabels are the labels by which the pod finds those that it keeps away from.
func presetLabels(local *corev1.Pod) map[string]string {
	keys, chosen := local.Annotations[offloadingv1beta1.AntiAffinityLabelsAnnotation]
	if !chosen {
		return without(local.Labels, labelsOfOneRevision, ownershipLabels)
	}
	labels := map[string]string{}
	for key := range strings.SplitSeq(keys, ",") {
		key = strings.TrimSpace(key)
		if value, ok := local.Labels[key]; ok {
			labels[key] = value
		}
	}
	return labels
}

func looksElsewhere(anti *corev1.PodAntiAffinity) bool {
	terms := anti.RequiredDuringSchedulingIgnoredDuringExecution
	for _, t := range anti.PreferredDuringSchedulingIgnoredDuringExecution {
		terms = append(terms, t.PodAffinityTerm)
	}
	for i := range terms {
		if len(terms[i].Namespaces) > 0 || terms[i].NamespaceSelector != nil {
			return true
		}
	}
	return false
}
