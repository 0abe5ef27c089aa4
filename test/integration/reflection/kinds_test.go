package reflection

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// specimen is what the rows below do with one kind.
type specimen struct {
	// make returns an object, without namespace.
	make func(name string) reflection.Object
	// there returns an object at the provider, without namespace; nil if it is like one at home.
	there func(name string) reflection.Object
	// update is what the user does at home, drift what somebody does at the provider.
	update, drift func(reflection.Object)
	// fill adds content to an object of any content; only for kinds that hold data.
	fill func(reflection.Object)
	// fight is what an admission policy of the provider does.
	fight fight
	// quota is the resource that a ResourceQuota counts.
	quota corev1.ResourceName
	// immutable lists changes at home, of an object prepared first, that the provider's API server refuses.
	immutable map[string]transition
}

// remote returns an object at the provider.
func (s specimen) remote(name string) reflection.Object {
	if s.there != nil {
		return s.there(name)
	}
	return s.make(name)
}

// transition is a change in steps that the API server at home accepts.
type transition struct {
	from  func(reflection.Object)
	steps []func(reflection.Object)
	// recreate says that the user has to delete and make the object anew.
	recreate bool
}

// of makes a change of one type one of any object.
func of[T reflection.Object](change func(T)) func(reflection.Object) {
	return func(o reflection.Object) { change(o.(T)) }
}

var meta = func(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "a"}}
}

var specimens = map[string]specimen{
	"configmap": {
		make: func(name string) reflection.Object {
			return &corev1.ConfigMap{ObjectMeta: meta(name), Data: map[string]string{"key": "1"}}
		},
		update: of(func(c *corev1.ConfigMap) { c.Data["key"] += "2" }),
		drift:  of(func(c *corev1.ConfigMap) { c.Data["key"] = "drift" }),
		quota:  "count/configmaps",
		fill: of(func(c *corev1.ConfigMap) {
			if c.Data == nil {
				c.Data = map[string]string{}
			}
			c.Data["added"] = "\u2029"
		}),
		fight: fight{"/data/key", "fought", "field data"},
		immutable: map[string]transition{"an immutable one": {
			from: of(func(c *corev1.ConfigMap) { c.Immutable = ptr.To(true) }), recreate: true,
		}},
	},
	"secret": {
		make: func(name string) reflection.Object {
			return &corev1.Secret{ObjectMeta: meta(name), Data: map[string][]byte{"key": []byte("1")}}
		},
		update: of(func(s *corev1.Secret) { s.Data["key"] = append(s.Data["key"], '2') }),
		drift:  of(func(s *corev1.Secret) { s.Data["key"] = []byte("drift") }),
		quota:  "count/secrets",
		fill: of(func(s *corev1.Secret) {
			if s.Data == nil {
				s.Data = map[string][]byte{}
			}
			s.Data["added"] = []byte{0xff}
		}),
		// The value is "fought" in base64. Of what cannot be read nobody knows the field.
		fight: fight{"/data/key", "Zm91Z2h0", "the content"},
		immutable: map[string]transition{"another type": {
			from: of(func(s *corev1.Secret) { s.Type = "example.org/a" }), recreate: true,
		}},
	},
	"service": {
		make: func(name string) reflection.Object {
			return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "a"}, Ports: []corev1.ServicePort{{Name: "a", Port: 80}}}}
		},
		update: of(func(s *corev1.Service) { s.Spec.Selector["more"] += "2" }),
		drift:  of(func(s *corev1.Service) { s.Spec.Selector["app"] = "drift" }),
		quota:  "count/services",
		fight:  fightOverLabel,
		immutable: map[string]transition{
			"becoming headless": {steps: []func(reflection.Object){of(toExternalName), of(func(s *corev1.Service) {
				s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP = corev1.ServiceTypeClusterIP, "", corev1.ClusterIPNone
			})}},
			"no longer headless": {
				from: of(func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }),
				steps: []func(reflection.Object){of(toExternalName), of(func(s *corev1.Service) {
					s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeClusterIP, ""
				})},
			},
		},
	},
	"ingress": {
		make: func(name string) reflection.Object {
			return &networkingv1.Ingress{ObjectMeta: meta(name), Spec: networkingv1.IngressSpec{
				IngressClassName: ptr.To("local"), Rules: []networkingv1.IngressRule{{Host: "a.example.org"}}}}
		},
		update: of(func(i *networkingv1.Ingress) {
			i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: "b.example.org"})
		}),
		drift: of(func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = "drift.example.org" }),
		quota: "count/ingresses.networking.k8s.io",
		fight: fightOverLabel,
	},
	"networkpolicy": {
		make: func(name string) reflection.Object {
			return &networkingv1.NetworkPolicy{ObjectMeta: meta(name), Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}}
		},
		update: of(func(n *networkingv1.NetworkPolicy) {
			n.Spec.Ingress = append(n.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{})
		}),
		drift: of(func(n *networkingv1.NetworkPolicy) { n.Spec.PodSelector.MatchLabels["app"] = "drift" }),
		quota: "count/networkpolicies.networking.k8s.io",
		fight: fightOverLabel,
	},
	"endpointslice": {
		make: func(name string) reflection.Object {
			object := &discoveryv1.EndpointSlice{ObjectMeta: meta(name), AddressType: discoveryv1.AddressTypeIPv4,
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}}}
			object.Labels[discoveryv1.LabelServiceName] = parentName
			return object
		},
		there: func(name string) reflection.Object {
			return &offloadingv1beta1.ShadowEndpointSlice{ObjectMeta: meta(name), Spec: offloadingv1beta1.ShadowEndpointSliceSpec{
				Template: offloadingv1beta1.EndpointSliceTemplate{AddressType: discoveryv1.AddressTypeIPv4,
					Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.2"}}}}}}
		},
		update: of(func(e *discoveryv1.EndpointSlice) {
			e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.3"}})
		}),
		drift: of(func(e *offloadingv1beta1.ShadowEndpointSlice) {
			e.Spec.Template.Endpoints[0].Addresses[0] = "192.0.2.4"
		}),
		quota: "count/shadowendpointslices.offloading.liqo.io",
		fight: fightOverLabel,
	},
}

func toExternalName(s *corev1.Service) {
	s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ServiceTypeExternalName, "a.example.org", "", nil
}

// rows are what happens to an object, of any kind.
var rows = map[string]func(w *world, s specimen){
	"create, update, delete: one write each": func(w *world, s specimen) {
		start := env.Milan.Recorder.Now(w)
		w.put(s.make("plain"))
		w.converged("plain")
		w.editLocal("plain", s.update)
		w.converged("plain")
		w.deleteFrom(env.Rome, w.namespace, "plain")
		w.gone("plain")
		want := []string{"create", "patch", "delete"}
		w.wrote(start, "plain", want...)
		w.restart()
		w.put(s.make("plain-after"))
		w.converged("plain-after")
		w.wrote(start, "plain", want...)
	},
	"annotate": func(w *world, s specimen) {
		w.put(s.make("annotated"))
		w.converged("annotated")
		w.editLocal("annotated", func(o reflection.Object) {
			o.SetAnnotations(map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""})
		})
		w.gone("annotated")
		w.editLocal("annotated", func(o reflection.Object) { o.SetAnnotations(nil) })
		w.converged("annotated")
	},
	"C1: deleted at home while disconnected": func(w *world, s specimen) {
		w.put(s.make("c1"))
		w.converged("c1")
		w.link.connect(false)
		w.deleteFrom(env.Rome, w.namespace, "c1")
		w.link.connect(true)
		w.gone("c1")
	},
	"C2: made anew at home while disconnected": func(w *world, s specimen) {
		w.put(s.make("c2"))
		before := w.converged("c2")
		w.link.connect(false)
		w.deleteFrom(env.Rome, w.namespace, "c2")
		w.put(s.make("c2"))
		w.link.connect(true)
		if after := w.converged("c2"); after.GetUID() == before.GetUID() {
			w.Error("the new object took the old one's place")
		}
	},
	"C3: the namespace deleted at home, stuck, and made anew":         namespaceDeletedAtHome,
	"C3: the namespace deleted at the provider, stuck, and made anew": namespaceDeletedAtTheProvider,
	"C4: deleted at the provider": func(w *world, s specimen) {
		w.put(s.make("c4"))
		w.converged("c4")
		w.deleteFrom(env.Milan, w.twin, "c4")
		w.converged("c4")
	},
	"C5: changed at the provider": func(w *world, s specimen) {
		w.put(s.make("c5"))
		w.converged("c5")
		start := env.Milan.Recorder.Now(w)
		w.editRemote("c5", func(o reflection.Object) {
			s.drift(o)
			o.GetLabels()["theirs"] = "stays"
		})
		if remote := w.converged("c5"); remote.GetLabels()["theirs"] != "stays" {
			w.Error("a label of the provider is gone")
		}
		if !w.kind.WriteOnly() { // Of what cannot be read nobody knows yet that it was in step.
			w.told(offloadingv1beta1.ReasonRemoteChangeReverted, "it was put back")
		}
		w.wrote(start, "c5", "patch")
	},
	"C5: a controller of the provider fights":   fightingController,
	"C5: rewritten by the provider's admission": fought,
	"D2: annotations at the limit":              annotationsAtTheLimit,
	"C6: a foreign object of the same name": func(w *world, s specimen) {
		foreign := s.remote("c6")
		foreign.SetNamespace(w.twin)
		fixture.Must(w, "creating a foreign object", env.Milan.Client.Create(w.Context(), foreign))
		w.put(s.make("c6"))
		w.told("c6", offloadingv1beta1.ReasonNameConflict)
		if seen := w.remote(w.Context(), "c6"); seen == nil || seen.GetResourceVersion() != foreign.GetResourceVersion() {
			w.Error("the foreign object was touched")
		}
		w.deleteFrom(env.Milan, w.twin, "c6")
		w.converged("c6") // By itself: nobody touches the object at home.
	},
	"a restart writes nothing": func(w *world, s specimen) {
		w.put(s.make("quiet"))
		w.converged("quiet")
		start := env.Milan.Recorder.Now(w)
		w.restart()
		w.put(s.make("quiet-after"))
		w.converged("quiet-after")
		if writes := w.writes(start, "quiet"); len(writes) > 0 {
			w.Errorf("written again: %v", writes)
		}
	},
	"D8: refused, in the provider's own words": func(w *world, s specimen) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: w.twin},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{s.quota: resource.MustParse("0")}}}
		fixture.Must(w, "creating a ResourceQuota", env.Milan.Client.Create(w.Context(), quota))
		w.refuses(s, quota)
		w.put(s.make("refused"))
		w.told(offloadingv1beta1.ReasonFailedReflection, "exceeded quota: none")
		fixture.Must(w, "lifting the ResourceQuota", env.Milan.Client.Delete(w.Context(), quota))
		w.refuses(s, nil)
		w.converged("refused") // By itself, too.
	},
	"D8: refused by a policy that gives no reason": refusedByPolicy,
}

// refuses waits until the provider takes no more objects of the kind because of a quota, or takes them again (nil).
func (w *world) refuses(s specimen, quota *corev1.ResourceQuota) {
	w.Helper()
	pods := int64(0)
	fixture.Await(w, 3*fixture.Patience, "the provider's ResourceQuota to be effective", func(ctx context.Context) (bool, string) {
		probe := s.remote("probe")
		probe.SetNamespace(w.twin)
		err := env.Milan.Client.Create(ctx, probe, client.DryRunAll)
		if quota == nil || err == nil {
			return (err != nil) == (quota != nil), fmt.Sprint(err)
		}
		if strings.Contains(err.Error(), "status unknown") {
			// Kubernetes' quota controller looks for new types every 30 s, and counts again when a limit changes.
			pods++
			before := quota.DeepCopy()
			quota.Spec.Hard[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
			fixture.Must(w, "changing a ResourceQuota", env.Milan.Client.Patch(ctx, quota, client.MergeFrom(before)))
		}
		return strings.Contains(err.Error(), "exceeded quota"), err.Error()
	})
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for kind, s := range specimens {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for row, check := range rows {
				t.Run(row, func(t *testing.T) {
					t.Parallel()
					check(newWorld(t, kind), s)
				})
			}
			for name, change := range s.immutable {
				t.Run("D5: "+name, func(t *testing.T) {
					t.Parallel()
					immutable(newWorld(t, kind), s, change)
				})
			}
		})
	}
}

// immutable makes a change while disconnected that the provider's API server does not make.
func immutable(w *world, s specimen, change transition) {
	object := s.make("d5")
	if change.from != nil {
		change.from(object)
	}
	w.put(object)
	before := w.converged("d5")
	w.link.connect(false)
	if change.recreate {
		w.deleteFrom(env.Rome, w.namespace, "d5")
		w.put(s.make("d5"))
	}
	for _, step := range change.steps {
		w.editLocal("d5", step)
	}
	if len(change.steps) > 1 {
		w.restart() // One that runs may see, and make, the steps between, each of which is no more than a change.
	}
	w.link.connect(true)
	if after := w.converged("d5"); after.GetUID() == before.GetUID() {
		w.Error("it was changed in place")
	}
}

func TestEveryKindHasASpecimen(t *testing.T) {
	t.Parallel()
	for _, kind := range reflection.Kinds() {
		if _, there := specimens[kind.Name]; !there {
			t.Errorf("kind %s is not tested", kind.Name)
		}
	}
}
