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

// demanding is an engine with Ingresses, which are watched once their namespace has a Service.
func demanding(o *Options) {
	ingresses, _ := reflection.Lookup("ingress")
	o.Kinds = []reflection.Kind{parentKind(), ingresses}
}

// watches are the watches that were opened at home since the last time, and forgets all other calls.
func (w *world) watches() (opened []string) {
	w.rest()
	for _, call := range w.local.took(true) {
		if strings.HasPrefix(call, "watch ") {
			opened = append(opened, strings.TrimSuffix(strings.TrimPrefix(call, "watch "), "/"+here))
		}
	}
	slices.Sort(opened)
	return opened
}

func TestIngressesAreWatchedOnceThereIsAService(t *testing.T) {
	const web = "Ingress/" + there + "/web"
	inBubble(t, func(w *world) {
		ingress := w.local.put(ingressObject("web")).(*networkingv1.Ingress)
		w.start(demanding)
		w.equal("watches without a Service", []string{"Service"}, w.watches())
		w.wrote("no Service")
		w.local.put(service("shop"))
		w.wrote("a Service", "create "+web)
		w.local.drop(service("shop"))
		w.wrote("no Service any more: the copy is no Service's")
		edit(w.local, ingress, func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = "b.example.org" })
		w.wrote("it is kept in step", "patch "+web)
		w.stop()
		w.remote.took(true)
		w.local.took(true)
		w.start(demanding)
		w.equal("watches without a Service while there is a copy", []string{"Ingress", "Service"}, w.watches())
		w.wrote("restart with everything in place")
		w.local.drop(ingress)
		w.wrote("deleted at home", "delete "+web)
	})
}

func TestIngressesLeftAtTheProviderGo(t *testing.T) {
	const left = "delete Ingress/" + there + "/left"
	inBubble(t, func(w *world) {
		w.remote.put(marked(&networkingv1.Ingress{ObjectMeta: ingressObject("left").ObjectMeta}, "gone"))
		w.start(demanding)
		w.wrote("no Service", left)
	})
	inBubble(t, func(w *world) {
		w.remote.put(marked(&networkingv1.Ingress{ObjectMeta: ingressObject("left").ObjectMeta}, "gone"))
		w.peer.set(func(p *fakePeer) { p.connected = false })
		w.remote.setDown(errors.New("away"))
		w.start(demanding)
		w.pass(time.Hour)
		w.equal("watches while the provider is away", []string{"Service"}, w.watches())
		w.wrote("the provider is away")
		w.remote.setDown(nil)
		w.peer.set(func(p *fakePeer) { p.connected = true })
		w.wrote("it is back", left)
	})
}

// Where no Service is heard of, or where a status may have to be taken back, Ingresses are watched right away.
func TestIngressesAreWatchedWithoutService(t *testing.T) {
	off := offloadingv1beta1.ReflectorConfig{}
	back := offloadingv1beta1.ReflectorConfig{NumWorkers: 3, StatusBack: true}
	both := []string{"Ingress", "Service"}
	for name, tc := range map[string]struct {
		before, after map[string]offloadingv1beta1.ReflectorConfig
		start, change []string
	}{
		"Services are off":                   {before: map[string]offloadingv1beta1.ReflectorConfig{"service": off}, start: []string{"Ingress"}},
		"Services are turned off":            {after: map[string]offloadingv1beta1.ReflectorConfig{"service": off}, start: []string{"Service"}, change: []string{"Ingress"}},
		"addresses come back":                {before: map[string]offloadingv1beta1.ReflectorConfig{"ingress": back}, start: both},
		"addresses are to come back":         {after: map[string]offloadingv1beta1.ReflectorConfig{"ingress": back}, start: []string{"Service"}, change: []string{"Ingress"}},
		"Ingresses are off":                  {before: map[string]offloadingv1beta1.ReflectorConfig{"ingress": off}, start: []string{"Service"}},
		"the policy of Ingresses is another": {after: map[string]offloadingv1beta1.ReflectorConfig{"ingress": {NumWorkers: 1, Type: offloadingv1beta1.AllowList}}, start: []string{"Service"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.start(demanding, func(o *Options) { o.Wanted.Set(Wanted{Kinds: tc.before}) })
				w.equal("watches at the start", tc.start, w.watches())
				for kind, config := range tc.after {
					w.setConfig(kind, config)
				}
				w.equal("watches after the change", tc.change, w.watches())
			})
		})
	}
}

// What an Ingress uses is not removed before it is known whether there is one.
func TestCertificatesWhileIngressesAreNotWatched(t *testing.T) {
	start := func(w *world) {
		w.start(demanding, func(o *Options) {
			secrets, _ := reflection.Lookup("secret")
			o.Kinds = append(o.Kinds, secrets)
			o.References = &used{names: map[string]bool{}}
			o.Wanted.Set(Wanted{Kinds: map[string]offloadingv1beta1.ReflectorConfig{"secret": {NumWorkers: 3, Type: offloadingv1beta1.Referenced}}})
		})
	}
	stands := func(w *world) {
		local := w.local.put(secret("certificate", "1"))
		w.remote.put(marked(secret("certificate", "1"), string(local.GetUID())))
		w.publish()
	}
	inBubble(t, func(w *world) {
		stands(w)
		start(w)
		w.equal("watches", []string{"Secret", "Service"}, w.watches())
		w.equal("no Ingress crosses", "", w.value(secret("certificate", "")))
	})
	inBubble(t, func(w *world) {
		stands(w)
		refuse := true
		w.remote.intercept = func(verb, key string) error {
			if refuse && verb == "list" && strings.HasPrefix(key, "Ingress/") {
				return errors.New("nobody says")
			}
			return nil
		}
		start(w)
		w.pass(time.Hour)
		w.equal("nobody knows whether an Ingress crossed", "1", w.value(secret("certificate", "")))
		w.remote.mu.Lock()
		refuse = false
		w.remote.mu.Unlock()
		w.pass(2 * time.Minute)
		w.equal("none did", "", w.value(secret("certificate", "")))
	})
	inBubble(t, func(w *world) {
		stands(w)
		ingress := ingressObject("web")
		ingress.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "certificate"}}
		local := w.local.put(ingress)
		w.remote.put(marked(ingress.DeepCopy(), string(local.GetUID())))
		start(w)
		if slices.Contains(w.remote.took(false), "delete Secret/"+there+"/certificate") {
			t.Error("the certificate of an Ingress that crossed before was deleted")
		}
		w.equal("the certificate", "1", w.value(secret("certificate", "")))
	})
}
