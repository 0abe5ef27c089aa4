package shadowpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEphemeralContainersAreAdded(t *testing.T) {
	shadow := job()
	shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyAlways
	shadow.Spec.Pod.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "first", Image: "busybox"}}}
	if pod := build(shadow); len(pod.Spec.EphemeralContainers) != 0 {
		t.Error("a new pod has ephemeral containers, which Kubernetes refuses")
	}
	w := newWorld(t, shadow)
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	live := w.shadow()
	live.Spec.Pod.EphemeralContainers = append(live.Spec.Pod.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "second", Image: "busybox"}, TargetContainerName: "c"})
	if err := w.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	got := w.pod().Spec.EphemeralContainers
	if len(got) != 2 || got[0].Name != "first" || got[1].Name != "second" || got[1].TargetContainerName != "c" {
		t.Errorf("ephemeral containers are %v", got)
	}
	before := w.Writes
	if _, err := w.pass(); err != nil || w.Writes != before {
		t.Errorf("%d more writes, error %v", w.Writes-before, err)
	}
}
