package diagnosis

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWhyNotReady(t *testing.T) {
	status := func(s corev1.ContainerStatus) corev1.PodStatus {
		s.Name = "main"
		return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{s}}
	}
	condition := func(kind corev1.PodConditionType, value corev1.ConditionStatus, reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: kind, Status: value, Reason: reason, Message: message}}}
	}
	cases := map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"ready":         {condition(corev1.PodReady, corev1.ConditionTrue, "", ""), ""},
		"unschedulable": {condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/1 nodes\n  are available"), "Unschedulable: 0/1 nodes are available"},
		"no image": {status(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}}}),
			"container main waits: ErrImagePull not found"},
		"crashing": {status(corev1.ContainerStatus{
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: "no config"}},
		}), "container main waits: CrashLoopBackOff, container main ended with exit code 2: Error no config"},
		"failed":      {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "no disk"}, "it failed: Evicted no disk"},
		"refused":     {corev1.PodStatus{Phase: corev1.PodPending, Reason: "PodRefused", Message: "no"}, "PodRefused no"},
		"not started": {corev1.PodStatus{Phase: corev1.PodPending}, "no node has started it yet"},
		"starting":    {status(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}), "it runs, and is not ready yet"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			if got := WhyNotReady(&corev1.Pod{Status: test.status}); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhyNotAvailable(t *testing.T) {
	cases := map[string]struct {
		generation int64
		status     appsv1.DeploymentStatus
		want       string
	}{
		"available":     {1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, ""},
		"not looked at": {2, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, "Kubernetes has not looked at the Deployment yet"},
		"partly":        {1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}, "1 of 2 pods are available"},
		"old pods":      {1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 2}, "pods of the earlier version are still ending"},
		"no pods": {1, appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "quota"},
		}}, "FailedCreate: quota"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: test.generation}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(2))}, Status: test.status}
			if got := WhyNotAvailable(d); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhyNotEverywhere(t *testing.T) {
	cases := map[string]struct {
		status  appsv1.DaemonSetStatus
		besides int
		want    string
	}{
		"on all nodes":              {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3}, 0, ""},
		"not looked at":             {appsv1.DaemonSetStatus{ObservedGeneration: 1}, 0, "Kubernetes has not looked at the DaemonSet yet"},
		"of an older version":       {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 1, NumberAvailable: 3}, 0, "1 of 3 pods are of this version"},
		"starting":                  {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 2}, 0, "2 of 3 pods are available"},
		"a node that is not ready":  {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 2}, 1, ""},
		"that one and another node": {appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 1}, 1, "1 of 2 pods are available"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: test.status}
			if got := WhyNotEverywhere(set, test.besides); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPodsOfNodesThatAreNotReadyAreLeftOut(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	pod := func(node string) corev1.Pod { return corev1.Pod{Spec: corev1.PodSpec{NodeName: node}} }
	nodes := []corev1.Node{node("well", corev1.ConditionTrue), node("lost", corev1.ConditionUnknown), {ObjectMeta: metav1.ObjectMeta{Name: "new"}}}
	var left []string
	for _, pod := range onReadyNodes([]corev1.Pod{pod("well"), pod("lost"), pod("new"), pod("")}, nodes) {
		left = append(left, pod.Spec.NodeName)
	}
	if len(left) != 2 || left[0] != "well" || left[1] != "" {
		t.Errorf("the pods on nodes %q are waited for, want those on \"well\" and on none yet", left)
	}
}

func TestLastWarning(t *testing.T) {
	now := time.Now()
	event := func(kind, reason string, age time.Duration) corev1.Event {
		return corev1.Event{Type: kind, Reason: reason, Message: strings.Repeat("x", 400), LastTimestamp: metav1.NewTime(now.Add(-age))}
	}
	got := LastWarning([]corev1.Event{event("Warning", "Old", time.Hour), event("Warning", "New", time.Minute), event("Normal", "Fine", 0)})
	if want := "New: " + strings.Repeat("x", maxMessage) + "…"; got != want {
		t.Errorf("got %q", got)
	}
}
