package pod

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"liqo.io/liqo/pkg/virtualkubelet/podcache"
)

var born = time.Unix(1_800_000_000, 0)

// resident is a pod of the node in a phase, as the API server shows it.
func resident(name string, phase corev1.PodPhase, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(born)},
		Spec: corev1.PodSpec{NodeName: "milan", Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse("1")},
			Limits:   corev1.ResourceList{"ephemeral-storage": resource.MustParse("2Gi")},
		}}}},
		Status: corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}},
	}
}

func measured(t *testing.T, clock *clocktesting.FakeClock, registry *prometheus.Registry) *Reconciler {
	t.Helper()
	r, err := New(Options{Home: "rome", Remote: "milan", Node: "milan-1", Local: fake.NewClientset(), Peer: &fakePeer{}, Clock: clock, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.work.ShutDown(); r.status.ShutDown() })
	return r
}

func held(t *testing.T, pod *corev1.Pod) *podcache.Pod {
	t.Helper()
	held, err := podcache.Hold(pod)
	if err != nil {
		t.Fatal(err)
	}
	return held
}

func TestTimeToBeReady(t *testing.T) {
	type step struct {
		at    time.Duration
		phase corev1.PodPhase
		ready bool
	}
	pending, starting, ready := step{0, corev1.PodPending, false}, step{2 * time.Second, corev1.PodRunning, false}, step{4 * time.Second, corev1.PodRunning, true}
	for name, tc := range map[string]struct {
		steps   []step
		replace bool
		want    string
	}{
		"a pod that becomes ready counts":               {steps: []step{pending, starting, ready}, want: "sum 4 count 1"},
		"it counts once, whatever its probes say":       {steps: []step{pending, ready, {9 * time.Second, corev1.PodRunning, false}, {12 * time.Second, corev1.PodRunning, true}}, want: "sum 4 count 1"},
		"one that runs when it is first seen does not":  {steps: []step{starting, ready}, want: "sum 0 count 0"},
		"nor does one that is ready by then":            {steps: []step{ready, {9 * time.Second, corev1.PodRunning, false}, {12 * time.Second, corev1.PodRunning, true}}, want: "sum 0 count 0"},
		"nor one that ends before it is":                {steps: []step{pending, {time.Second, corev1.PodSucceeded, false}}, want: "sum 0 count 0"},
		"a clock that is behind makes no time negative": {steps: []step{pending, {-time.Second, corev1.PodRunning, true}}, want: "sum 0 count 1"},
		"a successor of the same name counts by itself": {steps: []step{starting, pending, {3 * time.Second, corev1.PodRunning, true}}, replace: true, want: "sum 3 count 1"},
	} {
		t.Run(name, func(t *testing.T) {
			clock, registry := clocktesting.NewFakeClock(born), prometheus.NewPedanticRegistry()
			r := measured(t, clock, registry)
			handler := r.localHandler()
			var last *podcache.Pod
			for i, s := range tc.steps {
				clock.SetTime(born.Add(s.at))
				pod := resident("a", s.phase, s.ready)
				if tc.replace && i > 0 {
					pod.UID = "successor"
				}
				next := held(t, pod)
				if last == nil {
					handler.OnAdd(next, true)
				} else {
					handler.OnUpdate(last, next)
				}
				last = next
			}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, family := range families {
				if family.GetName() == "liqo_virtual_kubelet_pod_ready_duration_seconds" {
					h := family.GetMetric()[0].GetHistogram()
					got = fmt.Sprintf("sum %v count %d", h.GetSampleSum(), h.GetSampleCount())
				}
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			handler.OnDelete(last)
			if len(r.memory.pods) != 0 {
				t.Errorf("%d pods are remembered that are gone", len(r.memory.pods))
			}
		})
	}
}

func TestTheNamesOfAVirtualNodeAreOnItsMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	r := measured(t, clocktesting.NewFakeClock(born), registry)
	r.ready.Observe(1)
	if got := testutil.CollectAndCount(r.ready); got != 1 {
		t.Fatalf("%d series", got)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, label := range families[0].GetMetric()[0].GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	if diff := cmp.Diff(map[string]string{"cluster_id": "milan", "node_name": "milan-1"}, labels); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
