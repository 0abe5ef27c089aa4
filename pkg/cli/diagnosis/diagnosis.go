package diagnosis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/target"
)

const maxMessage = 300

// Deployment says why a Deployment is not fully available: which pod is not ready, and what its containers and Events say.
func Deployment(ctx context.Context, cluster *target.Cluster, deployment *appsv1.Deployment) (string, error) {
	if why := WhyNotAvailable(deployment); why == "" {
		return "", nil
	}
	pods, err := podsOf(ctx, cluster, deployment, deployment.Spec.Selector)
	if err != nil {
		return "", err
	}
	if why := whyPods(ctx, cluster, pods); why != "" {
		return why, nil
	}
	return WhyNotAvailable(deployment), nil
}

// DaemonSet says why a DaemonSet is not fully available. A node that is not ready is not waited for.
func DaemonSet(ctx context.Context, cluster *target.Cluster, set *appsv1.DaemonSet) (string, error) {
	if WhyNotEverywhere(set, 0) == "" {
		return "", nil
	}
	pods, err := podsOf(ctx, cluster, set, set.Spec.Selector)
	if err != nil {
		return "", err
	}
	nodes := &corev1.NodeList{}
	if err := cluster.List(ctx, nodes); err != nil {
		return "", err
	}
	here := onReadyNodes(pods, nodes.Items)
	if why := whyPods(ctx, cluster, here); why != "" {
		return why, nil
	}
	return WhyNotEverywhere(set, len(pods)-len(here)), nil
}

// WhyNotEverywhere says what a DaemonSet lacks, from its status alone, besides some pods that are not waited for.
func WhyNotEverywhere(set *appsv1.DaemonSet, besides int) string {
	status := &set.Status
	want := int(status.DesiredNumberScheduled) - besides
	switch {
	case status.ObservedGeneration < set.Generation:
		return "Kubernetes has not looked at the DaemonSet yet"
	case int(status.UpdatedNumberScheduled) < want:
		return fmt.Sprintf("%d of %d pods are of this version", status.UpdatedNumberScheduled, want)
	case int(status.NumberAvailable) < want:
		return fmt.Sprintf("%d of %d pods are available", status.NumberAvailable, want)
	}
	return ""
}

// onReadyNodes are the pods but those that are bound to a node which is not ready.
func onReadyNodes(pods []corev1.Pod, nodes []corev1.Node) []corev1.Pod {
	broken := map[string]bool{}
	for i := range nodes {
		broken[nodes[i].Name] = WhyNodeNotReady(&nodes[i]) != ""
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return broken[pod.Spec.NodeName] })
}

func podsOf(ctx context.Context, cluster *target.Cluster, owner client.Object, selects *metav1.LabelSelector) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(selects)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of %s: %w", cluster.Describe(owner), err)
	}
	pods := &corev1.PodList{}
	if err := cluster.List(ctx, pods, client.InNamespace(owner.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, err
	}
	return pods.Items, nil
}

// whyPods says which of some pods are not ready, and why.
func whyPods(ctx context.Context, cluster *target.Cluster, pods []corev1.Pod) string {
	var reasons []string
	for i := range pods {
		pod := &pods[i]
		if image, _ := WhyNoImage(pod); image != "" && pod.DeletionTimestamp == nil {
			reasons = append(reasons, image)
			continue
		}
		why := WhyNotReady(pod)
		if why == "" {
			continue
		}
		events := &corev1.EventList{}
		// Events only add to what is known already; a user may not be allowed to read them.
		_ = cluster.List(ctx, events, client.InNamespace(pod.Namespace), client.MatchingFields{"involvedObject.uid": string(pod.UID)})
		if last := LastWarning(events.Items); last != "" && !strings.Contains(why, last) {
			why += "; last event: " + last
		}
		reasons = append(reasons, fmt.Sprintf("pod %s: %s", pod.Name, why))
	}
	return strings.Join(reasons, "; ")
}

// stillEnding is why a Deployment that works is not all that it is to be.
const stillEnding = "pods of the earlier version are still ending"

// WhyNotAvailable says what a Deployment lacks, from its status alone.
func WhyNotAvailable(deployment *appsv1.Deployment) string {
	want := int32(1)
	if deployment.Spec.Replicas != nil {
		want = *deployment.Spec.Replicas
	}
	status := &deployment.Status
	switch {
	case status.ObservedGeneration < deployment.Generation:
		return "Kubernetes has not looked at the Deployment yet"
	case status.UpdatedReplicas >= want && status.AvailableReplicas >= want && status.Replicas <= status.UpdatedReplicas:
		return ""
	}
	for _, condition := range status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return condition.Reason + ": " + bound(condition.Message)
		}
	}
	if status.UpdatedReplicas >= want && status.AvailableReplicas >= want {
		return stillEnding
	}
	return fmt.Sprintf("%d of %d pods are available", status.AvailableReplicas, want)
}

// WhyNodeNotReady says why a Node is not ready; empty if it is.
func WhyNodeNotReady(node *corev1.Node) string {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return ""
		} else if c.Type == corev1.NodeReady {
			return "the node is not ready: " + c.Reason + ": " + bound(c.Message)
		}
	}
	return "the node is not ready: its kubelet has not said anything of it"
}

// WhyNotReady says why a pod is not ready.
func WhyNotReady(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason + ": " + bound(condition.Message)
		}
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return ""
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return "it failed: " + strings.TrimSpace(pod.Status.Reason+" "+bound(pod.Status.Message))
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if why := whyContainer(&status); why != "" {
			return why
		}
	}
	if pod.Status.Phase == corev1.PodPending && len(pod.Status.ContainerStatuses) == 0 {
		if pod.Status.Reason != "" {
			return strings.TrimSpace(pod.Status.Reason + " " + bound(pod.Status.Message))
		}
		return "no node has started it yet"
	}
	return "it runs, and is not ready yet"
}

func whyContainer(status *corev1.ContainerStatus) string {
	var parts []string
	if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "PodInitializing" {
		parts = append(parts, fmt.Sprintf("container %s waits: %s", status.Name, strings.TrimSpace(waiting.Reason+" "+bound(waiting.Message))))
	}
	ended := status.State.Terminated
	if ended == nil {
		ended = status.LastTerminationState.Terminated
	}
	if ended != nil && ended.ExitCode != 0 {
		said := strings.TrimSpace(ended.Reason + " " + bound(ended.Message))
		parts = append(parts, fmt.Sprintf("container %s ended with exit code %d: %s", status.Name, ended.ExitCode, said))
	}
	return strings.Join(parts, ", ")
}

// WhyNoImage says which image a pod cannot have, and why; empty if that is not what is in the way. Kubernetes tries again, so what
// it says after the first time may pass: final tells that it cannot.
func WhyNoImage(pod *corev1.Pod) (why string, final bool) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "InvalidImageName", "ErrImageNeverPull":
			final = true
		case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "RegistryUnavailable":
		default:
			continue
		}
		return fmt.Sprintf("image %q of pod %s cannot be had: %s", imageOf(pod, status.Name), pod.Name,
			strings.TrimSuffix(waiting.Reason+": "+bound(waiting.Message), ": ")), final
	}
	return "", false
}

// imageOf is the image that a container asks for: its status may not name it yet.
func imageOf(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

// LastWarning is the newest of the warnings among events.
func LastWarning(events []corev1.Event) string {
	var last *corev1.Event
	for i := range events {
		event := &events[i]
		if event.Type == corev1.EventTypeWarning && (last == nil || when(last).Before(when(event))) {
			last = event
		}
	}
	if last == nil {
		return ""
	}
	return last.Reason + ": " + bound(last.Message)
}

// when is the time of an Event's last occurrence, whichever API it was written through.
func when(event *corev1.Event) *metav1.Time {
	switch {
	case event.Series != nil:
		return &metav1.Time{Time: event.Series.LastObservedTime.Time}
	case !event.LastTimestamp.IsZero():
		return &event.LastTimestamp
	default:
		return &metav1.Time{Time: event.EventTime.Time}
	}
}

func bound(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > maxMessage {
		return message[:maxMessage] + "…"
	}
	return message
}
