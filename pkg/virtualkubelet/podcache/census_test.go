package podcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
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

func TestCensus(t *testing.T) {
	c := New(fake.NewClientset(), "milan-1")
	for _, pod := range []*corev1.Pod{
		resident("a", corev1.PodRunning, true), resident("b", corev1.PodRunning, false), resident("c", corev1.PodPending, false),
		resident("d", corev1.PodSucceeded, false), resident("e", corev1.PodFailed, false), resident("f", "Invented", false), resident("g", "", false),
	} {
		held, err := Hold(pod)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.informer.GetStore().Add(held); err != nil {
			t.Fatal(err)
		}
	}
	want := Census{
		Phases: map[corev1.PodPhase]int{corev1.PodRunning: 2, corev1.PodPending: 3, corev1.PodSucceeded: 1, corev1.PodFailed: 1},
		Requests: corev1.ResourceList{"cpu": resource.MustParse("7500m"), "memory": resource.MustParse("5Gi"),
			"ephemeral-storage": resource.MustParse("10Gi"), "pods": resource.MustParse("5")},
	}
	if diff := cmp.Diff(want, c.Census()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
