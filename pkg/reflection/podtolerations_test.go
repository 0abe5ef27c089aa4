package reflection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
