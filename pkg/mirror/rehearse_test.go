package mirror

import (
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/reflection"
)

// TestRefusedReplacements has objects that cannot be changed in place replaced at a provider that refuses creations.
func TestRefusedReplacements(t *testing.T) {
	const words = "exceeded patience"
	for name, tc := range map[string]struct {
		refusal error
		// dry tells that dry runs only are refused.
		dry bool
		// during is the content as long as creations are refused.
		during string
		events int
	}{
		"a policy": {&apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity,
			Reason: metav1.StatusReasonInvalid, Message: words}}, false, "1", 2},
		"rights":                           {apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New(words)), false, "1", 2},
		"a server error":                   {apierrors.NewInternalError(errors.New(words)), false, "1", 2},
		"a quota that the old one is in":   {apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("exceeded quota: "+words)), true, "2", 0},
		"a webhook that knows no dry runs": {apierrors.NewBadRequest(`admission webhook "x" does not support dry run: ` + words), true, "2", 0},
	} {
		for kind, object := range map[string]reflection.Object{
			"configmap": &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "a"},
				Data: map[string]string{"key": "1"}, Immutable: ptr.To(true)},
			"secret": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "a"},
				Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"key": []byte("1")}, Immutable: ptr.To(true)},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				inBubble(t, func(w *world) {
					w.local.put(object)
					w.start()
					w.publish()
					uid := w.remote.find(at(object)).GetUID()
					w.remote.mu.Lock()
					w.remote.intercept = func(verb, _ string) error {
						if verb == "rehearse" || verb == "create" && !tc.dry {
							return tc.refusal
						}
						return nil
					}
					w.remote.mu.Unlock()
					set(w, object, "2")
					w.pass(10 * time.Minute)
					w.equal("content while creations are refused", tc.during, w.value(object))
					if told := w.events.saying(words); len(told) != tc.events || len(told) != len(w.events.said) {
						t.Errorf("told: %q", w.events.said)
					}
					w.remote.mu.Lock()
					w.remote.intercept = nil
					w.remote.mu.Unlock()
					w.pass(3 * time.Minute)
					w.equal("content", "2", w.value(object))
					if w.remote.find(at(object)).GetUID() == uid {
						t.Error("it is the same object still")
					}
				})
			})
		}
	}
}

// A creation that is refused after the old copy went is tried again like any other.
func TestReplacementsRefusedTooLate(t *testing.T) {
	inBubble(t, func(w *world) {
		object := configMap("a", "1")
		object.Immutable = ptr.To(true)
		w.local.put(object)
		w.start()
		refusals := 0
		w.remote.mu.Lock()
		w.remote.intercept = func(verb, _ string) error {
			if verb != "create" || refusals == 3 {
				return nil
			}
			refusals++
			return apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New("no"))
		}
		w.remote.mu.Unlock()
		set(w, object, "2")
		w.rest()
		w.equal("content", "", w.value(object))
		w.equal("told", 1, len(w.events.took()))
		w.pass(10 * time.Second)
		w.equal("content after some seconds", "2", w.value(object))
	})
}
