package reflection

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
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

// labelsOfOneReplica tell revisions or replicas of one workload apart, which is the opposite of what the preset needs.
var labelsOfOneReplica = []string{
	appsv1.ControllerRevisionHashLabelKey, appsv1.DefaultDeploymentUniqueLabelKey,
	appsv1.StatefulSetPodNameLabel, appsv1.PodIndexLabel, batchv1.JobCompletionIndexAnnotation,
}

// applyPatch gives the pod what the virtual node gives to all its pods.
func applyPatch(spec *corev1.PodSpec, patch *offloadingv1beta1.OffloadingPatch) {
	if patch == nil {
		return
	}
	patch = patch.DeepCopy()
	spec.NodeSelector = patch.NodeSelector
	spec.Tolerations = append(spec.Tolerations, patch.Tolerations...)
	if a := patch.Affinity; a != nil && a.NodeAffinity != nil {
		nodes := corev1.NodeAffinity(*a.NodeAffinity)
		if nodes.RequiredDuringSchedulingIgnoredDuringExecution != nil || len(nodes.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
			spec.Affinity = &corev1.Affinity{NodeAffinity: &nodes}
		}
	}
}

// applyAntiAffinity spreads the pod over the provider's nodes, as its annotation asks. crossing are those of its labels that the
// remote pod has.
func applyAntiAffinity(spec *corev1.PodSpec, local *corev1.Pod, crossing map[string]string) *Refusal {
	refused := func(format string, args ...any) *Refusal {
		return &Refusal{Reason: offloadingv1beta1.ReasonPodRefused, Message: fmt.Sprintf(format, args...)}
	}
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
			return refused("the pod's anti-affinity names other namespaces, which the provider does not have; remove them or the annotation %s",
				offloadingv1beta1.AntiAffinityPresetAnnotation)
		}
		spellTerms(anti, crossing)
	case presetSoft, presetHard:
		labels := presetLabels(local, crossing)
		if len(labels) == 0 {
			// An empty selector would keep the pod away from all others of the namespace.
			return refused("annotation %s has nothing to go by: none of the labels that count for it (see annotation %s) is on the pod at the provider",
				offloadingv1beta1.AntiAffinityPresetAnnotation, offloadingv1beta1.AntiAffinityLabelsAnnotation)
		}
		term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
		anti = &corev1.PodAntiAffinity{}
		if preset == presetSoft {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}}
		} else {
			anti.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term}
		}
	default:
		return refused("annotation %s must be %s, %s or %s",
			offloadingv1beta1.AntiAffinityPresetAnnotation, presetSoft, presetHard, presetPropagate)
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	spec.Affinity.PodAntiAffinity = anti
	return nil
}

// presetLabels are the labels by which the pod finds those that it keeps away from: they are on the remote pods, too.
func presetLabels(local *corev1.Pod, crossing map[string]string) map[string]string {
	keys, chosen := local.Annotations[offloadingv1beta1.AntiAffinityLabelsAnnotation]
	if !chosen {
		return without(crossing, labelsOfOneReplica)
	}
	labels := map[string]string{}
	for key := range strings.SplitSeq(keys, ",") {
		key = strings.TrimSpace(key)
		if value, ok := crossing[key]; ok {
			labels[key] = value
		}
	}
	return labels
}

func looksElsewhere(anti *corev1.PodAntiAffinity) bool {
	return slices.ContainsFunc(antiAffinityTerms(anti), func(term *corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	})
}
