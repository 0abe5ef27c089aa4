package reconcile

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func apiError(code int32, reason metav1.StatusReason, message string) error {
	return fmt.Errorf("creating Pod a/b: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}})
}

func TestClassify(t *testing.T) {
	type want struct {
		Class  Class
		Reason string
		After  time.Duration
	}
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want want
	}{
		"a lost connection":                       {errors.New("connection refused"), want{Transient, ReasonTransient, 0}},
		"a server error":                          {apiError(500, metav1.StatusReasonInternalError, "boom"), want{Transient, ReasonTransient, 0}},
		"a write conflict":                        {apierrors.NewConflict(pods, "a", errors.New("modified")), want{Transient, ReasonTransient, 0}},
		"throttling honours the server's delay":   {apierrors.NewTooManyRequests("slow down", 7), want{Transient, ReasonTransient, 7 * time.Second}},
		"a delay beyond the bound is cut":         {apierrors.NewTooManyRequests("slow down", 900), want{Transient, ReasonTransient, time.Minute}},
		"etcd's size limit looks like a 500":      {apiError(500, metav1.StatusReasonUnknown, "etcdserver: request is too large"), want{Terminal, ReasonTooLarge, 0}},
		"a body over the server's limit":          {apiError(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "limit is 3145728"), want{Terminal, ReasonTooLarge, 0}},
		"too many annotations":                    {apiError(422, metav1.StatusReasonInvalid, "metadata.annotations: Too long: may not be more than 262144 bytes"), want{Terminal, ReasonTooLarge, 0}},
		"a field that Kubernetes finds invalid":   {apiError(422, metav1.StatusReasonInvalid, "field is immutable"), want{Refused, ReasonInvalid, time.Minute}},
		"an admission policy without a reason":    {apiError(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'a' denied request: may not be more than 2"), want{Refused, ReasonForbidden, time.Minute}},
		"a webhook without a code":                {apiError(400, "", "admission webhook \"a\" denied the request: no"), want{Refused, ReasonForbidden, time.Minute}},
		"a policy that says unauthorized":         {apiError(401, metav1.StatusReasonUnauthorized, "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"), want{Refused, ReasonForbidden, time.Minute}},
		"a webhook that does not answer":          {apiError(500, metav1.StatusReasonInternalError, `failed calling webhook "w": context deadline exceeded`), want{Transient, ReasonTransient, 0}},
		"the policy of the controller manager":    {apiError(403, metav1.StatusReasonForbidden, "ValidatingAdmissionPolicy 'liqo-controller-manager' with binding 'b' denied request: BindingNotAllowed: no"), want{Transient, ReasonTransient, 0}},
		"a parameter that is not known yet":       {apiError(403, metav1.StatusReasonForbidden, "policy 'liqo-controller-manager-offloaded' with binding 'b' denied request: no params found"), want{Transient, ReasonTransient, 0}},
		"admission or quota says no":              {apiError(403, metav1.StatusReasonForbidden, "exceeded quota"), want{Refused, ReasonForbidden, time.Minute}},
		"a quota that was not counted yet":        {apiError(403, metav1.StatusReasonForbidden, "forbidden: status unknown for quota: liqo, resources: pods"), want{Transient, ReasonTransient, 0}},
		"waiting names what it waits for":         {fmt.Errorf("x: %w", Wait("NamespacePending", "waiting for namespace a", time.Second)), want{Waiting, "NamespacePending", time.Second}},
		"a refusal that is none":                  {fmt.Errorf("x: %w", Retry(apiError(403, metav1.StatusReasonForbidden, "not known yet"))), want{Transient, ReasonTransient, 0}},
		"our refusal keeps its reason":            {Refuse("QuotaExceeded", errors.New("no")), want{Refused, "QuotaExceeded", time.Minute}},
		"a fresh refusal of the object":           {RefuseAgain("Invalid", errors.New("no"), -time.Second), want{Refused, "Invalid", time.Minute}},
		"an old refusal of the object":            {RefuseAgain("Invalid", errors.New("no"), 3*time.Minute), want{Refused, "Invalid", 3 * time.Minute}},
		"an ancient refusal of the object":        {RefuseAgain("Invalid", errors.New("no"), time.Hour), want{Refused, "Invalid", 5 * time.Minute}},
		"what somebody else made is a refusal":    {NotOurs("NameConflict", "Pod", types.NamespacedName{Namespace: "a", Name: "b"}), want{Refused, "NameConflict", time.Minute}},
		"our verdict wins over the server's code": {Terminate("NameConflict", apiError(500, "", "")), want{Terminal, "NameConflict", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Result(tc.err)
			got := want{Classify(tc.err), ReasonOf(tc.err), result.RequeueAfter}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			retried := tc.want.Class == Transient && tc.want.After == 0
			if (err != nil) != (retried || tc.want.Class == Terminal) {
				t.Errorf("Result returned error %v", err)
			}
			if terminal := errors.Is(err, reconcile.TerminalError(nil)); terminal != (tc.want.Class == Terminal) {
				t.Errorf("terminal = %v", terminal)
			}
		})
	}
	if r, err := Result(nil); err != nil || r != (ctrl.Result{}) {
		t.Errorf("no error became %v, %v", r, err)
	}
}

func TestErrorText(t *testing.T) {
	err := Refuse("QuotaExceeded", errors.New("pods: used 3 of 3"))
	if MessageOf(err) != "pods: used 3 of 3" || MessageOf(nil) != "" || MessageOf(Wait("A", "waiting for b", 0)) != "waiting for b" {
		t.Errorf("messages are %q, %q", MessageOf(err), MessageOf(Wait("A", "waiting for b", 0)))
	}
}

// Whatever somebody else made, it is said in the same words.
func TestTheTextOfNotOurs(t *testing.T) {
	for want, err := range map[string]error{
		"Secret a/b exists and is not ours, so it is left alone: rename or delete it, or use another name":                  NotOurs("X", "Secret", types.NamespacedName{Namespace: "a", Name: "b"}),
		"Node b exists and is not ours, so it is left alone: rename or delete it, or use another name":                      NotOurs("X", "Node", types.NamespacedName{Name: "b"}),
		"Pod a/b in cluster \"rome\" exists and is not ours, so it is left alone: rename or delete it, or use another name": NotOursAt("rome", "X", "Pod", types.NamespacedName{Namespace: "a", Name: "b"}),
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestRateLimiterIsBounded(t *testing.T) {
	limiter := RateLimiter()
	var last time.Duration
	for range 40 {
		last = limiter.When(ctrl.Request{})
	}
	if last != time.Minute {
		t.Errorf("back-off grows to %s, want 60s", last)
	}
}
