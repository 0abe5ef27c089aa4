package pod

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEphemeralContainersReachTheProvider(t *testing.T) {
	w := up(t)
	w.calm()
	w.update(func(p *corev1.Pod) {
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debugger", Image: "busybox"}}}
	})
	w.eventually("the ShadowPod has the ephemeral container", func() bool { return len(w.shadow("p").Spec.Pod.EphemeralContainers) == 1 })
	w.updateRemote(func(p *corev1.Pod) {
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debugger", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	})
	w.eventually("its status comes back", func() bool {
		list := w.pod("p").Status.EphemeralContainerStatuses
		return len(list) == 1 && list[0].State.Running != nil
	})
	target, err := w.r.Twin(t.Context(), "shop", "p", "uid-1")
	if err != nil || !slices.Contains(target.Containers, "debugger") {
		t.Errorf("streams find %v, error %v", target.Containers, err)
	}
}
