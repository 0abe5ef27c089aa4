package mirror

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqo.io/liqo/pkg/kube/latest"
)

// A7: a provider that asks for patience gets it.
func TestA7ThrottledRequestsWait(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.start()
				w.remote.took(true)
				w.remote.intercept = once("create", apierrors.NewTooManyRequests("slow down", 30))
				w.local.put(object)
				w.pass(29 * time.Second)
				if calls := w.remote.took(false); len(calls) != 1 {
					t.Errorf("calls in the time to wait: %v", calls)
				}
				w.pass(2 * time.Second)
				w.equal("content", "1", w.value(object))
			})
		})
	}
}

// A7: the others are not asked of it either meanwhile, whatever wakes them up.
func TestThrottlingIsForAll(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.remote.took(true)
		w.remote.intercept = once("create", apierrors.NewTooManyRequests("slow down", 3600))
		w.local.put(configMap("a", "1"))
		w.rest()
		for i := range 20 {
			w.local.put(configMap(fmt.Sprint("b", i), "1"))
		}
		set(w, configMap("a", ""), "2")
		w.pass(59 * time.Second)
		w.wrote("a minute is the most that a provider may ask for", "create ConfigMap/"+there+"/a")
		w.pass(2 * time.Second)
		w.equal("content", "2", w.value(configMap("a", "")))
		w.equal("writes", 21, len(w.remote.took(false)))
		w.equal("problems", []string(nil), reasons(w.engine))
	})
}

// A7: waiting is no failure of what waits, which nobody at home is told of.
func TestThrottlingIsNobodysFailure(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start()
		w.remote.mu.Lock()
		w.remote.intercept = func(verb, _ string) error {
			if verb == "create" {
				return apierrors.NewTooManyRequests("slow down", 1)
			}
			return nil
		}
		w.remote.mu.Unlock()
		for i := range 20 {
			w.local.put(configMap(fmt.Sprint("b", i), "1"))
		}
		w.events.took()
		w.pass(20 * time.Second)
		w.equal("events", []string(nil), w.events.took())
		if calls := len(w.remote.took(false)); calls > 60 {
			t.Errorf("%d calls in 20 seconds in which the provider may be asked once a second, by 3 workers", calls)
		}
	})
}

// A9: a watch that cannot be resumed is followed by one list, and nothing is written.
func TestA9ExpiredWatchesAreListedAnew(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(object)
				w.start()
				w.publish()
				w.remote.took(true)
				w.local.took(true)
				for _, c := range []*cluster{w.local, w.remote} {
					c.intercept = once("watch", apierrors.NewResourceExpired("too old resource version"))
					c.setDown(apierrors.NewServiceUnavailable("restarting"))
				}
				w.pass(time.Second)
				for _, c := range []*cluster{w.local, w.remote} {
					c.setDown(nil)
				}
				w.pass(5 * time.Minute)
				w.wrote("watches started anew")
				set(w, object, "2")
				w.pass(time.Second)
				w.equal("content", "2", w.value(object))
				lists := 0
				for _, call := range w.local.took(true) {
					if strings.HasPrefix(call, "list ") {
						lists++
					}
				}
				if lists > 20 {
					t.Errorf("%d lists at home", lists)
				}
			})
		})
	}
}

// A10: a removal that no watch told of is found by the list that follows.
func TestA10MissedRemovals(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(object)
				w.start()
				w.publish()
				w.local.setDown(apierrors.NewServiceUnavailable("restarting"))
				w.pass(time.Second)
				w.local.drop(object)
				w.local.mu.Lock()
				w.local.log = nil // History is compacted meanwhile.
				w.local.mu.Unlock()
				w.local.setDown(nil)
				w.pass(5 * time.Minute)
				w.equal("content", "", w.value(object))
			})
		})
	}
}

// C16: an engine that takes over, even before the last one knows, writes nothing if everything is in place, and one of the two
// writing is as good as both.
func TestC16TakeOver(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(configMap("a", "1"))
		w.local.put(service("shop"))
		w.local.put(endpointSlice("s", "shop", "worker"))
		kinds := func(o *Options) {
			family(o)
			o.Kinds = append(o.Kinds, configMapOnly())
		}
		w.start(kinds)
		w.pass(time.Minute)
		w.remote.took(true)
		second, err := New(func() Options {
			o := Options{Home: home, Remote: provider, NodeName: "second", Local: w.local, Peer: w.peer,
				Wanted: latest.New(Wanted{Mapping: map[string]string{here: there}})}
			kinds(&o)
			return o
		}())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := second.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		defer func() {
			cancel()
			<-done
		}()
		w.pass(time.Minute)
		w.wrote("both run, everything is in place")
		w.stop()
		w.pass(time.Minute)
		w.wrote("the first one is gone")
		set(w, configMap("a", ""), "2")
		w.wrote("a change", "patch ConfigMap/"+there+"/a")
		w.local.drop(&corev1.ConfigMap{ObjectMeta: configMap("a", "").ObjectMeta})
		w.wrote("a removal", "delete ConfigMap/"+there+"/a")
	})
}
