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

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/reflection"
)

// once fails the first write of a verb.
func once(verb string, err error) func(string, string) error {
	failed := false
	return func(v, _ string) error {
		if v != verb || failed {
			return nil
		}
		failed = true
		return err
	}
}

func TestA8LostAnswers(t *testing.T) {
	lost := errors.New("connection reset by peer")
	for kind, object := range both("a", "1") {
		for _, verb := range []string{"create", "patch", "delete", "probe"} {
			t.Run(kind+" "+verb, func(t *testing.T) {
				inBubble(t, func(w *world) {
					w.remote.after = once(verb, lost)
					w.start()
					w.local.put(object)
					w.pass(time.Second)
					w.equal("content", "1", w.value(object))
					set(w, object, "2")
					w.pass(time.Second)
					w.equal("content", "2", w.value(object))
					w.local.drop(object)
					w.pass(time.Second)
					w.equal("content", "", w.value(object))
					if events := w.events.took(); len(events) > 0 {
						t.Errorf("events are %v", events)
					}
					w.publish()
					w.equal("problems", []string(nil), reasons(w.engine))
				})
			})
		}
	}
}

func TestRefusals(t *testing.T) {
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	for name, tc := range map[string]struct {
		err    error
		reason string
		calls  int // in ten minutes, at most
		heals  bool
	}{
		"a quota or a policy":      {status(http.StatusForbidden, metav1.StatusReasonForbidden, "exceeded quota"), "Forbidden", 11, true},
		"a policy without reason":  {status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'x' denied request: no"), "Forbidden", 11, true},
		"a webhook without code":   {status(http.StatusBadRequest, "", `admission webhook "x" denied the request: no`), "Forbidden", 11, true},
		"etcd's limit":             {status(http.StatusInternalServerError, "", "etcdserver: request is too large"), "TooLarge", 1, false},
		"a server error":           {status(http.StatusInternalServerError, "", "boom"), "Retrying", 25, true},
		"throttling":               {apierrors.NewTooManyRequests("slow down", 30), "Retrying", 21, true},
		"a namespace that is gone": {apierrors.NewNotFound(resource(namespaceObject("")), there), "Retrying", 25, true},
	} {
		for kind, object := range both("a", "1") {
			t.Run(kind+" "+name, func(t *testing.T) {
				inBubble(t, func(w *world) {
					w.remote.intercept = func(verb, _ string) error {
						if verb == "create" {
							return tc.err
						}
						return nil
					}
					w.local.put(object)
					w.start()
					w.pass(10 * time.Minute)
					w.equal("problems", []string{tc.reason}, reasons(w.engine))
					// At the start each of these may come between two tries: the object's event, either watch in step, the uses known.
					if calls := len(w.remote.took(false)); calls > tc.calls+3 {
						t.Errorf("%d calls in ten minutes", calls)
					}
					if events := len(w.events.took()); events < 1 || events > 3 || events != len(w.events.saying(tc.err.Error())) {
						t.Errorf("%d events in ten minutes: %q", events, w.events.said)
					}
					w.remote.mu.Lock()
					w.remote.intercept = nil
					w.remote.mu.Unlock()
					if !tc.heals {
						set(w, object, "2")
					}
					w.pass(3 * time.Minute)
					if w.value(object) == "" {
						t.Error("not healed")
					}
					w.equal("problems", []string(nil), reasons(w.engine))
				})
			})
		}
	}
}

// D1: what grows too large leaves the last good copy where it is.
func TestTooLargeKeepsTheLastGoodCopy(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(object)
				w.start()
				w.publish()
				w.remote.took(true)
				w.events.took()
				large := copyOf(object)
				large.SetAnnotations(map[string]string{"a": strings.Repeat("x", 256<<10-1)})
				w.local.put(large)
				w.pass(10 * time.Minute)
				w.wrote("too large")
				w.equal("events", []string{"a Warning TooLarge"}, w.events.took())
				w.local.put(object)
				w.rest()
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}

func TestLabelsAndAnnotationsOfBothSides(t *testing.T) {
	inBubble(t, func(w *world) {
		object := configMap("a", "1")
		object.Labels = map[string]string{"ours/stays": "1", "ours/goes": "1"}
		object.Annotations = map[string]string{"ours/goes": "1"}
		w.local.put(object)
		w.start()
		edit(w.remote, at(object), func(c *corev1.ConfigMap) {
			c.Labels["theirs"] = "1"
			c.Annotations["theirs"] = "1"
		})
		w.stop()
		w.remote.took(true)
		w.start()
		w.wrote("restart")
		// The label goes while nobody watches.
		w.stop()
		edit(w.local, object, func(c *corev1.ConfigMap) {
			delete(c.Labels, "ours/goes")
			c.Annotations = nil
		})
		w.start()
		found := w.remote.find(at(object))
		delete(found.GetAnnotations(), offloadingv1beta1.ReflectedKeysAnnotation)
		w.equal("labels", map[string]string{
			"ours/stays": "1", "theirs": "1", offloadingv1beta1.OriginLabel: home, offloadingv1beta1.DestinationLabel: provider,
		}, found.GetLabels())
		w.equal("annotations", map[string]string{"theirs": "1", "liqo.io/origin-uid": "uid-2"}, found.GetAnnotations())

		w.setNotReflected(reflection.NotReflected{Labels: []string{"ours/stays"}})
		w.rest()
		if _, there := w.remote.find(at(object)).GetLabels()["ours/stays"]; there {
			t.Error("a label that is not to be reflected is still there")
		}
	})
}

func TestRootCA(t *testing.T) {
	inBubble(t, func(w *world) {
		root, twin := configMap(reflection.RootCAConfigMap, "ca"), configMap("kube-root-ca.crt.rome", "theirs")
		theirs := w.remote.put(at(root))
		w.local.put(root)
		w.local.put(twin)
		w.start(func(o *Options) {
			o.Wanted.Set(Wanted{Kinds: map[string]offloadingv1beta1.ReflectorConfig{"configmap": {NumWorkers: 1, Type: offloadingv1beta1.AllowList}}})
		})
		w.equal("content", "ca", w.value(configMap("kube-root-ca.crt.rome", "")))
		w.equal("the provider's own", theirs, w.remote.find(theirs))
		w.equal("problems", []string{offloadingv1beta1.ReasonNotReflectable}, reasons(w.engine))
		w.local.drop(twin)
		w.rest()
		w.equal("content after the namesake is gone", "ca", w.value(configMap("kube-root-ca.crt.rome", "")))
		w.equal("problems", []string(nil), reasons(w.engine))
		w.local.drop(root)
		w.rest()
		w.equal("content after it is gone", "", w.value(configMap("kube-root-ca.crt.rome", "")))
	})
}

func TestFinalizersAtTheProvider(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(object)
				w.start()
				w.publish()
				stuck := w.remote.find(at(object))
				stuck.SetFinalizers([]string{"example.com/stuck"})
				w.remote.put(stuck)
				w.local.drop(object)
				w.pass(time.Minute)
				w.local.put(object) // Another UID.
				w.pass(time.Minute)
				if w.remote.find(at(object)).GetDeletionTimestamp() == nil {
					t.Fatal("the object is not being deleted")
				}
				w.remote.drop(stuck)
				w.publish()
				w.pass(2 * time.Minute)
				w.equal("content", "1", w.value(object))
			})
		})
	}
}

func TestW9TooManyRemoteObjects(t *testing.T) {
	few := func(o *Options) { o.MaxRemoteObjects = 120 }
	for name, start := range map[string]int{"from the beginning": 130, "later": 110} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				add := func(from, to int) {
					for i := from; i < to; i++ {
						w.remote.put(marked(configMap(fmt.Sprintf("flood-%d", i), ""), "x"))
					}
				}
				w.local.put(configMap("a", "1"))
				// The flood cannot be removed, or it would be.
				w.remote.intercept = func(verb, _ string) error {
					if verb == "delete" {
						return apierrors.NewForbidden(resource(configMap("", "")), "", nil)
					}
					return nil
				}
				add(0, start)
				w.start(few)
				add(start, 130)
				w.pass(time.Minute)
				if !slices.Contains(reasons(w.engine), offloadingv1beta1.ReasonRemoteOverLimit) {
					t.Errorf("problems are %v", reasons(w.engine))
				}
				w.remote.took(true)
				w.pass(10 * time.Minute)
				lists := slices.DeleteFunc(w.remote.took(true), func(c string) bool { return !strings.HasPrefix(c, "list") })
				if len(lists) > 40 {
					t.Errorf("%d lists in ten minutes", len(lists))
				}
				for i := range 130 {
					w.remote.drop(marked(configMap(fmt.Sprintf("flood-%d", i), ""), "x"))
				}
				w.pass(3 * time.Minute)
				w.equal("content", "1", w.value(configMap("a", "")))
			})
		})
	}
}

// W9: what a provider shows is bounded in bytes, too: a few hundred objects of a megabyte each are not followed, and what is held stays
// within the bound, whatever the kind or the namespace. Once they are gone all is reflected as before.
func TestLargeRemoteObjects(t *testing.T) {
	const bound = 16 << 20
	for name, start := range map[string]int{"from the beginning": 300, "later": 5} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				large := func(i int) *corev1.ConfigMap {
					return marked(configMap(fmt.Sprintf("flood-%d", i), strings.Repeat("x", 1<<20)), "x")
				}
				w.remote.intercept = func(verb, _ string) error {
					if verb == "delete" {
						return apierrors.NewForbidden(resource(configMap("", "")), "", nil)
					}
					return nil
				}
				for i := range start {
					w.remote.put(large(i))
				}
				w.local.put(configMap("a", "1"))
				w.start(func(o *Options) { o.Budget = replica.NewBudget(bound) })
				held := w.engine.budget.Held()
				for i := start; i < 300; i++ {
					w.remote.put(large(i))
					w.rest()
					held = max(held, w.engine.budget.Held())
				}
				for range 300 {
					w.pass(time.Second)
					held = max(held, w.engine.budget.Held())
				}
				if held > bound {
					t.Errorf("%d MiB were held", held>>20)
				}
				if !slices.Contains(reasons(w.engine), offloadingv1beta1.ReasonRemoteOverLimit) {
					t.Errorf("problems are %v", reasons(w.engine))
				}
				for i := range 300 {
					w.remote.drop(large(i))
				}
				w.pass(3 * time.Minute)
				w.equal("content", "1", w.value(configMap("a", "")))
				w.stop()
				w.equal("bytes that are held at the end", int64(0), w.engine.budget.Held())
			})
		})
	}
}

// What this cluster has much of, the provider has, too: that is no flood, and once it is gone neither is more accepted.
func TestMuchThatIsOursIsFollowed(t *testing.T) {
	const bound, objects = 16 << 20, 40
	inBubble(t, func(w *world) {
		name := func(i int) string { return fmt.Sprintf("dashboard-%d", i) }
		text := strings.Repeat("x", 1<<20)
		for i := range objects / 2 {
			w.local.put(configMap(name(i), text))
		}
		w.start(func(o *Options) { o.Budget = replica.NewBudget(bound) })
		for i := objects / 2; i < objects; i++ {
			w.local.put(configMap(name(i), text))
		}
		w.pass(5 * time.Minute)
		if got := reasons(w.engine); slices.Contains(got, offloadingv1beta1.ReasonRemoteOverLimit) {
			t.Errorf("problems are %v", got)
		}
		if held := w.engine.budget.Held(); held < objects<<20 {
			t.Errorf("%d MiB are held of the provider, want all %d", held>>20, objects)
		}
		for i := range objects {
			w.local.drop(configMap(name(i), text))
		}
		w.pass(5 * time.Minute)
		w.equal("bytes that are accepted", int64(bound), w.engine.budget.Limit())
		w.equal("bytes that are held", int64(0), w.engine.budget.Held())
		w.stop()
		w.equal("bytes that are accepted at the end", int64(bound), w.engine.budget.Limit())
	})
}
