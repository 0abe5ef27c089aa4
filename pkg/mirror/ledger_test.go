package mirror

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// C4: of an object that is deleted at the provider before the ledger ever showed it, the ledger never tells.
func TestAnObjectThatTheLedgerNeverShowed(t *testing.T) {
	inBubble(t, func(w *world) {
		w.publish()
		w.local.put(secret("a", "1"))
		w.start()
		w.wrote("a new one", "create Secret/demo-rome/a")
		w.remote.drop(at(secret("a", "")))
		w.pass(ledgerLate)
		w.wrote("looked for", "probe Secret/demo-rome/a", "create Secret/demo-rome/a")
		w.pass(2 * time.Hour)
		if calls := w.remote.took(false); len(calls) < 2 || len(calls) > 12 || strings.Count(strings.Join(calls, "\n"), "probe") != len(calls) {
			t.Errorf("while the ledger lags, the object is looked at rarely, and not written: %v", calls)
		}
		w.publish()
		w.remote.took(false)
		w.pass(2 * time.Hour)
		w.wrote("the ledger shows it")
		w.equal("problems", []string(nil), reasons(w.engine))
	})
}

// C5: what the provider's admission rewrites in the very request that sets it right shows neither in a watch nor in a ledger.
func TestUndoneInTheSameRequest(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(object)
				w.start()
				w.publish()
				w.events.took()
				w.remote.took(false)
				w.remote.mu.Lock()
				w.remote.admit = func(o reflection.Object) {
					switch o := o.(type) {
					case *corev1.ConfigMap:
						o.Data = map[string]string{"key": "theirs"}
					case *corev1.Secret:
						o.Data = map[string][]byte{"key": []byte("theirs")}
					}
				}
				w.remote.mu.Unlock()
				touch(w, object)
				w.publish()
				const minutes = 5
				w.pass(minutes * time.Minute)
				w.equal("problems", []string{offloadingv1beta1.ReasonContended}, reasons(w.engine))
				w.equal("Events", true, slices.Contains(w.events.took(), "a Warning "+offloadingv1beta1.ReasonContended))
				writes := 0
				for _, call := range w.remote.took(false) {
					if strings.HasPrefix(call, "patch ") {
						writes++
					}
				}
				if writes > 2*(minutes+2) || writes < minutes {
					t.Errorf("%d writes in %d minutes", writes, minutes)
				}
				w.remote.mu.Lock()
				w.remote.admit = nil
				w.remote.mu.Unlock()
				w.pass(2 * time.Minute)
				w.publish()
				w.pass(time.Minute)
				w.equal("content", "1", w.value(object))
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}

// touch changes the content at the provider.
func touch(w *world, object reflection.Object) {
	switch o := at(object).(type) {
	case *corev1.ConfigMap:
		edit(w.remote, o, func(c *corev1.ConfigMap) { c.Data = map[string]string{"key": "theirs"} })
	case *corev1.Secret:
		edit(w.remote, o, func(s *corev1.Secret) { s.Data = map[string][]byte{"key": []byte("theirs")} })
	}
}
