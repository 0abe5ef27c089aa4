package mirror

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/reflection"
)

// A12: most originals are missing at once. What a list tells is held until it is confirmed; what a watch tells, and what goes with its
// namespace, goes at once, and so does a little of what a list tells.
func TestA12ManyMissingOriginals(t *testing.T) {
	const all = 12
	away := func(w *world, while func()) {
		w.stop()
		while()
		w.start(guarded)
	}
	for kind := range both("a", "1") {
		for name, tc := range map[string]struct {
			missing, stay int
			lose          func(w *world, lose func())
			// then is what happens afterwards.
			then func(w *world, lost []reflection.Object)
		}{
			"after a restart":      {missing: 10, stay: all, lose: away},
			"after a restart, few": {missing: 5, stay: all - 5, lose: away},
			"by a list that is read anew": {missing: 10, stay: all, lose: func(w *world, lose func()) {
				w.local.setDown(apierrors.NewServiceUnavailable("restarting"))
				w.pass(time.Second)
				lose()
				w.local.mu.Lock()
				w.local.log = nil
				w.local.mu.Unlock()
				w.local.intercept = once("watch", apierrors.NewResourceExpired("too old resource version"))
				w.local.setDown(nil)
			}},
			"seen by a watch": {missing: 10, stay: all - 10, lose: func(_ *world, lose func()) { lose() }},
			"seen by a watch while the peer is away": {missing: 10, stay: all - 10, lose: func(w *world, lose func()) {
				w.peer.set(func(p *fakePeer) { p.connected = false })
				lose()
				w.pass(time.Minute)
				w.peer.set(func(p *fakePeer) { p.connected = true })
			}},
			"with their namespace": {missing: 10, stay: all - 10, lose: func(w *world, lose func()) {
				away(w, func() {
					edit(w.local, namespaceObject(here), func(n *corev1.Namespace) { n.DeletionTimestamp = new(metav1.Now()) })
					lose()
				})
			}},
			"and come back": {missing: 10, stay: all, lose: away, then: func(w *world, lost []reflection.Object) {
				for _, object := range lost {
					w.local.put(object)
				}
				w.pass(time.Minute)
				if confirm, said := w.engine.options.Removals.Held(); confirm+said != "" {
					w.Errorf("still held: %s", said)
				}
			}},
			"and are confirmed": {missing: 10, stay: all - 10, lose: away, then: func(w *world, _ []reflection.Object) {
				confirm, _ := w.engine.options.Removals.Held()
				w.engine.options.Removals.Confirm(confirm)
			}},
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				inBubble(t, func(w *world) {
					var objects []reflection.Object
					for i := range all {
						objects = append(objects, w.local.put(both(fmt.Sprint(kind, i), "1")[kind]))
					}
					w.start(guarded)
					w.pass(time.Second)
					w.publish()
					tc.lose(w, func() {
						for _, object := range objects[:tc.missing] {
							w.local.drop(object)
						}
					})
					w.pass(10 * time.Minute)
					w.remote.took(false)
					w.publish()
					if tc.then != nil {
						if held, said := w.engine.options.Removals.Held(); held == "" || said != fmt.Sprintf("%d of kind %s in namespace %s", tc.missing, kind, here) {
							w.Errorf("it says %q", said)
						}
						tc.then(w, objects[:tc.missing])
						w.pass(time.Minute)
					}
					there := 0
					for _, object := range objects {
						if w.value(object) != "" {
							there++
						}
					}
					w.equal("copies", tc.stay, there)
					w.equal("problems", []string(nil), reasons(w.engine))
					w.equal("events", []string(nil), w.events.took())
				})
			})
		}
	}
}

// A12 at the provider: what was followed before it was lost is listed anew once it is back, because a watch of a server that was restored
// from a backup never tells what the restore took away.
func TestARestoredProviderIsListedAnew(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(object)
				w.start()
				w.publish()
				w.peer.set(func(p *fakePeer) { p.connected = false })
				w.rest()
				w.remote.mu.Lock()
				delete(w.remote.objects, keyOf(at(object)))
				if ledger, is := w.remote.objects[keyOf(ledgerObject())].(*corev1.ConfigMap); is {
					ledger = copyOf(ledger).(*corev1.ConfigMap)
					ledger.Data = nil
					w.remote.objects[keyOf(ledger)] = ledger
				}
				w.remote.mu.Unlock()
				w.peer.set(func(p *fakePeer) { p.connected = true })
				w.pass(10 * time.Minute)
				w.equal("content", "1", w.value(object))
			})
		})
	}
}

func ledgerObject() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: offloadingv1beta1.SecretLedger}}
}

// guarded has many removals at once held.
func guarded(o *Options) {
	o.Removals = massremoval.New(massremoval.Options{Share: massremoval.DefaultShare})
}
