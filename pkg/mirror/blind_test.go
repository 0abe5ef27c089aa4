package mirror

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

const policyWords = "ValidatingAdmissionPolicy 'frozen' with binding 'all' denied request: hands off"

// denied are the ways in which a provider's admission refuses an update of a Secret.
var denied = map[string]func() error{
	"a policy without reason": func() error {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New(policyWords))
		err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
		return err
	},
	"a webhook that answers 422": func() error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity,
			Reason: metav1.StatusReasonInvalid, Message: `admission webhook "x" denied the request: ` + policyWords}}
	},
	"a policy that forbids": func() error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", errors.New(policyWords))
	},
}

// A policy that came later and refuses every update of a Secret does not make it somebody else's.
func TestRefusedUpdatesOfSecrets(t *testing.T) {
	for name, change := range map[string]struct {
		at    func(w *world)
		event string
		after string // content once the policy is gone
	}{
		"changed at home": {func(w *world) { set(w, secret("a", "1"), "2") }, "Not reflected to", "2"},
		"deleted at home": {func(w *world) { w.local.drop(secret("a", "1")) }, "Not removed from", ""},
		"skipped": {func(w *world) {
			edit(w.local, secret("a", "1"), func(s *corev1.Secret) {
				s.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
			})
		}, "its copy is still there", ""},
		"created anew at home": {func(w *world) {
			w.local.drop(secret("a", "1"))
			w.local.put(secret("a", "2"))
		}, "Not reflected to", "2"},
	} {
		for how, refusal := range denied {
			t.Run(name+", "+how, func(t *testing.T) {
				inBubble(t, func(w *world) {
					w.local.put(secret("a", "1"))
					w.start()
					w.publish()
					w.stop() // What was written before is forgotten, so that it is looked at before it is removed.
					w.start()
					w.remote.mu.Lock()
					w.remote.refuse = func(o reflection.Object) error {
						if o.GetResourceVersion() == "" {
							return nil // A create.
						}
						return refusal()
					}
					w.remote.mu.Unlock()
					w.remote.took(true)
					change.at(w)
					w.pass(10 * time.Minute)
					w.equal("content while it is refused", "1", w.value(secret("a", "")))
					// What is made anew may be seen to be gone first.
					about := func(said string) bool { return strings.Contains(said, change.event) }
					if told := w.events.saying(policyWords); len(told) > 3 || len(told) != len(w.events.said) || !slices.ContainsFunc(told, about) {
						t.Errorf("told: %q", w.events.said)
					}
					w.equal("problems", 1, len(reasons(w.engine)))
					if calls := len(w.remote.took(false)); calls > 30 {
						t.Errorf("%d calls in ten minutes", calls)
					}
					w.remote.mu.Lock()
					w.remote.refuse = nil
					w.remote.mu.Unlock()
					w.pass(3 * time.Minute)
					w.equal("content once it is not refused any more", change.after, w.value(secret("a", "")))
					w.publish()
					w.equal("problems", []string(nil), reasons(w.engine))
				})
			})
		}
	}
}

// What is looked at because the ledger does not follow is not taken for another's either.
func TestRefusedLooksAtSecrets(t *testing.T) {
	for how, refusal := range denied {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(secret("a", "1"))
				w.start()
				w.remote.mu.Lock()
				w.remote.refuse = func(reflection.Object) error { return refusal() }
				w.remote.mu.Unlock()
				w.pass(time.Minute)
				if told := w.events.saying(policyWords); len(told) != 1 || len(w.events.said) != 1 {
					t.Errorf("told: %q", w.events.said)
				}
			})
		})
	}
}

func TestTestFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"a test that failed": {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "",
			"testing value /metadata/labels/a failed: test failed", 0, false), true},
		"the same, wrapped": {fmt.Errorf("x: %w", apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false)), true},
		"validation": {apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", field.ErrorList{
			field.Invalid(field.NewPath("type"), "x", "field is immutable")}), false},
		"the same words about an object": {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch",
			schema.GroupResource{Resource: "secrets"}, "a", "", 0, false), false},
		"a policy without reason": {denied["a policy without reason"](), false},
		"a webhook":               {denied["a webhook that answers 422"](), false},
		"another code":            {apierrors.NewForbidden(schema.GroupResource{}, "a", nil), false},
		"no answer":               {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reconcile.PatchTestFailed(tc.err); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// What controllers at the provider add to a Secret stays when it changes at home, and what goes at home goes there.
func TestSecretsKeepTheProvidersLabels(t *testing.T) {
	inBubble(t, func(w *world) {
		object := secret("a", "1")
		object.Labels = map[string]string{"ours/stays": "1", "ours/goes": "1"}
		object.Annotations = map[string]string{"ours/goes": "1"}
		w.local.put(object)
		w.start()
		edit(w.remote, at(object), func(s *corev1.Secret) {
			s.Labels["theirs"] = "1"
			s.Annotations["theirs"] = "1"
		})
		w.publish()
		w.remote.took(false)
		set(w, object, "2")
		w.wrote("a change of content", "patch Secret/"+there+"/a")
		w.publish()
		w.stop() // The labels go while nobody watches.
		edit(w.local, object, func(s *corev1.Secret) {
			delete(s.Labels, "ours/goes")
			s.Labels["ours/new"], s.Annotations = "1", nil
		})
		w.start()
		w.publish()
		w.wrote("labels that go", "patch Secret/"+there+"/a", "patch Secret/"+there+"/a")
		found := w.remote.find(at(object))
		delete(found.GetAnnotations(), offloadingv1beta1.ReflectedKeysAnnotation)
		w.equal("labels", map[string]string{
			"ours/stays": "1", "ours/new": "1", "theirs": "1", offloadingv1beta1.OriginLabel: home, offloadingv1beta1.DestinationLabel: provider,
		}, found.GetLabels())
		w.equal("annotations", map[string]string{"theirs": "1", corev1beta1.OriginUIDAnnotation: string(w.local.find(object).GetUID())}, found.GetAnnotations())
		w.equal("content", "2", w.value(object))
		w.pass(5 * time.Minute)
		w.wrote("at rest")
		w.equal("problems", []string(nil), reasons(w.engine))
	})
}

// C5: who changed a Secret at the provider is told like with objects that can be read.
func TestWhoChangedASecretIsTold(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(secret("a", "1"))
		w.start()
		w.publish()
		edit(w.remote, at(secret("a", "")), func(s *corev1.Secret) {
			s.Data = map[string][]byte{"key": []byte("theirs")}
			s.ManagedFields = []metav1.ManagedFieldsEntry{
				{Manager: FieldManager, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`)},
				{Manager: "their-operator", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`)},
			}
		})
		w.publish()
		w.pass(time.Minute)
		w.equal("content", "1", w.value(secret("a", "")))
		w.equal("told", []string{`Field data of demo-rome/a in cluster "milan" was changed by field manager "their-operator"; it was put back`}, w.events.said)
	})
}
