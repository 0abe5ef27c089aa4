package reflection

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func ended(code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Completed", StartedAt: ago(2 * time.Second), FinishedAt: ago(time.Second)}}
}

func runs() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(3 * time.Second)}}
}

// withInit has init containers "init", which is done at some time, and "side", which runs beside the others.
func withInit(p *corev1.Pod) {
	p.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "side", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
}

func TestInitContainersAreReadyAsAKubeletSays(t *testing.T) {
	for name, tc := range map[string]struct {
		local, remote []corev1.ContainerStatus
		want          map[string]bool
	}{
		"one that is done": {nil, []corev1.ContainerStatus{{Name: "init", Ready: true, State: ended(0)}}, map[string]bool{"init": true}},
		"one that is done, of a kubelet that does not call it ready": {nil, []corev1.ContainerStatus{{Name: "init", State: ended(0)}}, map[string]bool{"init": false}},
		"one that failed":                  {nil, []corev1.ContainerStatus{{Name: "init", Ready: true, State: ended(1)}}, map[string]bool{"init": false}},
		"a sidecar that runs":              {nil, []corev1.ContainerStatus{{Name: "side", Ready: true, Started: new(true), State: runs()}}, map[string]bool{"side": true}},
		"a sidecar that ended":             {nil, []corev1.ContainerStatus{{Name: "side", Ready: true, State: ended(0)}}, map[string]bool{"side": false}},
		"one that is not told of any more": {[]corev1.ContainerStatus{{Name: "init", Ready: true, State: ended(0)}, {Name: "side", Ready: true, State: runs()}}, nil, map[string]bool{"init": true, "side": false}},
	} {
		t.Run(name, func(t *testing.T) {
			local, remote := localPod(running("10.1.0.7", 0), withInit), remotePod(running("10.1.0.7", 0), withInit)
			local.Status.InitContainerStatuses, remote.Status.InitContainerStatuses = tc.local, tc.remote
			status, _ := LocalStatus(local, remote, plainInput)
			got := map[string]bool{}
			for _, c := range status.InitContainerStatuses {
				got[c.Name] = c.Ready
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			checkIdempotent(t, local, remote, status, plainInput)
		})
	}
}

// The container of an evicted pod that the provider makes again does not run: it waits, and shows how it ended, also in the next pod.
func TestTheContainerOfAnEvictedPodWaits(t *testing.T) {
	remote := remotePod(running("10.1.0.7", 0))
	local := localPod(corev1.PodStatus{Phase: corev1.PodPending})
	local.Status, _ = LocalStatus(local, remote, plainInput)
	evicted(remote, true)
	remote.Status.ContainerStatuses[0].State = ended(137)
	status, _ := LocalStatus(local, remote, plainInput)
	c := status.ContainerStatuses[0]
	if status.Phase != corev1.PodRunning || c.Ready || c.State.Waiting == nil || c.State.Waiting.Reason != offloadingv1beta1.ReasonRemotePodMissing ||
		c.LastTerminationState.Terminated == nil || c.LastTerminationState.Terminated.ExitCode != 137 || ready(status) != corev1.ConditionFalse {
		t.Errorf("phase %s, container %+v", status.Phase, c)
	}
	checkIdempotent(t, local, remote, status, plainInput)
	local.Status = status
	next := remotePod(running("10.1.0.8", 0))
	next.UID = "next"
	status, _ = LocalStatus(local, next, plainInput)
	c = status.ContainerStatuses[0]
	if c.State.Running == nil || c.RestartCount != 1 || c.LastTerminationState.Terminated == nil {
		t.Errorf("after it was made again: %+v", c)
	}
	checkIdempotent(t, local, next, status, plainInput)
}

func TestNothingRunsInAPodThatIsOver(t *testing.T) {
	local, remote := localPod(running("10.1.0.7", 0), withInit), remotePod(running("10.1.0.7", 0), withInit)
	evicted(remote, false)
	remote.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "side", Ready: true, State: runs()}}
	status, _ := LocalStatus(local, remote, plainInput)
	if status.Phase != corev1.PodFailed || status.ContainerStatuses[0].State.Terminated == nil || status.InitContainerStatuses[0].State.Terminated == nil {
		t.Errorf("phase %s, containers %+v %+v", status.Phase, status.InitContainerStatuses, status.ContainerStatuses)
	}
}

func TestTerminatedStatus(t *testing.T) {
	type result struct {
		Phase  corev1.PodPhase
		Reason string
		States []string
	}
	for name, tc := range map[string]struct {
		local corev1.PodStatus
		known *corev1.PodStatus
		want  result
		init  bool
	}{
		"it ran": {running("10.1.0.7", 0), nil, result{corev1.PodFailed, "", []string{"ContainerStatusUnknown"}}, false},
		"its end is known": {running("10.1.0.7", 0), &corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: ended(0)}}},
			result{corev1.PodSucceeded, "", []string{"Completed"}}, false},
		"it never ran": {corev1.PodStatus{Phase: corev1.PodPending, Reason: "QuotaExceeded"}, nil, result{corev1.PodFailed, "QuotaExceeded", []string{"ContainerStatusUnknown"}}, false},
		"it never ran, and would have had to be initialized": {corev1.PodStatus{Phase: corev1.PodPending}, nil, result{corev1.PodFailed, "", []string{"waits", "waits"}}, true},
		"its init container failed": {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "prepare", State: ended(1)}},
			ContainerStatuses: waitingContainers([]corev1.Container{{Name: "app"}})}, nil, result{corev1.PodFailed, "", []string{"Completed", "waits"}}, true},
		"its init container did its work": {corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "prepare", State: ended(0)}},
			ContainerStatuses: waitingContainers([]corev1.Container{{Name: "app"}})}, nil, result{corev1.PodFailed, "", []string{"Completed", "ContainerStatusUnknown"}}, true},
		"it waits for its image": {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}}, nil,
			result{corev1.PodFailed, "", []string{"ContainerStatusUnknown"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			local := localPod(tc.local)
			local.Spec.InitContainers = nil
			if tc.init {
				local.Spec.InitContainers = []corev1.Container{{Name: "prepare"}}
			}
			status := TerminatedStatus(local, tc.known, noon)
			got := result{Phase: status.Phase, Reason: status.Reason}
			for _, c := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses) {
				reason := ""
				if c.State.Waiting != nil {
					reason = "waits"
				}
				if c.State.Terminated != nil {
					reason = c.State.Terminated.Reason
				}
				got.States = append(got.States, reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if c := condition(status.Conditions, corev1.PodReady); c != nil && c.Status != corev1.ConditionFalse && tc.known == nil {
				t.Errorf("condition Ready is %s", c.Status)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	deferred := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, ObservedGeneration: 2}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = new(ago(0)) }
	for name, tc := range map[string]struct {
		local     *corev1.Pod
		wanted    corev1.PodStatus
		status    int64
		ready     int64
		condition int64
	}{
		"a new generation": {localPod(corev1.PodStatus{ObservedGeneration: 2, Conditions: []corev1.PodCondition{ready, deferred}}),
			corev1.PodStatus{ObservedGeneration: 2, Conditions: []corev1.PodCondition{ready, deferred}}, 3, 3, 2},
		"nothing but what earlier versions did not write": {localPod(corev1.PodStatus{ObservedGeneration: 3, Conditions: []corev1.PodCondition{ready}}),
			corev1.PodStatus{ObservedGeneration: 3, Conditions: []corev1.PodCondition{ready}}, 3, 0, 0},
		"a resize that became pending": {localPod(corev1.PodStatus{ObservedGeneration: 3, Conditions: []corev1.PodCondition{ready}}),
			corev1.PodStatus{ObservedGeneration: 3, Conditions: []corev1.PodCondition{ready, deferred}}, 3, 3, 3},
		"a deletion alone": {localPod(corev1.PodStatus{ObservedGeneration: 2, Conditions: []corev1.PodCondition{ready}}, deleted),
			corev1.PodStatus{ObservedGeneration: 2, Conditions: []corev1.PodCondition{ready}}, 2, 0, 0},
		"a deletion, and more": {localPod(corev1.PodStatus{ObservedGeneration: 2, Conditions: []corev1.PodCondition{ready}}, deleted),
			corev1.PodStatus{ObservedGeneration: 2, Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{ready}}, 3, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.local.Generation = 3
			Observe(tc.local, &tc.wanted, 3)
			got := [3]int64{tc.wanted.ObservedGeneration}
			for _, c := range tc.wanted.Conditions {
				if c.Type == corev1.PodReady {
					got[1] = c.ObservedGeneration
				} else {
					got[2] = c.ObservedGeneration
				}
			}
			if want := [3]int64{tc.status, tc.ready, tc.condition}; got != want {
				t.Errorf("observed %v, want %v", got, want)
			}
		})
	}
}
