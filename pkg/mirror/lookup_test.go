package mirror

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestReflectedKnowsWhatCrossed(t *testing.T) {
	for kind, object := range both("a", "1") {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.start()
				found := func() bool {
					w.rest()
					local, ok := w.engine.Reflected(kindOf(object), here, "a")
					return ok && local.GetName() == "a"
				}
				w.equal("of nothing", false, found())
				w.equal("an empty namespace", false, w.engine.Crossed(here))
				stays := configMap("stays", "1")
				stays.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
				w.local.put(stays)
				w.remote.put(&corev1.ConfigMap{ObjectMeta: at(stays).ObjectMeta})
				w.rest()
				_, ok := w.engine.Reflected("ConfigMap", here, "stays")
				w.equal("of what stays at home", false, ok)
				w.equal("a namespace whose objects stay at home", false, w.engine.Crossed(here))

				w.local.put(object)
				w.rest()
				w.publish()
				w.equal("of what crossed", true, found())
				w.equal("a namespace of which something crossed", true, w.engine.Crossed(here))
				_, ok = w.engine.Reflected(kindOf(object), "elsewhere", "a")
				w.equal("of another namespace", false, ok)
				_, ok = w.engine.Reflected("Pod", here, "a")
				w.equal("of another kind", false, ok)

				w.local.drop(object)
				w.rest()
				w.equal("of what is gone", false, found())
			})
		})
	}
}

func TestReflectedDoesNotBelieveAForeignMark(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(configMap("a", "1"))
		w.remote.put(marked(configMap("a", "1"), "the UID of another object"))
		// It stays, because the provider refuses to delete it.
		w.remote.intercept = func(verb, _ string) error {
			if verb == "delete" {
				return errors.New("no")
			}
			return nil
		}
		w.start()
		_, ok := w.engine.Reflected("ConfigMap", here, "a")
		w.equal("of an object that stands for another", false, ok)
	})
}

// An EndpointSlice is known by its ShadowEndpointSlice; the slice that the provider makes of that has the same name.
func TestReflectedKnowsEndpointSlices(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(service("shop"))
		w.local.put(endpointSlice("a", "shop", "worker"))
		w.local.put(endpointSlice("b", "stays", "worker"))
		w.start(family)
		w.rest()
		found, ok := w.engine.Reflected("EndpointSlice", here, "a")
		w.equal("of a slice that crossed", true, ok && found.GetName() == "a")
		_, ok = w.engine.Reflected("EndpointSlice", here, "b")
		w.equal("of a slice that stays at home", false, ok)
	})
}
