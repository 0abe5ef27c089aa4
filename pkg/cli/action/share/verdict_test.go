package share

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// An answer to an earlier request says nothing of the present one: its grant must not be shown, and its denial not be believed.
func TestOnlyTheAnswerToThePresentRequestCounts(t *testing.T) {
	answered := func(generation int64, status string) *authv1beta1.ResourceSlice {
		return &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "milan", Generation: 2}, Status: authv1beta1.ResourceSliceStatus{
			Conditions: []corev1beta1.Condition{
				{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted, ObservedGeneration: generation},
				{Type: authv1beta1.ResourcesCondition, Status: status, Reason: "TooMuch", Message: "2 cpu at most", ObservedGeneration: generation},
			}}}
	}
	cases := map[string]struct {
		slice   *authv1beta1.ResourceSlice
		done    bool
		missing string
		fails   bool
	}{
		"accepted":             {slice: answered(2, authv1beta1.Accepted), done: true},
		"accepted, but before": {slice: answered(1, authv1beta1.Accepted), missing: "the provider has not answered the present request yet"},
		"denied":               {slice: answered(2, authv1beta1.Denied), fails: true},
		"denied, but before":   {slice: answered(1, authv1beta1.Denied), missing: "the provider has not answered the present request yet"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			judge := &verdict{request: &Request{}}
			var done bool
			var missing string
			var err error
			for range denials {
				done, missing, err = judge.look(test.slice)
			}
			if done != test.done || missing != test.missing || (err != nil) != test.fails {
				t.Errorf("done %v, missing %q, error %v", done, missing, err)
			}
		})
	}
}
