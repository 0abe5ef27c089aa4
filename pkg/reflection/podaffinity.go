package reflection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
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

const (
	msgNodeName  = "must not name nodes: on which one a pod from another cluster runs is the provider's to choose"
	msgNodeLabel = "the provider does not let pods from other clusters choose nodes by label %q; its administrator can, " +
		"with the value offloading.consumers.nodeLabels"
)

// kindsOfNodes are labels, and prefixes of such that end in a slash or a dot, that tell kinds of nodes apart, and not one node or one's role from others.
// Of others nobody knows: drivers of storage, clouds and whoever dedicates nodes to a tenant have labels of their own.
var kindsOfNodes = []string{
	corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable, corev1.LabelWindowsBuild,
	"beta.kubernetes.io/arch", "beta.kubernetes.io/os", corev1.LabelInstanceType, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	// What discovers features and devices.
	"feature.node.kubernetes.io/", "nvidia.com/gpu.", "nvidia.com/cuda.", "nvidia.com/mig.", "nvidia.com/mig-", "amd.com/gpu.", "gpu.intel.com/",
	// What clouds charge.
	"karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-", "eks.amazonaws.com/capacityType", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-spot",
	"cloud.google.com/gke-preemptible", "cloud.google.com/gke-provisioning", "cloud.google.com/gke-gpu", "cloud.google.com/gke-gpu-partition-size",
	"cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology", "cloud.google.com/compute-class", "cloud.google.com/machine-family",
	"kubernetes.azure.com/scalesetpriority", "kubernetes.azure.com/accelerator", "karpenter.azure.com/sku-", "k8s.amazonaws.com/accelerator",
	"eks.amazonaws.com/instance-", "eks.amazonaws.com/compute-type", "intel.feature.node.kubernetes.io/",
	// Zones, as drivers of storage call them.
	"topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone", "failure-domain.beta.kubernetes.io/",
}

// namesOfOne are words with which keys end that tell single nodes apart, or groups of nodes of one tenant.
var namesOfOne = []string{"node", "nodes", "name", "nodename", "hostname", "host", "id", "uid", "uuid", "nodeid", "instanceid", "machine", "machineid",
	"serial", "ip", "address", "clique", "tenant", "dedicated", "owner", "customer"}

// MaySelect tells whether pods, and slices of certain nodes, may choose nodes by a label. Keys without a domain mean what the provider's administrator says;
// those that say that they name one node are not meant for that.
func (r Rules) MaySelect(key string) bool {
	domain, name, inDomain := strings.Cut(key, "/")
	switch {
	case key == corev1.LabelHostname:
		return false
	case slices.ContainsFunc(r.NodeLabels, func(allowed string) bool {
		return allowed == anyKey || allowed == key || strings.HasSuffix(allowed, "/") && strings.HasPrefix(key, allowed)
	}):
		return true
	case !inDomain:
		return !strings.Contains(domain, ".") && !namesOne(key)
	case ofOurDomain(key):
		return !namesOne(name) || key == corev1beta1.RemoteClusterIDLabel
	}
	known := slices.ContainsFunc(kindsOfNodes, func(kind string) bool {
		return kind == key || strings.ContainsAny(kind[len(kind)-1:], "/.-") && strings.HasPrefix(key, kind)
	})
	return known && !strings.HasSuffix(key, ".clique")
}

// namesOne tells whether the last word of a label's name says that it tells one node from all others.
func namesOne(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return len(words) == 0 || slices.Contains(namesOfOne, words[len(words)-1])
}

// checkNodes refuses what names nodes of the provider. That a local pod names nodes does not matter: it does not cross.
func (r Rules) checkNodes(root *field.Path, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	refuse := func(path *field.Path, e corev1.NodeSelectorRequirement) {
		// To keep off nodes of a role, such as the control plane, is no choice of a node.
		apart := e.Operator == corev1.NodeSelectorOpDoesNotExist && strings.HasPrefix(e.Key, "node-role.kubernetes.io/")
		key := e.Key
		if apart || r.MaySelect(key) || len(errs) >= maxPodErrors {
			return
		}
		message := msgNodeName
		if key != corev1.LabelHostname {
			message = fmt.Sprintf(msgNodeLabel, cutOff(key, maxNameShown))
		}
		errs = append(errs, field.Forbidden(path, message))
	}
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		refuse(root.Child("nodeSelector").Key(cutOff(key, maxNameShown)), corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn})
	}
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return errs
	}
	nodes, path := spec.Affinity.NodeAffinity, root.Child("affinity", "nodeAffinity")
	for _, term := range ptr.Deref(nodes.RequiredDuringSchedulingIgnoredDuringExecution, corev1.NodeSelector{}).NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			refuse(path.Child("requiredDuringSchedulingIgnoredDuringExecution"), e)
		}
	}
	for _, term := range nodes.PreferredDuringSchedulingIgnoredDuringExecution {
		for _, e := range term.Preference.MatchExpressions {
			refuse(path.Child("preferredDuringSchedulingIgnoredDuringExecution"), e)
		}
	}
	return errs
}
