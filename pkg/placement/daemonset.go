package placement

import (
	corev1 "k8s.io/api/core/v1"
)

// KeepOffVirtualNodes lets the pods that are made of a spec run on other nodes only, besides what they require themselves, and tells
// whether that changed anything. Applied twice it changes nothing the second time.
func KeepOffVirtualNodes(spec *corev1.PodSpec) bool {
	return requireTerms(spec, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{typeRequirement(corev1.NodeSelectorOpNotIn)}}})
}
