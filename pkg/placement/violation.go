package placement

import (
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Violates tells whether a pod runs on a node on which the rules of its namespace, as they are now, would not let it start. Pods that ask
// for a virtual node by RuntimeClass are not under the rules; those that ended, wait for a node or belong to theirs violate none. The
// error is a *SelectorError.
func Violates(pod *corev1.Pod, node *corev1.Node, rules PodRules) (bool, error) {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if ended || pod.Spec.NodeName != node.Name || rules.byRuntimeClass(pod) || BelongsToNode(pod) {
		return false, nil
	}
	virtual := node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType
	switch {
	case !virtual:
		return rules.Strategy == offloadingv1beta1.RemotePodOffloadingStrategyType, nil
	case rules.Strategy == offloadingv1beta1.LocalPodOffloadingStrategyType:
		return true, nil
	}
	selected, err := Selects(rules.Selector, node.Name, node.Labels)
	return err == nil && !selected, err
}

// byRuntimeClass tells whether a pod asks for a virtual node by RuntimeClass, which brings its own scheduling rules.
func (r PodRules) byRuntimeClass(pod *corev1.Pod) bool {
	class := r.RuntimeClass
	if class == "" {
		class = offloadingv1beta1.DefaultRuntimeClass
	}
	return pod.Spec.RuntimeClassName != nil && *pod.Spec.RuntimeClassName == class
}
