package podaddress

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWhatIsKeptOfAPod(t *testing.T) {
	pod := &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Env: []corev1.EnvVar{{Name: "PASSWORD"}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.244.1.1"}, {IP: "fd00::1"}, {IP: "10.244.1.300"}}},
	}
	object, err := strip(pod)
	stripped, ok := object.(*corev1.Pod)
	if err != nil || !ok || len(stripped.Spec.Containers) > 0 {
		t.Fatalf("%v is kept of a pod (%v)", object, err)
	}
	indexes := Indexes()
	if diff := cmp.Diff([]string{"10.244.1.1"}, indexes[ByAddress](stripped)); diff != "" {
		t.Errorf("addresses (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a"}, indexes[ByNode](stripped)); diff != "" {
		t.Errorf("nodes (-want +got)\n%s", diff)
	}
	stripped.Status.Phase = corev1.PodSucceeded
	if got := indexes[ByAddress](stripped); len(got) > 0 {
		t.Errorf("a pod that has ended has the addresses %v", got)
	}
}
