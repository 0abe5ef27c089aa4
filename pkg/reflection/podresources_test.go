package reflection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func requests(pairs ...string) *corev1.ResourceRequirements {
	r := &corev1.ResourceRequirements{}
	for i := 0; i < len(pairs); i += 2 {
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return r
}

func TestResourcesOfAContainer(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted            *corev1.ResourceRequirements
		before, now, want *corev1.ResourceRequirements
	}{
		"the provider does not tell":            {requests("cpu", "1"), nil, nil, nil},
		"the provider does not tell any more":   {requests("cpu", "3"), requests("cpu", "2"), nil, requests("cpu", "2")},
		"the provider claims nothing":           {requests("cpu", "1"), nil, requests(), requests("cpu", "1")},
		"the provider claims nothing any more":  {requests("cpu", "3"), requests("cpu", "2"), requests(), requests("cpu", "2")},
		"a container without any":               {requests(), nil, requests(), requests()},
		"as wanted":                             {requests("cpu", "1"), nil, requests("cpu", "1"), requests("cpu", "1")},
		"a resize that is under way":            {requests("cpu", "2"), requests("cpu", "1"), requests("cpu", "1"), requests("cpu", "1")},
		"a resize that is done":                 {requests("cpu", "2"), requests("cpu", "1"), requests("cpu", "2"), requests("cpu", "2")},
		"a resize that comes half way":          {requests("cpu", "1"), requests("cpu", "3"), requests("cpu", "2"), requests("cpu", "2")},
		"the provider claims more":              {requests("cpu", "1"), requests("cpu", "1"), requests("cpu", "1000"), requests("cpu", "1")},
		"the provider claims more from start":   {requests("cpu", "1"), nil, requests("cpu", "1000"), requests("cpu", "1")},
		"the provider claims less than nothing": {requests("cpu", "2"), requests("cpu", "1"), requests("cpu", "-5"), requests("cpu", "1")},
		"the provider claims others":            {requests("cpu", "1"), nil, requests("cpu", "1", "example.com/gpu", "8"), requests("cpu", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: *tc.wanted}}}}
			tr := &translation{local: pod}
			got := tr.resources("app", tc.before, tc.now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(got, tr.resources("app", got, tc.now)); diff != "" {
				t.Errorf("looking again changes it: %s", diff)
			}
		})
	}
}

func TestAllocatedResourcesComeBack(t *testing.T) {
	local := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: *requests("cpu", "2")}}}}
	remote := local.DeepCopy()
	remote.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", AllocatedResources: corev1.ResourceList{"cpu": resource.MustParse("1000")}}}}
	status, _ := LocalStatus(local, remote, StatusInput{})
	if diff := cmp.Diff(requests("cpu", "2").Requests, status.ContainerStatuses[0].AllocatedResources); diff != "" {
		t.Error(diff)
	}
}

// What the provider's admission says of a size counts more than what its kubelet says of the one before.
func TestARefusedSizeIsPending(t *testing.T) {
	local := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	remote := local.DeepCopy()
	remote.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	in := StatusInput{ResizePending: &corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
		Reason: corev1.PodReasonDeferred, Message: "no room"}}
	local.Status, _ = LocalStatus(local, remote, in)
	if c := condition(local.Status.Conditions, corev1.PodResizePending); c == nil || c.Reason != corev1.PodReasonDeferred || c.Message != "no room" {
		t.Errorf("conditions are %v", local.Status.Conditions)
	}
	local.Status, _ = LocalStatus(local, remote, StatusInput{})
	if c := condition(local.Status.Conditions, corev1.PodResizePending); c == nil || c.Reason != corev1.PodReasonInfeasible {
		t.Errorf("conditions are %v", local.Status.Conditions)
	}
}

func TestConditionsAboutAResizeComeAndGo(t *testing.T) {
	local := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	remote := local.DeepCopy()
	remote.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	local.Status, _ = LocalStatus(local, remote, StatusInput{})
	if c := condition(local.Status.Conditions, corev1.PodResizePending); c == nil || c.Reason != corev1.PodReasonInfeasible {
		t.Errorf("the resize is not shown to be infeasible: %v", local.Status.Conditions)
	}
	remote.Status.Conditions = nil
	local.Status, _ = LocalStatus(local, remote, StatusInput{})
	if c := condition(local.Status.Conditions, corev1.PodResizePending); c != nil {
		t.Errorf("the condition stays: %v", c)
	}
}

// A size that can never be had is counted by what containers have: where that is not known, nothing would be counted.
func TestInfeasibleNeedsWhatContainersHave(t *testing.T) {
	one := *requests("cpu", "1")
	for name, tc := range map[string]struct {
		resources *corev1.ResourceRequirements
		allocated corev1.ResourceList
		want      string
	}{
		"known":     {&one, one.Requests, corev1.PodReasonInfeasible},
		"not known": {nil, nil, corev1.PodReasonDeferred},
		"half":      {&one, nil, corev1.PodReasonDeferred},
	} {
		t.Run(name, func(t *testing.T) {
			local := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: one}}}}
			remote := local.DeepCopy()
			remote.Status = corev1.PodStatus{Phase: corev1.PodRunning,
				Conditions:        []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Resources: tc.resources, AllocatedResources: tc.allocated}}}
			status, _ := LocalStatus(local, remote, StatusInput{})
			if got := condition(status.Conditions, corev1.PodResizePending); got == nil || got.Reason != tc.want {
				t.Errorf("the condition is %+v", got)
			}
		})
	}
}
