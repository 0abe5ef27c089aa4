package shadowpod

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// V10: the pods of a cordoned slice do not grow, enforced or not; they may shrink, and change otherwise.
func TestPodsOfACordonedSliceDoNotGrow(t *testing.T) {
	image := func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Containers[0].Image = "busybox:2" }
	for name, tc := range map[string]struct {
		cordoned bool
		change   func(*offloadingv1beta1.ShadowPod)
		want     string
	}{
		"a larger request":                    {true, requesting("cpu", "2"), "Cordoned: "},
		"a smaller request":                   {true, requesting("cpu", "500m"), ""},
		"an image":                            {true, image, ""},
		"a larger request without the cordon": {false, requesting("cpu", "2"), ""},
	} {
		for enforced, how := range map[bool]string{true: "enforced", false: "not enforced"} {
			t.Run(name+", "+how, func(t *testing.T) {
				w := newWebhook(t, tc.cordoned)
				w.Enforce = enforced
				old := shadow()
				w.book.OnAdd(old, true)
				got := w.validate(context.Background(), request(t, admissionv1.Update, old, shadow(tc.change)))
				if got.Allowed != (tc.want == "") || !strings.HasPrefix(words(got), tc.want) {
					t.Errorf("allowed %v: %s, want %q", got.Allowed, words(got), tc.want)
				}
			})
		}
	}
}
