package pod

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/test/fakeapi"
)

// The API server removes a pod in two steps, each an event: the removal is asked for once.
func TestARemovalInTwoStepsIsAskedForOnce(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", ResourceVersion: "1",
		DeletionTimestamp: &now, DeletionGracePeriodSeconds: ptr.To[int64](30)}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	client, clock := fake.NewClientset(), clocktesting.NewFakeClock(now.Time)
	fakeapi.React(&client.Fake, "delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	r := &Reconciler{options: Options{Local: client, Clock: clock}, memory: newMemory(nil, nil)}
	deletions := func(want int, when string) {
		t.Helper()
		n := 0
		for _, action := range client.Actions() {
			if action.GetVerb() == "delete" {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d deletions, want %d", when, n, want)
		}
	}
	if err := r.deleteLocal(context.Background(), local); err != nil {
		t.Fatal(err)
	}
	deletions(1, "at first")
	shortened := local.DeepCopy()
	shortened.ResourceVersion, shortened.DeletionGracePeriodSeconds = "2", ptr.To[int64](0)
	if err := r.deleteLocal(context.Background(), shortened); reconcile.Classify(err) != reconcile.Waiting {
		t.Errorf("error %v, want to wait for the second step", err)
	}
	deletions(1, "after the first step")
	clock.Step(removalSeen + time.Second)
	if err := r.deleteLocal(context.Background(), shortened); err != nil {
		t.Fatal(err)
	}
	deletions(2, "when the second step does not come")
}

// What is noted of a pod goes with it, whether its end shows before, during or after the call.
func TestNotesOfAWriteGoWithThePod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", ResourceVersion: "1"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	gone := apierrors.NewNotFound(podResource.GroupResource(), "p")
	for name, tc := range map[string]struct {
		answer            *corev1.Pod
		err               error
		endsDuring, notes bool
	}{
		"the write is awaited to show":      {answer: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}, notes: true},
		"nothing was written":               {answer: pod},
		"the pod ended before":              {err: gone},
		"it is another version or pod":      {err: apierrors.NewConflict(podResource.GroupResource(), "p", errors.New("another UID"))},
		"the API server does not answer":    {err: errors.New("connection refused")},
		"the pod ends before the answer":    {answer: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}, endsDuring: true},
		"the pod ends, and no answer comes": {err: errors.New("connection reset by peer"), endsDuring: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			r := &Reconciler{options: Options{Local: client, Clock: clocktesting.NewFakeClock(time.Unix(1000, 0))}, memory: newMemory(nil, nil)}
			fakeapi.React(&client.Fake, "*", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if tc.endsDuring {
					r.forget(pod)
				}
				return true, tc.answer, tc.err
			})
			_ = r.patchStatus(context.Background(), pod, &corev1.PodStatus{Phase: corev1.PodRunning}, 0)
			if noted := r.memory.known("u").patched != nil; noted != tc.notes {
				t.Errorf("a write of the status is noted: %v", noted)
			}
			_ = r.deleteLocal(context.Background(), pod)
			if noted := r.memory.known("u").ended != nil; noted != (tc.err == nil && !tc.endsDuring) {
				t.Errorf("a removal is noted: %v", noted)
			}
		})
	}
}

// Other news of a pod, such as its binding, is no reason to write that its remote pod is pending.
func TestAStartingPodIsLeftAloneForAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	r := &Reconciler{options: Options{Clock: clock}, memory: newMemory(nil, nil)}
	local, remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	wanted := &corev1.PodStatus{Phase: corev1.PodPending}
	if left := r.stillStarting(local, remote, wanted); left != 0 {
		t.Errorf("a pod that was not seen is waited for %s", left)
	}
	r.memory.of("u").starting = clock.Now()
	clock.Step(time.Second)
	if left := r.stillStarting(local, remote, wanted); left != startCalm-time.Second {
		t.Errorf("waits %s after a second", left)
	}
	if left := r.stillStarting(local, nil, wanted); left != 0 {
		t.Errorf("waits %s for a pod that is not there", left)
	}
	if left := r.stillStarting(local, remote, &corev1.PodStatus{Phase: corev1.PodRunning}); left != 0 {
		t.Errorf("waits %s before it writes that the pod runs", left)
	}
	clock.Step(startCalm)
	if left := r.stillStarting(local, remote, wanted); left > 0 {
		t.Errorf("waits %s more after the time", left)
	}
}

func TestCalm(t *testing.T) {
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	scheduled := func(status corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   time.Duration
	}{
		"a new pod":              {corev1.PodStatus{}, startCalm},
		"a placed pod":           {corev1.PodStatus{Phase: corev1.PodPending, Conditions: scheduled(corev1.ConditionTrue)}, startCalm},
		"containers are made":    {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ContainerCreating")}, startCalm},
		"it fits nowhere":        {corev1.PodStatus{Phase: corev1.PodPending, Conditions: scheduled(corev1.ConditionFalse)}, statusCalm},
		"its image is not there": {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("ErrImagePull")}, statusCalm},
		"it is being initialized": {corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting("PodInitializing"),
			InitContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}, statusCalm},
		"the provider has a reason": {corev1.PodStatus{Phase: corev1.PodPending, Reason: "OutOfCpu"}, statusCalm},
		"it runs":                   {corev1.PodStatus{Phase: corev1.PodRunning}, 0},
		"it failed":                 {corev1.PodStatus{Phase: corev1.PodFailed}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := calm(&corev1.Pod{Status: tc.status}); got != tc.want {
				t.Errorf("calm for %s, want %s", got, tc.want)
			}
		})
	}
}
