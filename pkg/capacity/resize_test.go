package capacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestTaken(t *testing.T) {
	asked := &corev1.PodSpec{
		Containers:     []corev1.Container{container("a", resources("cpu", "2"), nil), container("b", resources("cpu", "1", "memory", "1Gi"), nil)},
		InitContainers: []corev1.Container{container("i", resources("cpu", "1"), nil)},
	}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   map[string]string
	}{
		"as asked": {func(*corev1.Pod) {}, map[string]string{"cpu": "3", "memory": "1Gi", "pods": "1"}},
		"more than asked": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = resources("cpu", "4") },
			map[string]string{"cpu": "5", "memory": "1Gi", "pods": "1"}},
		"less, because a resize was refused": {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = resources("cpu", "1") },
			map[string]string{"cpu": "2", "memory": "1Gi", "pods": "1"}},
		"nothing yet of what is to come in addition": {func(p *corev1.Pod) { p.Spec.Containers[1].Resources.Requests = resources("cpu", "1") },
			map[string]string{"cpu": "3", "pods": "1"}},
		"what the provider gives besides": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = resources("cpu", "2", "memory", "9Gi")
			p.Spec.Containers = append(p.Spec.Containers, container("sidecar", resources("cpu", "9"), nil))
		}, map[string]string{"cpu": "3", "memory": "1Gi", "pods": "1"}},
		"what is still allocated": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: resources("cpu", "7")}}
		}, map[string]string{"cpu": "8", "memory": "1Gi", "pods": "1"}},
		"what is still there": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "b", Resources: &corev1.ResourceRequirements{Requests: resources("memory", "2Gi")}}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "i", AllocatedResources: resources("cpu", "9")}}
		}, map[string]string{"cpu": "9", "memory": "2Gi", "pods": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: *asked.DeepCopy()}
			tc.change(pod)
			if diff := cmp.Diff(tc.want, text(Taken(asked, pod))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// V9: limits that the API server made requests of count as requests, and so does what it fixed for the pod as a whole.
func TestTakenByLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		asked corev1.PodSpec
		has   corev1.PodSpec
		want  map[string]string
	}{
		"of containers": {corev1.PodSpec{Containers: []corev1.Container{container("a", nil, resources("cpu", "5"))}},
			corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "5"), resources("cpu", "5"))}}, map[string]string{"cpu": "5", "pods": "1"}},
		"that is to come": {corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "1"), resources("cpu", "1", "memory", "1Gi"))}},
			corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "1"), nil)}}, map[string]string{"cpu": "1", "pods": "1"}},
		"of the pod, beside a container that shrank": {
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: resources("cpu", "9")}, Containers: []corev1.Container{container("a", resources("cpu", "1"), nil)}},
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Limits: resources("cpu", "9"), Requests: resources("cpu", "5", "memory", "1Gi")}, Containers: []corev1.Container{container("a", resources("cpu", "1"), nil)}},
			map[string]string{"cpu": "5", "pods": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text(Taken(&tc.asked, &corev1.Pod{Spec: tc.has}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// V9: of what a pod asks for as a whole, what its Pod has counts, or still has.
func TestTakenTogether(t *testing.T) {
	asked := &corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: resources("cpu", "4")},
		Containers: []corev1.Container{container("a", resources("cpu", "1", "memory", "1Gi"), nil)}}
	has := func(pairs ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Resources.Requests = resources(pairs...) }
	}
	for name, tc := range map[string]struct {
		change []func(*corev1.Pod)
		want   map[string]string
	}{
		"as asked":                           {nil, map[string]string{"cpu": "4", "memory": "1Gi", "pods": "1"}},
		"more than asked":                    {[]func(*corev1.Pod){has("cpu", "5")}, map[string]string{"cpu": "5", "memory": "1Gi", "pods": "1"}},
		"less, because a resize was refused": {[]func(*corev1.Pod){has("cpu", "2")}, map[string]string{"cpu": "2", "memory": "1Gi", "pods": "1"}},
		"less than its containers":           {[]func(*corev1.Pod){has("cpu", "500m")}, map[string]string{"cpu": "1", "memory": "1Gi", "pods": "1"}},
		"nothing, because the provider does not know it": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.Resources = nil }},
			map[string]string{"cpu": "1", "memory": "1Gi", "pods": "1"}},
		"what the provider gives besides": {[]func(*corev1.Pod){has("cpu", "4", "example.com/gpu", "1"), func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, container("sidecar", resources("memory", "9Gi"), nil))
			p.Spec.Overhead = resources("cpu", "250m")
			p.Status.AllocatedResources = resources("cpu", "4250m", "memory", "10Gi")
			p.Status.Resources = &corev1.ResourceRequirements{Requests: resources("cpu", "4003m")}
		}}, map[string]string{"cpu": "4", "memory": "1Gi", "pods": "1"}},
		"what is still allocated": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.AllocatedResources = resources("cpu", "7") }},
			map[string]string{"cpu": "7", "memory": "1Gi", "pods": "1"}},
		"what is still there": {[]func(*corev1.Pod){func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizeInProgress}}
			p.Status.AllocatedResources = resources("cpu", "4")
			p.Status.Resources = &corev1.ResourceRequirements{Requests: resources("cpu", "8")}
		}}, map[string]string{"cpu": "8", "memory": "1Gi", "pods": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: *asked.DeepCopy()}
			for _, change := range tc.change {
				change(pod)
			}
			if diff := cmp.Diff(tc.want, text(Taken(asked, pod))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLarger(t *testing.T) {
	want := map[string]string{"cpu": "2", "memory": "1Gi", "pods": "1"}
	a, b := resources("cpu", "2", "memory", "1Mi"), resources("cpu", "1", "memory", "1Gi", "pods", "1")
	for _, got := range []corev1.ResourceList{Larger(a, b), Larger(b, a), Larger(Larger(nil, a), b)} {
		if diff := cmp.Diff(want, text(got)); diff != "" {
			t.Error(diff)
		}
	}
}

// V9, V10: pods that grow share what is left of the grant, and what shrinks frees nothing before it is observed.
func TestLedgerOfPodsThatChange(t *testing.T) {
	quota := &offloadingv1beta1.QuotaSpec{Resources: resources("cpu", "5")}
	l, t0 := NewLedger(30*time.Second), time.Unix(1000, 0)
	sized := func(cpu string) *corev1.PodSpec {
		return &corev1.PodSpec{Containers: []corev1.Container{container("c", resources("cpu", cpu), nil)}}
	}
	observe := func(pod, cpu string) { l.Observe(named(pod), Entry{User: "u", Amount: PodRequests(sized(cpu))}) }
	change := func(pod, cpu string, at time.Duration, dryRun, want bool) {
		t.Helper()
		if refusal := l.Change(named(pod), "u", quota, sized(cpu), t0.Add(at), dryRun); (refusal == nil) != want {
			t.Errorf("%s to %s: %v, want %v", pod, cpu, refusal, want)
		}
	}
	used := func(what string, at time.Duration, want string) {
		t.Helper()
		if got := text(l.Used("u", t0.Add(at)))["cpu"]; got != want {
			t.Errorf("%s: %s are used, want %s", what, got, want)
		}
	}
	observe("a", "1")
	observe("b", "2")
	change("a", "3", 0, true, true)
	used("a dry run reserves nothing", 0, "3")
	change("a", "4", 0, false, false)
	change("a", "3", 0, false, true)
	change("a", "3", 0, false, true)
	used("it is reserved once", 0, "5")
	change("b", "3", 0, false, false)
	observe("a", "3")
	used("the pod settles its reservation", 0, "5")
	change("a", "1", 0, false, true)
	used("what shrinks is not free yet", 0, "5")
	observe("a", "1")
	change("b", "3", 0, false, true)
	change("b", "4", time.Second, false, true)
	used("it grew twice", time.Second, "5")
	used("it did not come", 40*time.Second, "3")
	change("b", "-1", 0, false, false)
	quota.Cordoned = ptr.To(true)
	change("b", "1", 0, false, true)
	change("b", "3", 0, false, false)
	quota.Cordoned = nil
	change("b", "3", 0, true, true)
	quota.Resources = resources("cpu", "1")
	change("b", "1", 0, false, true)
	change("b", "2", 0, false, true)
	change("b", "3", 0, false, false)
	quota.Resources, quota.Cordoned = resources("cpu", "9"), ptr.To(true)
	change("b", "2", 0, false, true)
	change("b", "3", 0, false, false)
	change("b", "3", 0, true, false)
	quota.LimitsEnforcement = offloadingv1beta1.HardLimitsEnforcement
	change("b", "1", 0, false, false)
}
