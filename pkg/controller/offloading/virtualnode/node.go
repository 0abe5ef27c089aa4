package virtualnode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/placement"
)

// applied lists what Liqo put onto a Node.
type applied struct {
	Labels      []string     `json:"labels,omitempty"`
	Annotations []string     `json:"annotations,omitempty"`
	Taints      []taintField `json:"taints,omitempty"`
}

// taintField identifies a taint: a node has at most one of a key and an effect.
type taintField struct {
	Key    string             `json:"key"`
	Effect corev1.TaintEffect `json:"effect"`
}

// wanted is the part of a Node that Liqo owns.
type wanted struct {
	labels      map[string]string
	annotations map[string]string
	taints      []corev1.Taint
}

// want returns what a VirtualNode wants its Node to have. Architecture and operating system are those of the provider's nodes, and left out
// where these differ; of a provider that does not tell, what the virtual kubelet reports in the Node's status, if it has.
func want(vn *offloadingv1beta1.VirtualNode, t *offloadingv1beta1.VkOptionsTemplateSpec, live *corev1.Node) wanted {
	w := wanted{
		labels:      placement.NodeLabels(vn, t.NodeExtraLabels),
		annotations: over(t.NodeExtraAnnotations, vn.Spec.Annotations),
		taints:      []corev1.Taint{{Key: offloadingv1beta1.VirtualNodeTaint, Value: "true", Effect: corev1.TaintEffectNoExecute}},
	}
	for _, taint := range vn.Spec.Taints {
		taint.TimeAdded = nil
		if !hasTaint(w.taints, taint) {
			w.taints = append(w.taints, taint)
		}
	}
	if len(vn.Spec.StorageClasses) > 0 {
		w.labels[offloadingv1beta1.StorageAvailableLabel] = "true"
	}
	nodes := vn.Spec.ProviderNodes
	if nodes != nil && len(nodes.LargestPod) > 0 {
		// Quantities can always be encoded.
		text, _ := json.Marshal(nodes.LargestPod)
		w.annotations[offloadingv1beta1.LargestPodAnnotation] = string(text)
		if capacity.Crowded(nodes.LargestPod) {
			w.annotations[offloadingv1beta1.CrowdedAnnotation] = "true"
		}
	}
	if nodes != nil {
		inform(w.labels, corev1.LabelArchStable, nodes.Architecture)
		inform(w.labels, corev1.LabelOSStable, nodes.OperatingSystem)
		return w
	}
	w.labels[corev1.LabelOSStable] = "linux"
	if live != nil {
		inform(w.labels, corev1.LabelArchStable, live.Status.NodeInfo.Architecture)
		inform(w.labels, corev1.LabelOSStable, live.Status.NodeInfo.OperatingSystem)
	}
	return w
}

func inform(labels map[string]string, key, value string) {
	if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
		labels[key] = value
	}
}

// newNode is the Node as it is created.
func newNode(name string, w wanted) (*corev1.Node, error) {
	return reconciled(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, w)
}

// reconciled returns a Node with what is wanted, without what was wanted before and is not any more, and with everything
// that others put there.
func reconciled(live *corev1.Node, w wanted) (*corev1.Node, error) {
	var before applied
	if text := live.Annotations[offloadingv1beta1.NodeAppliedAnnotation]; text != "" {
		// A list that somebody broke is as good as none: then nothing is taken away.
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			before = applied{}
		}
	}
	node := live.DeepCopy()
	node.Labels = replaced(live.Labels, before.Labels, w.labels)
	node.Annotations = replaced(live.Annotations, before.Annotations, w.annotations)
	node.Spec.Taints = taints(live.Spec.Taints, before.Taints, w.taints)
	now := applied{Labels: slices.Sorted(maps.Keys(w.labels)), Annotations: slices.Sorted(maps.Keys(w.annotations))}
	for _, taint := range w.taints {
		now.Taints = append(now.Taints, taintField{Key: taint.Key, Effect: taint.Effect})
	}
	text, err := json.Marshal(now)
	if err != nil {
		return nil, fmt.Errorf("encoding what was applied to Node %s: %w", live.Name, err)
	}
	node.Annotations[offloadingv1beta1.NodeAppliedAnnotation] = string(text)
	return node, nil
}

// replaced returns live without the keys of before and with the entries of want.
func replaced(live map[string]string, before []string, want map[string]string) map[string]string {
	out := over(live)
	for _, key := range before {
		delete(out, key)
	}
	maps.Copy(out, want)
	return out
}

// taints keeps the order of the live ones, so that an unchanged Node stays equal.
func taints(live []corev1.Taint, before []taintField, want []corev1.Taint) []corev1.Taint {
	var out []corev1.Taint
	for _, taint := range live {
		i := slices.IndexFunc(want, func(w corev1.Taint) bool { return same(w, taint) })
		switch {
		case i >= 0 && want[i].Value == taint.Value:
			out = append(out, taint)
		case i >= 0:
			out = append(out, want[i])
		case !slices.Contains(before, taintField{Key: taint.Key, Effect: taint.Effect}):
			out = append(out, taint)
		}
	}
	for _, taint := range want {
		if !hasTaint(out, taint) {
			out = append(out, taint)
		}
	}
	return out
}

func same(a, b corev1.Taint) bool { return a.Key == b.Key && a.Effect == b.Effect }

func hasTaint(list []corev1.Taint, taint corev1.Taint) bool {
	return slices.ContainsFunc(list, func(t corev1.Taint) bool { return same(t, taint) })
}

// isNodeOf tells whether a Node was made for a VirtualNode.
func isNodeOf(node *corev1.Node, vn *offloadingv1beta1.VirtualNode) bool {
	return node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType &&
		node.Labels[corev1beta1.RemoteClusterIDLabel] == string(vn.Spec.ClusterID) &&
		node.Labels[offloadingv1beta1.VirtualNodeLabel] == vn.Name
}

// differs tells whether a Node must be written.
func differs(live, node *corev1.Node) bool {
	return !equality.Semantic.DeepEqual(live.Labels, node.Labels) || !equality.Semantic.DeepEqual(live.Annotations, node.Annotations) ||
		!equality.Semantic.DeepEqual(live.Spec, node.Spec)
}
