package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

const (
	busybox = "busybox:1.36"
	// otherImage runs for ever and has nothing but its program in it.
	otherImage = "lab.liqo.io/pause:1"
	appLabel   = "app"
	// forever ends at once on SIGTERM.
	forever = `trap 'exit 0' TERM; while true; do sleep 1 & wait $!; done`
)

// remotely is a node selector that only virtual nodes meet.
var remotely = map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}

// container runs a script in busybox.
func container(script string) corev1.Container {
	return corev1.Container{
		Name: "main", Image: busybox, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("8Mi"),
		}},
	}
}

// script is the spec of a pod that runs on the virtual node.
func script(text string) corev1.PodSpec {
	grace := int64(2)
	return corev1.PodSpec{
		NodeSelector: remotely, Containers: []corev1.Container{container(text)}, TerminationGracePeriodSeconds: &grace,
	}
}

func podOf(namespace, name string, spec corev1.PodSpec) *corev1.Pod {
	meta := named(namespace, name)
	meta.Labels = map[string]string{appLabel: name}
	return &corev1.Pod{ObjectMeta: meta, Spec: spec}
}

func template(name string, spec corev1.PodSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: name}}, Spec: spec}
}

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: name}}
}

func deployment(namespace, name string, replicas int32, spec corev1.PodSpec) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: named(namespace, name),
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(name), Template: template(name, spec)},
	}
}

func statefulSet(namespace, name string, spec corev1.PodSpec) *appsv1.StatefulSet {
	one := int32(1)
	return &appsv1.StatefulSet{
		ObjectMeta: named(namespace, name),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &one, Selector: selector(name), Template: template(name, spec), ServiceName: name,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
	}
}

func job(namespace, name string, spec corev1.PodSpec) *batchv1.Job {
	spec.RestartPolicy = corev1.RestartPolicyNever
	never := int32(0)
	return &batchv1.Job{ObjectMeta: named(namespace, name), Spec: batchv1.JobSpec{BackoffLimit: &never, Template: template(name, spec)}}
}

// forPods is enough for a number of pods to start on a busy machine.
func forPods(count int) time.Duration { return patience + time.Duration(count)*10*time.Second }

// ready waits until a number of pods of an app are ready, and returns them ordered by name.
func (c *side) ready(t *testing.T, namespace, app string, count int) []corev1.Pod {
	t.Helper()
	return c.readyWithin(t, forPods(count), namespace, app, count)
}

func (c *side) readyWithin(t *testing.T, within time.Duration, namespace, app string, count int) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	eventually(t, within, fmt.Sprintf("%d ready pods of %s/%s at %s", count, namespace, app, c.name), func(ctx context.Context) (bool, string) {
		var err error
		if pods, err = c.pods(ctx, namespace, client.MatchingLabels{appLabel: app}); err != nil {
			return false, err.Error()
		}
		good := 0
		for i := range pods {
			if isReady(&pods[i]) {
				good++
			}
		}
		return good == count && len(pods) == count, describe(pods)
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func isReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// describe says in one line what state pods are in.
func describe(pods []corev1.Pod) string {
	var lines []string
	for i := range pods {
		pod := &pods[i]
		line := fmt.Sprintf("%s on %q: %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase)
		if pod.Status.Reason != "" {
			line += fmt.Sprintf(" (%s: %s)", pod.Status.Reason, pod.Status.Message)
		}
		for _, s := range pod.Status.ContainerStatuses {
			if s.State.Waiting != nil {
				line += fmt.Sprintf(" (%s: %s)", s.State.Waiting.Reason, s.State.Waiting.Message)
			}
		}
		if pod.Status.Phase == corev1.PodRunning && !isReady(pod) {
			line += " not ready"
		}
		lines = append(lines, line)
	}
	return fmt.Sprintf("%d pods: %s", len(pods), strings.Join(lines, ", "))
}

// origin is the UID of the consumer's pod that a provider's pod stands for.
func origin(pod *corev1.Pod) string { return pod.Annotations[corev1beta1.OriginUIDAnnotation] }

// pairs maps the UIDs of the consumer's pods to those of the provider's. Two pods for one are a failure.
func pairs(t *testing.T, remote []corev1.Pod) map[string]string {
	t.Helper()
	found := map[string]string{}
	for i := range remote {
		pod := &remote[i]
		if origin(pod) == "" {
			t.Fatalf("pod %s/%s does not say whom it stands for: %v", pod.Namespace, pod.Name, pod.Annotations)
		}
		if other, twice := found[origin(pod)]; twice {
			t.Fatalf("pods %s and %s both stand for %s", other, pod.UID, origin(pod))
		}
		found[origin(pod)] = string(pod.UID)
	}
	return found
}

// sameAs checks that a namespace has exactly the pods that it had, by pair of UIDs, and that they run.
func (c *side) sameAs(t *testing.T, namespace string, before map[string]string) look {
	return func(ctx context.Context) (bool, string, error) {
		pods, err := c.pods(ctx, namespace)
		if err != nil {
			return false, "", err
		}
		now := pairs(t, pods)
		if len(now) != len(before) {
			return false, describe(pods), nil
		}
		for i := range pods {
			if before[origin(&pods[i])] != string(pods[i].UID) || pods[i].Status.Phase != corev1.PodRunning {
				return false, "another or a broken pod: " + describe(pods), nil
			}
		}
		return true, "the same pods", nil
	}
}
