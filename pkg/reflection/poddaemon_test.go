package reflection

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWhatIsSaidOfDaemonSets(t *testing.T) {
	everything := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	for name, tc := range map[string]struct {
		owner       string
		tolerations []corev1.Toleration
		remedy      bool
		stray       bool
	}{
		"of a DaemonSet that tolerates everything": {"DaemonSet", everything, true, true},
		"of one that tolerates little":             {"DaemonSet", []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}, true, false},
		"of a ReplicaSet":                          {"ReplicaSet", everything, false, false},
		"of nobody":                                {"", everything, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			local := localPod(corev1.PodStatus{}, func(p *corev1.Pod) {
				p.Spec.Tolerations = tc.tolerations
				if tc.owner != "" {
					p.OwnerReferences = []metav1.OwnerReference{{Kind: tc.owner, Controller: ptr.To(true)}}
				}
			})
			message := NotOffloadedMessage(local, "milan")
			if got := strings.Contains(message, "virtualKubelet.virtualNode.keepDaemonSetsOff"); got != tc.remedy || !strings.Contains(message, "liqoctl offload namespace shop") {
				t.Errorf("in a namespace that is not offloaded: %s", message)
			}
			message = StrayDaemonMessage(local, "milan", "taints")
			if got := strings.Contains(message, "keepDaemonSetsOff") && strings.Contains(message, "(taints)"); got != tc.stray || got != (message != "") {
				t.Errorf("refused: %q", message)
			}
		})
	}
}

func TestWhatIsSaidOfPodsThatNoProviderTakes(t *testing.T) {
	local := localPod(corev1.PodStatus{})
	if got := NeverOffloadedMessage(local, "no"); got != "no" {
		t.Errorf("of an ordinary pod: %s", got)
	}
	local.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"ALL"}}}
	local.Spec.Volumes = append(local.Spec.Volumes, corev1.Volume{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}})
	const want = "no provider takes pods with securityContext.privileged, volumes.hostPath: run it in a namespace that is not offloaded, " +
		"or offload this one with pod offloading strategy LocalAndRemote, which keeps such pods at home (no)"
	if got := NeverOffloadedMessage(local, "no"); got != want {
		t.Errorf("got %s", got)
	}
}
