package mirror

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// With several virtual nodes, what nobody uses is removed as with one, but only if the pods of all of them are known.
func TestReferencedObjectsOfSeveralVirtualNodes(t *testing.T) {
	for name, object := range both("a", "1") {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				kind, _ := reflection.Lookup(name)
				path := kindOf(object) + "/" + there + "/a"
				references := &used{names: map[string]bool{}, unknown: true}
				reconsider := func() { w.engine.each(func(r *runner) { r.reconsider("") }) }
				w.local.put(object)
				w.publish()
				w.remote.took(false)
				w.start(func(o *Options) {
					o.Kinds, o.References = []reflection.Kind{kind}, references
					o.Wanted.Set(Wanted{Kinds: map[string]offloadingv1beta1.ReflectorConfig{name: {NumWorkers: 3, Type: offloadingv1beta1.Referenced}}})
				})
				w.setProvider(reflection.Provider{Nodes: map[string]bool{"milan": true, "milan-gpu": true}})
				w.wrote("nobody knows what pods use")
				references.forget(false)
				reconsider()
				w.wrote("no pod uses it")
				references.set(here+"/"+name+"/a", true)
				reconsider()
				w.wrote("a pod uses it", "create "+path)
				w.publish()
				references.set(here+"/"+name+"/a", false)
				references.forget(true)
				reconsider()
				w.wrote("pods of another virtual node may use it")
				set(w, object, "2")
				w.wrote("it is left as it is")
				references.forget(false)
				reconsider()
				w.rest()
				w.equal("it is known that none does", "", w.value(object))
			})
		})
	}
}

func TestAnnotationsDecideWhateverPodsUse(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(configMap("allowed", "1"))
		w.local.put(configMap("unused", "1"))
		references := &used{names: map[string]bool{}, unknown: true}
		w.local.put(configMap("skipped", "1"))
		w.start(func(o *Options) {
			o.Kinds, o.References = []reflection.Kind{configMapOnly()}, references
			o.Wanted.Set(Wanted{Kinds: map[string]offloadingv1beta1.ReflectorConfig{"configmap": {NumWorkers: 3, Type: offloadingv1beta1.Referenced}}})
		})
		w.wrote("nobody knows")
		edit(w.local, configMap("allowed", ""), func(c *corev1.ConfigMap) {
			c.Annotations = map[string]string{offloadingv1beta1.AllowReflectionAnnotation: ""}
		})
		w.wrote("the user knows", "create ConfigMap/"+there+"/allowed")
		references.forget(false)
		references.set(here+"/configmap/skipped", true)
		if err := w.engine.Reconsider("configmap", ""); err != nil {
			t.Fatal(err)
		}
		w.wrote("a pod uses it", "create ConfigMap/"+there+"/skipped")
		references.forget(true)
		edit(w.local, configMap("skipped", ""), func(c *corev1.ConfigMap) {
			c.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
		})
		w.wrote("it stays at home whatever uses it", "delete ConfigMap/"+there+"/skipped")
	})
}

// Policy Referenced: the certificates of Ingresses cross with those that cross.
func TestCertificatesOfIngresses(t *testing.T) {
	inBubble(t, func(w *world) {
		secrets, _ := reflection.Lookup("secret")
		ingresses, _ := reflection.Lookup("ingress")
		named := func(ingress *networkingv1.Ingress, secret string) *networkingv1.Ingress {
			ingress.Spec.TLS = []networkingv1.IngressTLS{{SecretName: secret}}
			return ingress
		}
		// In any order, as two kinds have workers of their own.
		wrote := func(what string, want ...string) {
			t.Helper()
			w.rest()
			got := slices.DeleteFunc(w.remote.took(false), func(call string) bool { return strings.HasPrefix(call, "probe ") })
			slices.Sort(got)
			slices.Sort(want)
			w.equal(what, want, got)
		}
		for _, name := range []string{"first", "second", "unused"} {
			w.local.put(secret(name, "1"))
		}
		w.local.put(named(ingressObject("front"), "first"))
		w.start(func(o *Options) {
			o.Kinds, o.References = []reflection.Kind{secrets, ingresses}, &used{names: map[string]bool{}}
			o.Wanted.Set(Wanted{Kinds: map[string]offloadingv1beta1.ReflectorConfig{
				"secret":  {NumWorkers: 3, Type: offloadingv1beta1.Referenced},
				"ingress": {NumWorkers: 3, Type: offloadingv1beta1.DenyList},
			}})
		})
		wrote("its certificate crosses", "create Ingress/"+there+"/front", "create Secret/"+there+"/first")
		w.publish()
		edit(w.local, ingressObject("front"), func(i *networkingv1.Ingress) { named(i, "second") })
		wrote("another certificate", "create Secret/"+there+"/second", "delete Secret/"+there+"/first", "patch Ingress/"+there+"/front")
		w.publish()
		w.setConfig("ingress", offloadingv1beta1.ReflectorConfig{NumWorkers: 0, Type: offloadingv1beta1.DenyList})
		wrote("what a kind that is off left there may use it")
		set(w, secret("second", ""), "2")
		wrote("so it is kept in step", "patch Secret/"+there+"/second")
		w.publish()
		set(w, secret("second", ""), "1")
		wrote("as it was", "patch Secret/"+there+"/second")
		w.publish()
		w.setConfig("ingress", offloadingv1beta1.ReflectorConfig{NumWorkers: 3, Type: offloadingv1beta1.AllowList})
		wrote("neither may cross", "delete Ingress/"+there+"/front", "delete Secret/"+there+"/second")
		w.publish()
		edit(w.local, ingressObject("front"), func(i *networkingv1.Ingress) {
			i.Annotations = map[string]string{offloadingv1beta1.AllowReflectionAnnotation: ""}
		})
		wrote("both may", "create Ingress/"+there+"/front", "create Secret/"+there+"/second")
		w.publish()
		w.local.drop(ingressObject("front"))
		wrote("it goes with the Ingress", "delete Ingress/"+there+"/front", "delete Secret/"+there+"/second")
	})
}
