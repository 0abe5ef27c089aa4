package mirror

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

func both(name, value string) map[string]reflection.Object {
	return map[string]reflection.Object{"configmap": configMap(name, value), "secret": secret(name, value)}
}

func set(w *world, o reflection.Object, value string) {
	switch o := o.(type) {
	case *corev1.ConfigMap:
		edit(w.local, o, func(c *corev1.ConfigMap) { c.Data = map[string]string{"key": value} })
	case *corev1.Secret:
		edit(w.local, o, func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte(value)} })
	}
}

func TestLifeOfAnObject(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				id := kindOf(object) + "/" + there + "/a"
				w.start()
				w.wrote("start with nothing")
				w.local.put(object)
				w.wrote("created at home", "create "+id)
				w.equal("content", "1", w.value(object))
				w.equal("events", []string(nil), w.events.took())
				w.publish()
				w.wrote("ledger published")

				set(w, object, "2")
				w.wrote("changed at home", "patch "+id)
				w.equal("content", "2", w.value(object))
				w.publish()

				w.stop()
				w.remote.took(true)
				w.start()
				w.wrote("restart with everything in place")

				w.local.drop(object)
				want := []string{"delete " + id}
				if kind == "secret" {
					want = []string{"probe " + id, "delete " + id}
				}
				w.wrote("deleted at home", want...)
				w.publish()
				w.wrote("at rest")
				w.equal("events", []string(nil), w.events.took())
				w.equal("problems", []Problem(nil), w.engine.Problems())
			})
		})
	}
}

// C6: somebody else's object of the same name.
func TestForeignObjectsAreLeftAlone(t *testing.T) {
	for kind, object := range both("a", "ours") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				theirs := at(object)
				switch o := theirs.(type) {
				case *corev1.ConfigMap:
					o.Data = map[string]string{"key": "theirs"}
				case *corev1.Secret:
					o.Data = map[string][]byte{"key": []byte("theirs")}
				}
				before := w.remote.put(theirs)
				w.local.put(object)
				w.start()
				w.pass(10 * time.Minute)
				w.equal("their object", before, w.remote.find(theirs))
				w.equal("events", []string{"a Warning NameConflict", "a Warning NameConflict"}, w.events.took())
				w.equal("problems", []string{"NameConflict"}, reasons(w.engine))
				if calls := len(w.remote.took(false)); calls > 40 {
					t.Errorf("%d calls in ten minutes", calls)
				}
				w.local.drop(object)
				w.pass(time.Minute)
				w.equal("their object after ours is gone", before, w.remote.find(theirs))
				w.local.put(object)
				w.remote.drop(theirs)
				w.pass(2 * time.Minute)
				w.equal("content after theirs is gone", "ours", w.value(object))
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}

func reasons(e *Engine) []string {
	var list []string
	for _, p := range e.Problems() {
		list = append(list, p.Reason)
	}
	return list
}

func TestForgedMarksAreForeign(t *testing.T) {
	for kind, object := range both("a", "ours") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				forged := marked(copyOf(object), "")
				forged.SetAnnotations(nil)
				w.remote.put(forged)
				w.local.put(object)
				w.start()
				w.pass(time.Second)
				w.equal("problems", []string{"NameConflict"}, reasons(w.engine))
				w.local.drop(object)
				w.pass(time.Minute)
				if w.remote.find(at(object)) == nil {
					t.Error("a forged object was deleted")
				}
			})
		})
	}
}

// C2: the remote object of an earlier one is not adopted.
func TestNewUIDReplacesTheOldObject(t *testing.T) {
	for kind, object := range both("a", "1") {
		for name, connected := range map[string]bool{"while connected": true, "while disconnected": false} {
			t.Run(kind+" "+name, func(t *testing.T) {
				inBubble(t, func(w *world) {
					w.local.put(object)
					w.start()
					w.publish()
					old := w.remote.find(at(object)).GetUID()
					if !connected {
						w.cut()
					}
					w.local.mu.Lock()
					w.local.store(keyOf(object), nil)
					next := copyOf(object)
					next.SetUID("next")
					w.local.store(keyOf(object), next)
					w.local.mu.Unlock()
					set(w, object, "2")
					w.pass(time.Second)
					if !connected {
						w.mend()
					}
					w.publish()
					w.pass(time.Minute)
					found := w.remote.find(at(object))
					if found.GetUID() == old || reflection.OriginUID(found) != "next" || w.value(object) != "2" {
						t.Errorf("found %v", found)
					}
				})
			})
		}
	}
}

// cut takes the connection away: calls fail and watches end.
func (w *world) cut() {
	w.remote.setDown(errors.New("connection refused"))
	w.peer.set(func(p *fakePeer) { p.connected = false })
	w.rest()
}

func (w *world) mend() {
	w.remote.setDown(nil)
	w.peer.set(func(p *fakePeer) { p.connected = true })
	w.rest()
}

// C1: what changes and goes at home while the provider is away.
func TestPartition(t *testing.T) {
	for kind := range both("", "") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				stays, changes, goes, comes := both("stays", "1")[kind], both("changes", "1")[kind], both("goes", "1")[kind], both("comes", "1")[kind]
				for _, o := range []reflection.Object{stays, changes, goes} {
					w.local.put(o)
				}
				w.start()
				w.publish()
				w.cut()
				set(w, changes, "2")
				w.local.drop(goes)
				w.local.put(comes)
				w.pass(time.Second)
				w.remote.took(true)
				w.pass(time.Hour)
				for _, call := range w.remote.took(false) {
					t.Errorf("call while disconnected: %s", call)
				}
				w.equal("events", []string{}, w.warnings())
				w.mend()
				w.pass(2 * time.Second)
				got := map[string]string{}
				for _, o := range []reflection.Object{stays, changes, goes, comes} {
					got[o.GetName()] = w.value(o)
				}
				w.equal("contents", map[string]string{"stays": "1", "changes": "2", "goes": "", "comes": "1"}, got)
			})
		})
	}
}

func (w *world) warnings() []string {
	return slices.DeleteFunc(w.events.took(), func(e string) bool { return !strings.Contains(e, "Warning") })
}

// D5: what the provider's API server never changes is made anew.
func TestImmutableFieldsAreReplaced(t *testing.T) {
	yes := true
	for name, tc := range map[string]struct {
		object reflection.Object
		change func(reflection.Object)
	}{
		"an immutable ConfigMap": {&corev1.ConfigMap{Data: map[string]string{"key": "1"}, Immutable: &yes}, func(o reflection.Object) {
			o.(*corev1.ConfigMap).Data = map[string]string{"key": "2"}
		}},
		"an immutable Secret": {&corev1.Secret{Data: map[string][]byte{"key": []byte("1")}, Immutable: &yes}, func(o reflection.Object) {
			o.(*corev1.Secret).Data = map[string][]byte{"key": []byte("2")}
		}},
		"a Secret of another type": {&corev1.Secret{Data: map[string][]byte{"key": []byte("1")}, Type: corev1.SecretTypeOpaque}, func(o reflection.Object) {
			o.(*corev1.Secret).Type = "example.com/type"
			o.(*corev1.Secret).Data = map[string][]byte{"key": []byte("2")}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				tc.object.SetName("a")
				tc.object.SetNamespace(here)
				w.local.put(tc.object)
				w.start()
				w.publish()
				first := w.remote.find(at(tc.object)).GetUID()
				// Same UID on purpose: the field alone must lead to the replacement.
				edit(w.local, tc.object, tc.change)
				w.pass(time.Second)
				found := w.remote.find(at(tc.object))
				if found == nil || found.GetUID() == first || w.value(tc.object) != "2" {
					t.Errorf("found %v", found)
				}
				w.publish()
				w.remote.took(true)
				w.pass(time.Hour)
				w.wrote("at rest")
			})
		})
	}
}

// C5: a change at the provider is put back, and who keeps changing it is not fought.
func TestDriftIsRevertedAndFightsAreNot(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(object)
				w.start()
				w.publish()
				w.pass(2 * time.Minute)
				w.remote.took(true)
				spoil := func() {
					if kind == "secret" {
						edit(w.remote, at(object).(*corev1.Secret), func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte("evil")} })
						w.publish()
						w.pass(ledgerGrace + time.Second)
						return
					}
					edit(w.remote, at(object).(*corev1.ConfigMap), func(c *corev1.ConfigMap) { c.Data = map[string]string{"key": "evil"} })
					w.rest()
				}
				spoil()
				w.equal("content", "1", w.value(object))
				w.equal("events", []string{"a Warning RemoteChangeReverted"}, w.events.took())
				for range 20 {
					spoil()
					w.pass(time.Second)
				}
				if writes := len(w.remote.took(false)); writes > 8 {
					t.Errorf("%d writes in about two minutes", writes)
				}
				if !slices.Contains(w.events.took(), "a Warning Contended") {
					t.Error("nobody was told of the fight")
				}
				w.publish()
				w.pass(3 * time.Minute)
				w.equal("content when the fight is over", "1", w.value(object))
				w.publish()
				w.pass(3 * time.Minute)
				w.equal("problems", []string(nil), reasons(w.engine))

				w.remote.drop(at(object))
				w.publish()
				w.pass(10 * time.Second)
				w.equal("content after a deletion", "1", w.value(object))
			})
		})
	}
}

func TestPolicies(t *testing.T) {
	annotate := func(o reflection.Object, key string) reflection.Object {
		o = copyOf(o)
		o.SetAnnotations(map[string]string{key: ""})
		return o
	}
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(object)
				w.start()
				w.publish()
				w.events.took()
				expect := func(what, value string, events ...string) {
					t.Helper()
					w.publish()
					w.pass(7 * time.Second)
					w.publish()
					w.equal(what, value, w.value(object))
					w.equal(what+": events", events, w.events.took())
				}
				w.local.put(annotate(object, offloadingv1beta1.SkipReflectionAnnotation))
				expect("annotated skip", "", "a Normal ReflectionDisabled")
				w.local.put(object)
				expect("annotation removed", "1")

				w.local.put(annotate(namespaceObject(here), offloadingv1beta1.SkipReflectionAnnotation))
				w.pass(namespaceRefresh)
				expect("namespace annotated skip", "", "a Normal ReflectionDisabled")
				w.local.put(namespaceObject(here))
				w.pass(namespaceRefresh)
				expect("namespace's annotation removed", "1")

				w.setConfig(kind, offloadingv1beta1.ReflectorConfig{NumWorkers: 1, Type: offloadingv1beta1.AllowList})
				expect("policy AllowList", "", "a Normal ReflectionDisabled")
				w.local.put(annotate(object, offloadingv1beta1.AllowReflectionAnnotation))
				expect("annotated allow", "1")

				w.setConfig(kind, offloadingv1beta1.ReflectorConfig{Type: offloadingv1beta1.AllowList})
				w.local.put(object)
				expect("kind turned off", "1")
				w.setConfig(kind, offloadingv1beta1.ReflectorConfig{NumWorkers: 4})
				set(w, object, "2")
				expect("kind turned on", "2")
			})
		})
	}
}

func TestANamespaceAnnotatedMeanwhileLetsNothingNewOut(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(configMap("a", "1"))
		w.start()
		w.pass(2 * time.Minute)
		skipping := namespaceObject(here)
		skipping.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
		w.local.put(skipping)
		w.local.put(configMap("b", "1"))
		w.pass(time.Second)
		w.equal("new object", "", w.value(configMap("b", "")))
		w.equal("old object", "", w.value(configMap("a", "")))
	})
}

func TestA11NothingIsDeletedOnMissingKnowledge(t *testing.T) {
	for kind, object := range both("a", "1") {
		for name, lose := range map[string]func(*world){
			"the namespace leaves the mapping": func(w *world) { w.setMapping(nil) },
			"the kind is turned off":           func(w *world) { w.setConfig(kind, offloadingv1beta1.ReflectorConfig{}) },
			"this cluster's API server is down": func(w *world) {
				w.local.setDown(errors.New("down"))
				w.stop()
				w.start()
			},
			"this cluster's lists are empty for a moment": func(w *world) {
				w.stop()
				w.local.lies.Store(true)
				w.start()
			},
			"the namespace cannot be read": func(w *world) {
				w.local.intercept = func(verb, key string) error {
					if strings.HasPrefix(key, "Namespace/") {
						return apierrors.NewForbidden(resource(namespaceObject("")), here, nil)
					}
					return nil
				}
				w.stop()
				w.start()
			},
			"the ledger vanishes": func(w *world) {
				w.remote.drop(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: offloadingv1beta1.SecretLedger}})
			},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				inBubble(t, func(w *world) {
					w.local.put(object)
					w.start()
					w.publish()
					w.remote.took(true)
					lose(w)
					w.pass(20 * time.Minute)
					w.equal("content", "1", w.value(object))
					for _, call := range w.remote.took(false) {
						t.Errorf("write: %s", call)
					}
				})
			})
		}
	}
}

func TestOrphansGo(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.remote.put(marked(copyOf(object), "gone"))
				other := copyOf(object)
				other.SetNamespace(there)
				other.SetName("foreign")
				w.remote.put(other)
				w.publish()
				w.start()
				w.pass(time.Second)
				w.equal("orphan", "", w.value(object))
				if w.remote.find(other) == nil {
					t.Error("a foreign object was deleted")
				}
			})
		})
	}
}

func TestRemoteWatchesOpenLazily(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start(func(o *Options) { o.Kinds = reflection.Kinds()[:2] })
		w.equal("calls for an empty namespace", []string{"get ConfigMap/demo-rome/liqo-secret-ledger", "list ConfigMap/demo-rome"}, sorted(w.remote.took(true)))
		w.local.put(configMap("a", "1"))
		w.rest()
		w.equal("calls for a ConfigMap",
			[]string{"create ConfigMap/demo-rome/a", "list ConfigMap/demo-rome", "watch ConfigMap/demo-rome"}, sorted(w.remote.took(true)))
	})
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
