package placement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeepOffVirtualNodes lets the pods that are made of a spec run on other nodes only, besides what they require themselves, and tells
// whether that changed anything. Applied twice it changes nothing the second time.
func KeepOffVirtualNodes(spec *corev1.PodSpec) bool {
	return requireTerms(spec, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{typeRequirement(corev1.NodeSelectorOpNotIn)}}})
}

// BelongsToNode tells whether a pod has no other node to go to, as those of DaemonSets and a kubelet's own: nobody evicts such a pod.
func BelongsToNode(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}
