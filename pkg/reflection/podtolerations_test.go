package reflection

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Kubernetes lets tolerations of a pod be added, and last another time.
func TestTolerationsThatFollow(t *testing.T) {
	lasting := func(key string, seconds ...int64) corev1.Toleration {
		toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
		if len(seconds) > 0 {
			toleration.TolerationSeconds = ptr.To(seconds[0])
		}
		return toleration
	}
	type list = []corev1.Toleration
	for name, tc := range map[string]struct{ live, wanted, want list }{
		"the same":                       {list{lasting("a", 1)}, list{lasting("a", 1)}, nil},
		"another time":                   {list{lasting("a", 1), lasting("b")}, list{lasting("a", 2), lasting("b")}, list{lasting("a", 2), lasting("b")}},
		"for ever":                       {list{lasting("a", 1)}, list{lasting("a")}, list{lasting("a")}},
		"one that the provider repeats":  {list{lasting("a", 1), lasting("a", 2)}, list{lasting("a", 3)}, list{lasting("a", 3), lasting("a", 3)}},
		"one more":                       {list{lasting("a")}, list{lasting("a"), lasting("b")}, list{lasting("a"), lasting("b")}},
		"what the provider added stays":  {list{lasting("a"), lasting("p", 5)}, list{lasting("a")}, nil},
		"the user's own repetitions":     {list{lasting("a", 1), lasting("a", 2)}, list{lasting("a", 1), lasting("a", 2)}, nil},
		"one of the user's own is added": {list{lasting("a", 1)}, list{lasting("a", 1), lasting("a", 2)}, list{lasting("a", 1), lasting("a", 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := func(tolerations list) *offloadingv1beta1.ShadowPod {
				return &offloadingv1beta1.ShadowPod{Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{Tolerations: tolerations}}}
			}
			var got list
			for _, change := range ShadowPodTolerations(shadow(tc.live), shadow(tc.wanted)) {
				got, _ = change.Value.(list)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if got != nil {
				if again := ShadowPodTolerations(shadow(got), shadow(tc.wanted)); len(again) != 0 {
					t.Errorf("once changed it changes again: %v", again)
				}
			}
		})
	}
}

// What a pod runs without just as well is left out where the provider does not allow it, and said in one sentence; nothing is copied or said of
// other pods, and what is left passes the check.
func TestReduced(t *testing.T) {
	exists := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
	}
	soft := corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule}
	for name, tc := range map[string]struct {
		rules Rules
		spec  corev1.PodSpec
		keep  []corev1.Toleration
		grace *int64
		says  []string
	}{
		"an ordinary pod":                      {spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](30)}, grace: ptr.To[int64](30)},
		"those of failing nodes and soft ones": {spec: corev1.PodSpec{Tolerations: []corev1.Toleration{exists(corev1.TaintNodeNotReady), soft}}, keep: []corev1.Toleration{exists(corev1.TaintNodeNotReady), soft}},
		"a pool of the consumer's": {spec: corev1.PodSpec{Tolerations: []corev1.Toleration{exists("dedicated"), soft, exists("spot")}}, keep: []corev1.Toleration{soft},
			says: []string{"does not tolerate dedicated, spot (offloading.consumers.tolerations)"}},
		"a pool that the provider lists": {rules: Rules{Tolerations: []string{"dedicated"}}, spec: corev1.PodSpec{Tolerations: []corev1.Toleration{exists("dedicated"), exists("spot")}},
			keep: []corev1.Toleration{exists("dedicated")}, says: []string{"does not tolerate spot ("}},
		"everything, and the control plane's": {rules: Rules{Tolerations: []string{"*"}}, spec: corev1.PodSpec{Tolerations: []corev1.Toleration{exists(""), exists(controlPlaneTaints[0])}},
			keep: []corev1.Toleration{}, says: []string{"does not tolerate everything, " + controlPlaneTaints[0]}},
		"a cordon":                    {spec: corev1.PodSpec{Tolerations: []corev1.Toleration{exists(corev1.TaintNodeUnschedulable)}}, keep: []corev1.Toleration{}, says: []string{corev1.TaintNodeUnschedulable}},
		"a database's end":            {spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](7200)}, grace: ptr.To[int64](3600), says: []string{"it has 3600 seconds to end at most (offloading.consumers.maxTerminationGracePeriod)"}},
		"one that the provider lets":  {rules: Rules{MaxGracePeriod: 2 * time.Hour}, spec: corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](7200)}, grace: ptr.To[int64](7200)},
		"a probe's end, and a pool's": {rules: Rules{MaxGracePeriod: time.Second}, spec: corev1.PodSpec{Tolerations: []corev1.Toleration{exists("gpu")}, Containers: []corev1.Container{{LivenessProbe: &corev1.Probe{TerminationGracePeriodSeconds: ptr.To[int64](1 << 31)}}}}, keep: []corev1.Toleration{}, says: []string{"gpu", "it has 1 seconds to end"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.spec.DeepCopy()
			got, without := tc.rules.Reduced(&tc.spec)
			if !reflect.DeepEqual(before, &tc.spec) {
				t.Error("the pod itself was changed")
			}
			if same := got == &tc.spec; same != (without == "") || same != (len(tc.says) == 0) {
				t.Errorf("the pod itself: %v, told %q", same, without)
			}
			for _, want := range tc.says {
				if !strings.Contains(without, want) {
					t.Errorf("told %q, want %q in it", without, want)
				}
			}
			if diff := cmp.Diff(tc.keep, got.Tolerations, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if !ptr.Equal(tc.grace, got.TerminationGracePeriodSeconds) {
				t.Errorf("the grace period is %v", got.TerminationGracePeriodSeconds)
			}
			got.AutomountServiceAccountToken = ptr.To(false)
			if errs := CheckShadowPod(got, tc.rules); len(errs) > 0 {
				t.Errorf("what is left is refused: %v", errs)
			}
		})
	}
}

// Tolerations of control planes and of everything are about this cluster's nodes: they do not leave it, and keep no pod at home.
func TestTolerationsOfOwnNodesStayAtHome(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}, Tolerations: []corev1.Toleration{
		{Operator: corev1.TolerationOpExists}, {Key: controlPlaneTaints[0], Operator: corev1.TolerationOpExists},
		{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists}, {Key: "dedicated", Value: "db"},
	}}}
	if fields := NeverOffloaded(pod); len(fields) > 0 {
		t.Errorf("the pod is kept at home for %v", fields)
	}
	shadow, refusal := ShadowPod(pod, PodInput{Home: "rome", Remote: "milan"})
	if refusal != nil {
		t.Fatal(refusal)
	}
	if diff := cmp.Diff([]corev1.Toleration{{Key: "dedicated", Value: "db"}}, shadow.Spec.Pod.Tolerations); diff != "" {
		t.Error(diff)
	}
}
