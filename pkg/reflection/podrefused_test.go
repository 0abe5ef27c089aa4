package reflection

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestWhyResizePending(t *testing.T) {
	for name, tc := range map[string]struct{ reason, message, want string }{
		"the grant is used up":          {offloadingv1beta1.ReasonQuotaExceeded, "the grant of cpu is used up", corev1.PodReasonDeferred},
		"a ResourceQuota is used up":    {"Forbidden", "exceeded quota: team", corev1.PodReasonDeferred},
		"a cordon":                      {offloadingv1beta1.ReasonPodRefused, "denied the request: Cordoned: no pod of this slice grows", corev1.PodReasonDeferred},
		"more than a pod may have":      {"Forbidden", "maximum cpu usage per Pod is 2", corev1.PodReasonInfeasible},
		"an API server without resizes": {offloadingv1beta1.ReasonResizeFailed, "cannot resize pods in place", corev1.PodReasonInfeasible},
	} {
		if got := WhyResizePending(tc.reason, tc.message); got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A provider may say anything.
func TestWhatTheProviderSaysOfRefusedChanges(t *testing.T) {
	const resize, change = string(corev1.PodResizePending), offloadingv1beta1.ChangeRefusedCondition
	for name, tc := range map[string]struct {
		said           metav1.Condition
		resize, change string
	}{
		"nothing":             {metav1.Condition{Type: "Ready", Status: "False", Reason: "QuotaExceeded"}, "", ""},
		"deferred":            {metav1.Condition{Type: resize, Status: "True", Reason: "Deferred", Message: "no room"}, "Deferred: cluster \"milan\" refused it: no room", ""},
		"infeasible":          {metav1.Condition{Type: resize, Status: "True", Reason: "Infeasible", Message: "too much"}, "Infeasible: cluster \"milan\" refused it: too much", ""},
		"a reason of its own": {metav1.Condition{Type: resize, Status: "True", Reason: "Because"}, "Deferred: cluster \"milan\" refused it: ", ""},
		"no refusal":          {metav1.Condition{Type: resize, Status: "False", Reason: "Deferred", Message: "no room"}, "", ""},
		"a debugger":          {metav1.Condition{Type: change, Status: "True", Reason: "FailedDebug", Message: "no\x00image"}, "", "FailedDebug: cluster \"milan\" refused it: no image"},
		"a label":             {metav1.Condition{Type: change, Status: "True", Reason: "FailedReflection", Message: "not this one"}, "", "FailedReflection: cluster \"milan\" refused it: not this one"},
		"a label that somebody changes": {metav1.Condition{Type: change, Status: "True", Reason: "Contended", Message: "somebody changes it"}, "",
			"Contended: cluster \"milan\": somebody changes it"},
		"a change for a reason of its own": {metav1.Condition{Type: change, Status: "True", Reason: "Because", Message: "no"}, "", "FailedReflection: cluster \"milan\" refused it: no"},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := &offloadingv1beta1.ShadowPod{Status: offloadingv1beta1.ShadowPodStatus{Conditions: []metav1.Condition{tc.said}}}
			words := func(c *corev1.PodCondition) string {
				if c == nil {
					return ""
				}
				return c.Reason + ": " + c.Message
			}
			got := []string{words(ResizePendingOf(shadow, "milan")), words(ChangeRefusedOf(shadow, "milan"))}
			if diff := cmp.Diff([]string{tc.resize, tc.change}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	long := &offloadingv1beta1.ShadowPod{Status: offloadingv1beta1.ShadowPodStatus{Conditions: []metav1.Condition{
		{Type: resize, Status: "True", Reason: "Deferred", Message: strings.Repeat("x", 1<<16)}}}}
	if got := ResizePendingOf(long, "milan"); len(got.Message) > corev1beta1.MaxMessage {
		t.Errorf("the message has %d bytes", len(got.Message))
	}
}

// What is shown of a pending size stays until it is known better.
func TestASizeThatIsNotKnownYet(t *testing.T) {
	shown := corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, Message: "no room"}
	for name, tc := range map[string]struct {
		shown   bool
		unknown bool
		given   *corev1.PodCondition
		remote  []corev1.PodCondition
		want    string
	}{
		"not asked yet":                          {true, true, nil, nil, "no room"},
		"asked":                                  {true, false, nil, nil, ""},
		"not asked yet, and nothing is shown":    {false, true, nil, nil, ""},
		"not asked yet, and the node refuses it": {false, true, nil, []corev1.PodCondition{{Type: corev1.PodResizePending, Status: "True", Reason: "Deferred", Message: "full"}}, "full"},
		"not asked yet, but given":               {true, true, &corev1.PodCondition{Type: corev1.PodResizePending, Status: "True", Message: "used up"}, nil, "used up"},
	} {
		t.Run(name, func(t *testing.T) {
			local, remote := &corev1.Pod{}, &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: tc.remote}}
			if tc.shown {
				local.Status.Conditions = []corev1.PodCondition{shown}
			}
			status, _ := LocalStatus(local, remote, StatusInput{SizeUnknown: tc.unknown, ResizePending: tc.given})
			got := ""
			if c := condition(status.Conditions, corev1.PodResizePending); c != nil {
				got = c.Message
			}
			if got != tc.want {
				t.Errorf("%q is shown", got)
			}
		})
	}
}
