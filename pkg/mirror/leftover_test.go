package mirror

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// frontWith is an Ingress whose certificate is in the Secret a.
func frontWith() *networkingv1.Ingress {
	object := ingressObject("front")
	object.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "a"}}
	return object
}

// withIngresses runs an engine that reflects the Secrets that are used, and Ingresses with so many workers.
func (w *world) withIngresses(workers int32) {
	w.Helper()
	secrets, _ := reflection.Lookup("secret")
	ingresses, _ := reflection.Lookup("ingress")
	w.start(func(o *Options) {
		o.Kinds, o.References = []reflection.Kind{secrets, ingresses}, &used{names: map[string]bool{}}
		o.Wanted.Set(Wanted{Kinds: map[string]offloadingv1beta1.ReflectorConfig{
			"secret":  {NumWorkers: 3, Type: offloadingv1beta1.Referenced},
			"ingress": {NumWorkers: workers, Type: offloadingv1beta1.DenyList},
		}})
	})
}

func (w *world) ingressWorkers(workers int32) {
	w.Helper()
	w.setConfig("ingress", offloadingv1beta1.ReflectorConfig{NumWorkers: workers, Type: offloadingv1beta1.DenyList})
	w.rest()
}

func (w *world) lists() int {
	n := 0
	for _, call := range w.remote.took(true) {
		if call == "list Ingress/"+there {
			n++
		}
	}
	return n
}

// Policy Referenced: a Secret that only an Ingress here names does not cross, nor stay, while Ingresses do not cross.
func TestCertificatesOfIngressesThatStayHere(t *testing.T) {
	for name, tc := range map[string]struct {
		at   func(w *world)
		want string // content of the copy
	}{
		"it does not cross": {func(w *world) { w.withIngresses(0) }, ""},
		"what crossed before by another policy is removed": {func(w *world) {
			w.start()
			w.publish()
			w.stop()
			w.remote.drop(at(frontWith()))
			w.withIngresses(0)
		}, ""},
		"it goes with the copy of the Ingress": {func(w *world) {
			w.withIngresses(3)
			w.publish()
			w.ingressWorkers(0)
			w.pass(time.Hour)
			w.equal("content while the copy is there", "1", w.value(secret("a", "")))
			w.remote.drop(at(frontWith()))
		}, ""},
		"it stays with the copy of the Ingress, after a restart too": {func(w *world) {
			w.withIngresses(3)
			w.ingressWorkers(0) // The ledger does not show the Secret yet.
			w.publish()
			w.stop()
			w.withIngresses(0)
		}, "1"},
		"it stays while nobody can tell": {func(w *world) {
			w.withIngresses(3)
			w.publish()
			w.remote.mu.Lock()
			w.remote.intercept = func(verb, key string) error {
				if verb == "list" && strings.HasPrefix(key, "Ingress/") {
					return errors.New("no answer")
				}
				return nil
			}
			w.remote.mu.Unlock()
			w.ingressWorkers(0)
			w.remote.drop(at(frontWith()))
		}, "1"},
		"another Ingress there is none of ours": {func(w *world) {
			w.withIngresses(3)
			w.publish()
			w.ingressWorkers(0)
			w.remote.drop(at(frontWith()))
			w.remote.put(at(frontWith()))
		}, ""},
		"it crosses again with the Ingress": {func(w *world) {
			w.withIngresses(0)
			w.pass(time.Hour)
			w.equal("content while Ingresses stay", "", w.value(secret("a", "")))
			w.ingressWorkers(3)
		}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.local.put(secret("a", "1"))
				w.local.put(frontWith())
				tc.at(w)
				w.pass(time.Hour)
				w.publish()
				w.pass(time.Minute)
				w.equal("content", tc.want, w.value(secret("a", "")))
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}

// What the copies of a kind that is off use is asked once for all objects of a namespace, not more often than every ten minutes.
func TestLookingForLeftIngresses(t *testing.T) {
	inBubble(t, func(w *world) {
		names := []string{"a", "b", "c"}
		ingress := frontWith()
		for _, name := range names {
			w.local.put(secret(name, "1"))
			if name != "a" {
				ingress.Spec.TLS = append(ingress.Spec.TLS, networkingv1.IngressTLS{SecretName: name})
			}
		}
		w.local.put(ingress)
		w.withIngresses(3)
		w.publish()
		w.ingressWorkers(0)
		w.pass(time.Minute)
		if n := w.lists(); n < 1 || n > 3 {
			t.Errorf("%d lists at first", n)
		}
		w.pass(50 * time.Minute)
		if n := w.lists(); n < 4 || n > 6 {
			t.Errorf("%d lists in fifty minutes", n)
		}
		kept := slices.DeleteFunc(names, func(name string) bool { return w.value(secret(name, "")) == "" })
		w.equal("kept", []string{"a", "b", "c"}, kept)
	})
}
