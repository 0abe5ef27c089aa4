package pod

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// What is read of a cache is what was put there.
func TestPacked(t *testing.T) {
	local, shadow, remote := inStep(7)
	for name, pod := range map[string]*corev1.Pod{"a local pod": local, "a remote pod": remote, "an empty pod": {}} {
		t.Run(name, func(t *testing.T) {
			held, err := pack(pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(pod, held.pod(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-put +got:\n%s", diff)
			}
			if held.GetName() != pod.Name || held.GetNamespace() != pod.Namespace || held.GetObjectMeta().GetResourceVersion() != pod.ResourceVersion {
				t.Errorf("it says that it is %s/%s, version %s", held.GetNamespace(), held.GetName(), held.version)
			}
		})
	}
	ended := shadow.DeepCopy()
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))
	ended.Status = offloadingv1beta1.ShadowPodStatus{Phase: corev1.PodFailed,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, FinishedAt: since}}}},
		Conditions:        []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: 4, LastTransitionTime: since, Reason: "R", Message: "M"}}}
	for name, shadow := range map[string]*offloadingv1beta1.ShadowPod{"a ShadowPod": shadow, "one that ended": ended, "an empty one": {}} {
		t.Run(name, func(t *testing.T) {
			held, err := packShadow(shadow)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(shadow, held.shadow(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(offloadingv1beta1.ShadowPod{}, "TypeMeta")); diff != "" {
				t.Errorf("-put +got:\n%s", diff)
			}
		})
	}
	var none *packed
	if none.pod() != nil || none.shadow() != nil {
		t.Error("there is something where nothing is held")
	}
}

// A ShadowPod that cannot be read is held, so that its name is known to be taken, and is nobody's.
func TestHoldShadowThatDoesNotFit(t *testing.T) {
	held, ok := holdShadow(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "p", "namespace": twinNamespace, "uid": "u", "resourceVersion": "5", "annotations": map[string]any{originUID: "v"}},
		"spec":     map[string]any{"pod": "none"},
	}})
	if !ok {
		t.Fatal("it is not held")
	}
	want := metav1.ObjectMeta{Name: "p", Namespace: twinNamespace, UID: "u", ResourceVersion: "5"}
	if diff := cmp.Diff(want, held.shadow().ObjectMeta); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func BenchmarkUnpack(b *testing.B) {
	local, _, _ := inStep(7)
	held, err := pack(local)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		held.pod()
	}
}
