package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// D8: only pods of the namespaces that a new mapping is about are looked at again; what the provider refuses of others is not tried
// because of it.
func TestWhatAMappingChanges(t *testing.T) {
	old := Mapping{Known: true, Desired: map[string]string{"a": "a-1", "b": "b-1"}, Effective: map[string]string{"a": "a-1"}}
	for name, tc := range map[string]struct {
		next Mapping
		want []string
	}{
		"nothing":                 {old, nil},
		"one is accepted":         {Mapping{Known: true, Desired: old.Desired, Effective: map[string]string{"a": "a-1", "b": "b-1"}}, []string{"b"}},
		"one is accepted no more": {Mapping{Known: true, Desired: old.Desired}, []string{"a"}},
		"one is offloaded anew":   {Mapping{Known: true, Desired: map[string]string{"a": "a-1", "b": "b-1", "c": ""}, Effective: old.Effective}, []string{"c"}},
		"two go":                  {Mapping{Known: true}, []string{"a", "b"}},
		"another twin":            {Mapping{Known: true, Desired: map[string]string{"a": "a-2", "b": "b-1"}, Effective: old.Effective}, []string{"a"}},
		"a twin is being removed": {Mapping{Known: true, Desired: old.Desired, Effective: old.Effective, Leaving: map[string]bool{"b": true}}, []string{"b"}},
		"it is not known":         {Mapping{}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, old.changes(tc.next)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// C3: a pod that ran is not ready once the provider removes its twin, or does not let its ShadowPod be made again. Of one that is only
// not accepted for now nothing is known.
func TestPodsThatRanWithoutAShadowPod(t *testing.T) {
	no := refusal{reason: "PodRefused", message: "no"}
	for name, tc := range map[string]struct {
		seen view
		want corev1.ConditionStatus
	}{
		"the twin is being removed":      {view{offload: pending, leaving: true}, corev1.ConditionFalse},
		"the twin is not accepted":       {view{offload: pending}, corev1.ConditionTrue},
		"its ShadowPod is refused":       {view{offload: offloaded, ready: true, refused: no}, corev1.ConditionFalse},
		"its ShadowPod is to be made":    {view{offload: offloaded, ready: true}, corev1.ConditionTrue},
		"its remote pod is still there":  {view{offload: offloaded, ready: true, refused: no, remote: &corev1.Pod{}}, corev1.ConditionTrue},
		"the provider cannot be watched": {view{offload: offloaded, refused: no}, corev1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			local := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
			status, _ := decide(&Options{Remote: "milan", Clock: clock.RealClock{}}, local, tc.seen).status()
			if status == nil {
				status = &local.Status
			}
			if got := status.Conditions[0]; got.Status != tc.want || status.Phase != corev1.PodRunning ||
				tc.want == corev1.ConditionFalse && got.Reason != offloadingv1beta1.ReasonRemotePodMissing {
				t.Errorf("got %+v", status)
			}
		})
	}
}
