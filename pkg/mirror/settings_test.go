package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

func TestMain(m *testing.M) {
	// The others sleep until the time of the last error, which was on the clock of another bubble.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func TestNewCredentialsAndLateOnes(t *testing.T) {
	inBubble(t, func(w *world) {
		second := newCluster()
		w.peer.client, w.peer.connected = nil, false
		w.local.put(configMap("a", "1"))
		w.local.put(secret("a", "1"))
		w.start()
		w.pass(time.Minute)
		w.equal("problems", []string(nil), reasons(w.engine))
		w.peer.set(func(p *fakePeer) { p.client, p.connected = w.remote, true })
		w.pass(time.Second)
		w.equal("ConfigMap", "1", w.value(configMap("a", "")))
		w.equal("Secret", "1", w.value(secret("a", "")))
		w.peer.set(func(p *fakePeer) { p.client = second; p.epoch++ })
		w.pass(time.Second)
		w.remote = second
		w.equal("ConfigMap by the new client", "1", w.value(configMap("a", "")))
	})
}

func TestHostileLedger(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(secret("a", "1"))
		w.start()
		for i := range 30 {
			w.remote.put(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: offloadingv1beta1.SecretLedger},
				Data: map[string]string{
					"a": fmt.Sprint("uid lie", i), "b": "", "../../c": "x", "": "y", strings.Repeat("d", 500): "z", "UPPER": "",
				},
			})
			w.pass(2 * time.Second)
		}
		w.equal("content", "1", w.value(secret("a", "")))
		if calls := w.remote.took(false); len(calls) > 20 {
			t.Errorf("%d calls in a minute: %v", len(calls), calls)
		}
	})
}

func TestPartialLedger(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(secret("a", "1"))
		w.start()
		for range 3 {
			w.remote.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: there, Name: offloadingv1beta1.SecretLedger, Annotations: map[string]string{offloadingv1beta1.SecretLedgerOmittedAnnotation: "1"},
			}})
			w.pass(time.Minute)
		}
		const probe = "probe Secret/demo-rome/a"
		w.wrote("not listed in a ledger that is too small", "create Secret/demo-rome/a", probe, probe, probe)
		w.local.drop(secret("a", ""))
		w.rest()
		w.equal("content", "", w.value(secret("a", "")))
	})
}

func TestBadUse(t *testing.T) {
	c := newCluster()
	peer := &fakePeer{client: c}
	kind := reflection.Kinds()[0]
	for name, o := range map[string]Options{
		"no cluster IDs":       {Local: c, Peer: peer},
		"no peer":              {Home: home, Remote: provider, Local: c},
		"the same kind twice":  {Home: home, Remote: provider, Local: c, Peer: peer, Kinds: []reflection.Kind{kind, kind}},
		"metrics are not ours": {Home: home, Remote: provider, Local: c, Peer: peer, Registerer: taken()},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(o); err == nil {
				t.Error("no error")
			}
		})
	}
	registry := prometheus.NewRegistry()
	for range 2 {
		e, err := New(Options{Home: home, Remote: provider, Local: c, Peer: peer, Registerer: registry})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Reconsider("pod", ""); err == nil || !strings.Contains(err.Error(), "configmap, ") {
			t.Errorf("error is %v", err)
		}
	}
}

func taken() prometheus.Registerer {
	r := prometheus.NewRegistry()
	r.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "liqo_virtual_kubelet_reflection_item_counter"}))
	return r
}

func TestEngineRunsOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		if err := w.engine.Run(context.Background()); err == nil {
			t.Error("it ran twice")
		}
	})
}

func TestMappingMayComeBeforeRunAndChange(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(configMap("a", "1"))
		w.start()
		w.setMapping(map[string]string{here: "elsewhere"})
		w.rest()
		moved := configMap("a", "")
		moved.Namespace = "elsewhere"
		if w.remote.find(moved) == nil || w.value(moved) != "1" {
			t.Error("the new twin is empty, or the old one was emptied")
		}
	})
}

func TestMetrics(t *testing.T) {
	inBubble(t, func(w *world) {
		registry := prometheus.NewRegistry()
		w.local.put(configMap("a", "1"))
		w.start(func(o *Options) { o.Registerer = registry })
		count := func() map[string]float64 {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			counts := map[string]float64{}
			for _, f := range families {
				for _, m := range f.Metric {
					id := f.GetName()
					for _, l := range m.Label {
						id += " " + l.GetValue()
					}
					counts[id] = m.Counter.GetValue()
				}
			}
			return counts
		}
		w.equal("metrics", map[string]float64{"liqo_virtual_kubelet_reflection_item_counter milan demo milan configmap created": 1}, count())
		w.setMapping(nil)
		w.equal("metrics of no namespace", map[string]float64{}, count())
	})
}

// TestChangedWhileWritten has the remote object change between the engine's look at it and its write.
func TestChangedWhileWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(c *cluster, key string)
		want      string
	}{
		"it was replaced by a foreign one": {func(c *cluster, key string) {
			c.store(key, nil)
			foreign := at(configMap("a", "theirs"))
			foreign.UID = "foreign"
			c.store(key, foreign)
		}, "theirs"},
		"it was replaced by one of ours": {func(c *cluster, key string) {
			next := copyOf(c.objects[key])
			c.store(key, nil)
			next.SetUID("next")
			c.store(key, next)
		}, "2"},
		"it was removed": {func(c *cluster, key string) { c.store(key, nil) }, "2"},
		"a removed field was removed already": {func(c *cluster, key string) {
			now := copyOf(c.objects[key]).(*corev1.ConfigMap)
			delete(now.Labels, "goes")
			c.store(key, now)
		}, "2"},
		"it cannot be read either": {func(c *cluster, key string) {
			c.store(key, nil)
			c.intercept = once("get", errors.New("boom"))
		}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				object := configMap("a", "1")
				object.Labels = map[string]string{"goes": ""}
				w.local.put(object)
				w.start()
				done := false
				w.remote.intercept = func(verb, key string) error {
					if verb == "patch" && !done {
						done = true
						tc.meanwhile(w.remote, key)
					}
					return nil
				}
				edit(w.local, object, func(c *corev1.ConfigMap) { c.Data["key"], c.Labels = "2", nil })
				w.pass(2 * time.Minute)
				w.equal("content", tc.want, w.value(object))
			})
		})
	}
}

func TestEventsMayBeLost(t *testing.T) {
	object := func(uid types.UID, version string) reflection.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}}
	}
	now := time.Unix(0, 0)
	var s state
	s.remember(object("1", "10"), now)
	if live, wait := s.newest(object("1", "9"), now); live.GetResourceVersion() != "10" || wait != overlayLife {
		t.Error("an older cache wins over the answer")
	}
	s.vanished(object("2", "11"))
	if live, _ := s.newest(nil, now); live == nil {
		t.Error("another object's end takes the answer away")
	}
	s.vanished(object("1", "11"))
	if live, _ := s.newest(nil, now); live != nil {
		t.Error("the object's end leaves the answer")
	}
	s.remember(object("1", "10"), now)
	if live, _ := s.newest(nil, now.Add(overlayLife)); live != nil {
		t.Error("the answer is believed for ever")
	}
}

func TestTroublesOfANamespaceAreForgottenWithIt(t *testing.T) {
	inBubble(t, func(w *world) {
		w.remote.put(at(configMap("a", "theirs")))
		w.local.put(configMap("a", "1"))
		w.local.put(secret("b", "1"))
		w.start()
		w.cut()
		w.local.put(secret("c", "1"))
		w.rest()
		w.setMapping(nil)
		w.mend()
		w.pass(5 * time.Minute)
		w.equal("problems", []string(nil), reasons(w.engine))
		w.equal("Secret that was parked", "", w.value(secret("c", "")))
	})
}

func TestStripping(t *testing.T) {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}}
	if strip(c); len(c.ManagedFields) != 0 || len(c.Annotations) != 1 {
		t.Errorf("left %v", c.ObjectMeta)
	}
}

func TestAShortCutIsNotMissed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.cut()
		w.local.put(configMap("a", "1"))
		w.rest()
		w.remote.setDown(nil)
		// Back, gone and back again, before the engine looks.
		w.peer.mu.Lock()
		w.peer.connected = true
		w.peer.epoch += 2
		w.peer.mu.Unlock()
		w.engine.wake.Raise()
		w.pass(time.Second)
		w.equal("content", "1", w.value(configMap("a", "")))
		w.peer.set(func(*fakePeer) {})
		w.rest()
	})
}

func TestFailingWatchesAreProblems(t *testing.T) {
	forbid := func(c *cluster, prefix string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.intercept = func(verb, key string) error {
			if (verb == "list" || verb == "watch") && strings.HasPrefix(key, prefix) {
				return apierrors.NewForbidden(resource(configMap("", "")), "", errors.New("no rights"))
			}
			return nil
		}
	}
	for name, side := range map[string]func(w *world) *cluster{
		"at home":         func(w *world) *cluster { return w.local },
		"at the provider": func(w *world) *cluster { return w.remote },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(configMap("a", "1"))
				forbid(side(w), "ConfigMap")
				w.start()
				w.pass(10 * time.Minute)
				if problems := w.engine.Problems(); len(problems) == 0 {
					t.Error("nobody is told")
				}
				if calls := len(side(w).took(true)); calls > 80 {
					t.Errorf("%d calls in ten minutes", calls)
				}
				forbid(side(w), "nothing")
				w.pass(2 * time.Minute)
				w.equal("content", "1", w.value(configMap("a", "")))
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}

// A namespace that is annotated, or not any more, is obeyed as soon as somebody says that namespaces changed.
func TestAnnotatedNamespacesAreObeyedAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(configMap("a", "1"))
		w.start()
		w.pass(time.Second)
		w.equal("at first", "1", w.value(configMap("a", "")))
		skipping := namespaceObject(here)
		skipping.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
		w.local.put(skipping)
		w.refreshNamespaces()
		w.pass(time.Second)
		w.equal("annotated", "", w.value(configMap("a", "")))
		w.local.put(namespaceObject(here))
		w.refreshNamespaces()
		w.pass(time.Second)
		w.equal("not annotated any more", "1", w.value(configMap("a", "")))
	})
}

// An API server that fails at that moment is asked again soon; what was known stays in force meanwhile.
func TestAnnotatedNamespacesAreReadAgainAfterAFailure(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(configMap("a", "1"))
		w.start()
		w.pass(time.Second)
		fail := func(err error) {
			w.local.mu.Lock()
			defer w.local.mu.Unlock()
			w.local.intercept = func(_, key string) error {
				if strings.HasPrefix(key, "Namespace/") {
					return err
				}
				return nil
			}
		}
		fail(errors.New("down"))
		skipping := namespaceObject(here)
		skipping.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
		w.local.put(skipping)
		w.refreshNamespaces()
		w.pass(time.Second)
		w.equal("while it fails", "1", w.value(configMap("a", "")))
		fail(nil)
		w.pass(2 * time.Minute)
		w.equal("once it answers", "", w.value(configMap("a", "")))
	})
}

// Namespaces are read again when one is annotated or not any more, and else never.
func TestNamespacesAreReadAgainWhenOneIsAnnotated(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(configMap("a", "1"))
		w.start(func(o *Options) { o.Kinds = []reflection.Kind{configMapOnly()} })
		reads := func() (n int) {
			w.pass(time.Second)
			for _, call := range w.local.took(true) {
				if strings.HasPrefix(call, "get Namespace/") {
					n++
				}
			}
			return n
		}
		w.equal("reads at first", 1, reads())
		for i, step := range []struct {
			skipped string
			want    int
		}{{"", 0}, {"a", 1}, {"a", 0}, {"b", 1}, {"", 1}} {
			w.wanted.Change(func(now *Wanted) { now.Skipped = step.skipped })
			w.equal(fmt.Sprintf("reads at version %d (%q)", i, step.skipped), step.want, reads())
		}
		w.stop()
		w.start(func(o *Options) {
			o.Kinds = []reflection.Kind{configMapOnly()}
			o.Wanted.Set(Wanted{Skipped: "a", Mapping: map[string]string{here: there}})
		})
		w.equal("reads after a restart", 1, reads())
	})
}
