package reflection

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// daemonRemedy is how the pods of a DaemonSet are kept off virtual nodes.
const daemonRemedy = "keep the DaemonSet off virtual nodes with a required node affinity `liqo.io/type DoesNotExist` in its template, " +
	"or all DaemonSets with the chart value virtualKubelet.virtualNode.keepDaemonSetsOff"

func ofDaemonSet(local *corev1.Pod) bool {
	owner := metav1.GetControllerOf(local)
	return owner != nil && owner.Kind == "DaemonSet"
}

// NotOffloadedMessage tells the user why a pod of a namespace that is not offloaded does not run on a virtual node.
func NotOffloadedMessage(local *corev1.Pod, cluster string) string {
	remedy := "keep the pod off virtual nodes"
	if ofDaemonSet(local) {
		remedy = daemonRemedy
	}
	return fmt.Sprintf("namespace %q is not offloaded to cluster %q: run `liqoctl offload namespace %s`, or %s",
		local.Namespace, cluster, local.Namespace, remedy)
}

// NeverOffloadedMessage says before the words of a refusal, which may be many, what can be done if no provider takes the pod.
func NeverOffloadedMessage(local *corev1.Pod, words string) string {
	fields := NeverOffloaded(local)
	if len(fields) == 0 {
		return words
	}
	return fmt.Sprintf("no provider takes pods with %s: run it in a namespace that is not offloaded, "+
		"or offload this one with pod offloading strategy LocalAndRemote, which keeps such pods at home (%s)",
		strings.Join(fields, ", "), words)
}

// StrayDaemonMessage tells the user why a pod does not run that is on a virtual node only because its DaemonSet tolerates everything,
// given the provider's words; empty if it is no such pod.
func StrayDaemonMessage(local *corev1.Pod, cluster, words string) string {
	everything := func(t corev1.Toleration) bool { return t.Key == "" && t.Operator == corev1.TolerationOpExists }
	if !ofDaemonSet(local) || !slices.ContainsFunc(local.Spec.Tolerations, everything) {
		return ""
	}
	message := fmt.Sprintf("the pod is here because its DaemonSet tolerates everything, and cluster %q does not run it: %s", cluster, daemonRemedy)
	if words != "" {
		message += " (" + words + ")"
	}
	return message
}
