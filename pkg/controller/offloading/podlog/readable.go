package podlog

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// maxNames bounds the Role, which has to fit into the API server's storage: names have up to 253 characters.
const maxNames = 2000

// Readable lists the pods of a consumer's twin namespace whose logs it asked for and may read, in order and at most 2000.
func Readable(consumer string, shadows []offloadingv1beta1.ShadowPod, pods []corev1.Pod) []string {
	asked := map[string]*offloadingv1beta1.ShadowPod{}
	for i := range shadows {
		if s := &shadows[i]; asks(s) && origin(s) == consumer {
			asked[s.Name] = s
		}
	}
	var names []string
	for i := range pods {
		pod := &pods[i]
		shadow := asked[pod.Name]
		if shadow != nil && origin(pod) == consumer && metav1.IsControlledBy(pod, shadow) &&
			pod.Labels[offloadingv1beta1.ManagedByLabel] == offloadingv1beta1.ManagedByShadowPod {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxNames)]
}
