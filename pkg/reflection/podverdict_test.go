package reflection

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestWaitingStatus(t *testing.T) {
	local := localPod(corev1.PodStatus{Phase: corev1.PodPending})
	got := WaitingStatus(local, offloadingv1beta1.ReasonOffloadingBackOff, NotOffloadedMessage(local, "milan"), noon)
	if got.Phase != corev1.PodPending || got.Reason != "OffloadingBackOff" || !strings.Contains(got.Message, "liqoctl offload namespace shop") {
		t.Errorf("got %v", got)
	}
	local.Status = got
	if diff := cmp.Diff(got, WaitingStatus(local, offloadingv1beta1.ReasonOffloadingBackOff, NotOffloadedMessage(local, "milan"), noon.Add(time.Hour))); diff != "" {
		t.Errorf("a second look changes the status: %s", diff)
	}
}

func TestAbortedStatus(t *testing.T) {
	got := AbortedStatus(localPod(running("10.1.0.7", 0)), "no longer offloaded", noon)
	if got.Phase != corev1.PodFailed || got.Reason != "OffloadingAborted" || ready(got) != corev1.ConditionFalse {
		t.Errorf("got %v", got)
	}
	if end := got.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != 137 || !end.StartedAt.Equal(new(ago(time.Minute))) {
		t.Errorf("the container ended as %v", end)
	}
}

func TestMissingStatus(t *testing.T) {
	got := MissingStatus(localPod(running("10.1.0.7", 0)), "made again", noon)
	if got.Phase != corev1.PodRunning || ready(got) != corev1.ConditionFalse || got.ContainerStatuses[0].Ready {
		t.Errorf("got %v", got)
	}
}

func TestFinishedStatus(t *testing.T) {
	never := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
	ended := []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 3, FinishedAt: ago(time.Minute)}}}}
	record := func(phase corev1.PodPhase, statuses []corev1.ContainerStatus) *offloadingv1beta1.ShadowPodStatus {
		return &offloadingv1beta1.ShadowPodStatus{Phase: phase, ContainerStatuses: statuses}
	}
	type result struct {
		Phase    corev1.PodPhase
		Reason   string
		ExitCode int32
	}
	for name, tc := range map[string]struct {
		local  *corev1.Pod
		remote *corev1.Pod
		record *offloadingv1beta1.ShadowPodStatus
		want   result
	}{
		"the remote pod is still there": {localPod(running("10.1.0.7", 0), never), remotePod(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: ended}, never),
			record(corev1.PodFailed, nil), result{corev1.PodFailed, "", 3}},
		"the record tells all":               {localPod(running("10.1.0.7", 0), never), nil, record(corev1.PodFailed, ended), result{corev1.PodFailed, "", 3}},
		"success, and nothing else is known": {localPod(running("10.1.0.7", 0), never), nil, record(corev1.PodSucceeded, nil), result{corev1.PodSucceeded, "RemotePodTerminated", 0}},
		"failure, and nothing else is known": {localPod(running("10.1.0.7", 0), never), nil, record(corev1.PodFailed, nil), result{corev1.PodFailed, "RemotePodTerminated", 1}},
		"the provider stopped it": {localPod(running("10.1.0.7", 0)), nil, &offloadingv1beta1.ShadowPodStatus{Phase: corev1.PodFailed,
			Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: offloadingv1beta1.ReasonStoppedOnPartition}}},
			result{corev1.PodFailed, "StoppedOnPartition", 1}},
		"nothing was ever heard of containers": {localPod(corev1.PodStatus{Phase: corev1.PodPending}, never), nil, record(corev1.PodFailed, nil), result{corev1.PodFailed, "RemotePodTerminated", 1}},
		"a pod that is over stays as it is": {localPod(corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Mine", ContainerStatuses: ended}, never), nil, record(corev1.PodSucceeded, nil),
			result{corev1.PodFailed, "Mine", 3}},
	} {
		t.Run(name, func(t *testing.T) {
			status, refused := FinishedStatus(tc.local, tc.remote, tc.record, plainInput)
			got := result{Phase: status.Phase, Reason: status.Reason}
			if len(status.ContainerStatuses) == 1 && status.ContainerStatuses[0].State.Terminated != nil {
				got.ExitCode = status.ContainerStatuses[0].State.Terminated.ExitCode
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || len(refused) > 0 {
				t.Errorf("%s %v", diff, refused)
			}
		})
	}
	if status, _ := FinishedStatus(localPod(running("10.1.0.7", 0)), nil, record(corev1.PodRunning, nil), plainInput); status.Phase != corev1.PodRunning {
		t.Error("a record that does not say that the pod is over changes it")
	}
}

func TestConditionsOfLocalControllersAreNeverTaken(t *testing.T) {
	remote := remotePod(running("10.1.0.7", 0))
	for _, stolen := range []corev1.PodConditionType{corev1.PodScheduled, corev1.DisruptionTarget, "example.org/mine",
		offloadingv1beta1.RemotePodCondition, offloadingv1beta1.InvalidRemoteStatusCondition} {
		remote.Status.Conditions = append(remote.Status.Conditions, corev1.PodCondition{Type: stolen, Status: corev1.ConditionTrue, Message: "stolen"})
	}
	local := localPod(corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: "example.org/mine", Status: corev1.ConditionFalse}}})
	status, _ := LocalStatus(local, remote, plainInput)
	for _, c := range status.Conditions {
		if c.Message == "stolen" {
			t.Errorf("condition %s was taken", c.Type)
		}
	}
	if c := condition(status.Conditions, "example.org/mine"); c == nil || c.Status != corev1.ConditionFalse {
		t.Errorf("the local condition became %v", c)
	}
}
