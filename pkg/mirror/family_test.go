package mirror

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// parentKind is a kind that only decides about others: none of its objects cross.
func parentKind() reflection.Kind {
	return reflection.Kind{
		Name: "service", GVK: corev1.SchemeGroupVersion.WithKind("Service"), GVR: corev1.SchemeGroupVersion.WithResource("services"),
		DefaultPolicy: offloadingv1beta1.DenyList, DefaultWorkers: 1,
		NewObject: func() reflection.Object { return &corev1.Service{} },
		NewList:   func() reflection.ObjectList { return &corev1.ServiceList{} },
		Translate: func(reflection.Input) reflection.Result {
			return reflection.Result{Skip: &reflection.Skip{Reason: "Here", Message: "stays at home"}}
		},
		Changes: func(_, _ reflection.Object) []reflection.Change { return nil },
	}
}

// family is an engine with a parent kind and a child kind whose remote objects are of a third one.
func family(o *Options) {
	child, _ := reflection.Lookup("endpointslice")
	o.Kinds = []reflection.Kind{parentKind(), child}
}

func service(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: name}}
}

func endpointSlice(name, parent string, nodes ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: here, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: parent}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i, node := range nodes {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.0.%d", i+1)}, NodeName: &node})
	}
	return s
}

const shadowID = "ShadowEndpointSlice/" + there + "/"

// endpoints counts those of a remote object; -1 stands for none.
func (w *world) endpoints(name string) int {
	found, ok := w.remote.find(&offloadingv1beta1.ShadowEndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: name}}).(*offloadingv1beta1.ShadowEndpointSlice)
	if !ok {
		return -1
	}
	return len(found.Spec.Template.Endpoints)
}

func TestRemoteObjectsOfAnotherKind(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(service("shop"))
		w.start(family)
		slice := w.local.put(endpointSlice("a", "shop", "worker", "worker")).(*discoveryv1.EndpointSlice)
		w.wrote("created at home", "create "+shadowID+"a")
		w.pass(time.Second)
		edit(w.local, slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints = s.Endpoints[:1] })
		w.wrote("changed at home", "patch "+shadowID+"a")
		w.equal("endpoints", 1, w.endpoints("a"))
		w.stop()
		w.remote.took(true)
		w.start(family)
		w.wrote("restart with everything in place")
		shadow := &offloadingv1beta1.ShadowEndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: "a"}}
		edit(w.remote, shadow, func(s *offloadingv1beta1.ShadowEndpointSlice) { s.Spec.Template.Endpoints = nil })
		w.wrote("changed at the provider", "patch "+shadowID+"a")
		edit(w.remote, shadow, func(s *offloadingv1beta1.ShadowEndpointSlice) { s.Spec.Template.AddressType = "IPv6" })
		w.wrote("an immutable field changed", "delete "+shadowID+"a", "create "+shadowID+"a")
		w.local.drop(slice)
		w.wrote("deleted at home", "delete "+shadowID+"a")
		w.equal("problems", []string(nil), reasons(w.engine))
	})
}

func TestChildrenFollowTheirParent(t *testing.T) {
	inBubble(t, func(w *world) {
		w.start(family)
		w.local.put(endpointSlice("a", "shop", "worker"))
		w.local.put(endpointSlice("b", "other", "worker"))
		w.wrote("no parent")
		w.local.put(service("shop"))
		w.wrote("the parent appears", "create "+shadowID+"a")
		edit(w.local, service("shop"), func(s *corev1.Service) {
			s.Annotations = map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
		})
		w.wrote("the parent stays at home", "delete "+shadowID+"a")
		w.equal("Events of what the user did", []string{"a Normal ServiceNotReflected"}, w.events.took())
		edit(w.local, service("shop"), func(s *corev1.Service) { s.Annotations = nil })
		w.wrote("the parent crosses again", "create "+shadowID+"a")
		w.setConfig("service", offloadingv1beta1.ReflectorConfig{NumWorkers: 1, Type: offloadingv1beta1.AllowList})
		w.wrote("the parent's policy turns", "delete "+shadowID+"a")
		w.setConfig("service", offloadingv1beta1.ReflectorConfig{NumWorkers: 1})
		w.wrote("the parent's policy turns back", "create "+shadowID+"a")
		w.events.took()
		w.local.drop(service("shop"))
		w.wrote("the parent goes", "delete "+shadowID+"a")
		w.equal("Events of what Kubernetes does by itself", []string(nil), w.events.took())
	})
}

func TestWhatIsWrongWithAParentIsToldOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		shop := service("shop")
		shop.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		w.local.put(shop)
		w.local.put(endpointSlice("a", "shop", "milan"))
		w.local.put(endpointSlice("b", "other", "worker"))
		w.start(family)
		w.setProvider(reflection.Provider{Nodes: map[string]bool{"milan": true}})
		w.rest()
		told := []string{"shop Warning NoLocalEndpoints"}
		w.equal("Events", told, w.events.took())
		w.local.put(endpointSlice("c", "shop", "milan"))
		w.pass(time.Hour)
		w.equal("Events of what stays as it is", []string(nil), w.events.took())
		home := w.local.put(endpointSlice("d", "shop", "worker")).(*discoveryv1.EndpointSlice)
		w.pass(time.Second)
		w.equal("Events of a pod at home", []string(nil), w.events.took())
		edit(w.local, home, func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil })
		w.pass(time.Second)
		w.equal("Events once it is gone", told, w.events.took())
		edit(w.local, shop, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster })
		w.pass(time.Second)
		edit(w.local, shop, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })
		w.pass(time.Second)
		w.equal("Events of another policy, and this one again", told, w.events.took())
	})
}

func TestTurningTheParentsKindOffRemovesNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(service("shop"))
		w.local.put(endpointSlice("a", "shop", "worker"))
		w.start(family)
		w.wrote("start", "create "+shadowID+"a")
		w.setConfig("service", offloadingv1beta1.ReflectorConfig{})
		w.local.put(endpointSlice("b", "shop", "worker"))
		w.local.drop(service("shop"))
		w.pass(time.Minute)
		w.wrote("the parent's kind is off")
		w.equal("what was there", 1, w.endpoints("a"))
		w.setConfig("service", offloadingv1beta1.ReflectorConfig{NumWorkers: 1})
		w.wrote("it is on again, and the parent is gone", "delete "+shadowID+"a")
	})
}

func TestAStaleParentRemovesNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(service("shop"))
		w.local.put(endpointSlice("a", "shop", "worker"))
		w.start(family)
		w.stop()
		w.remote.took(true)
		// The new engine's caches come from a server that fell behind: it shows no Service.
		w.local.intercept = func(verb, key string) error {
			w.local.lies.Store(verb == "list" && strings.HasPrefix(key, "Service/"))
			return nil
		}
		w.start(family)
		w.pass(time.Minute)
		w.equal("endpoints", 1, w.endpoints("a"))
		w.wrote("a cache without the parent")
	})
}

func TestNoWatchOfChildrenWithoutParents(t *testing.T) {
	inBubble(t, func(w *world) {
		watches := func() (found []string) {
			for _, call := range append(w.local.took(true), w.remote.took(true)...) {
				if strings.HasPrefix(call, "watch ") {
					found = append(found, call)
				}
			}
			slices.Sort(found)
			return found
		}
		w.local.put(endpointSlice("a", "shop", "worker"))
		w.start(family)
		w.equal("watches of an empty namespace", []string{"watch Service/" + here}, watches())
		w.local.put(service("shop"))
		w.rest()
		w.equal("watches once there is a parent", []string{"watch EndpointSlice/" + here, "watch ShadowEndpointSlice/" + there}, watches())
	})
	inBubble(t, func(w *world) {
		left := &offloadingv1beta1.ShadowEndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		w.remote.put(marked(left, "gone"))
		w.start(family)
		w.wrote("what was left at the provider while nobody watched", "delete "+shadowID+"a")
	})
}

// everywhere is the one address by which all are reached.
type everywhere netip.Addr

func (e everywhere) Translate(netip.Addr) (netip.Addr, bool) { return netip.Addr(e), true }

func TestTheProviderChanges(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(service("shop"))
		w.local.put(endpointSlice("a", "shop", "worker", "milan", "milan-2"))
		w.start(family)
		w.equal("endpoints", 3, w.endpoints("a"))
		w.remote.took(true)
		w.setProvider(reflection.Provider{Nodes: map[string]bool{"milan": true}})
		w.wrote("a virtual node", "patch "+shadowID+"a")
		w.equal("endpoints", 2, w.endpoints("a"))
		w.setProvider(reflection.Provider{Nodes: map[string]bool{"milan": true}})
		w.wrote("nothing new")
		w.setProvider(reflection.Provider{Nodes: map[string]bool{"milan": true}, Addresses: everywhere(netip.MustParseAddr("10.70.0.3"))})
		w.wrote("an address gets another one", "patch "+shadowID+"a")
		w.setProvider(reflection.Provider{Nodes: map[string]bool{"milan": true}})
		w.wrote("it is what it was", "patch "+shadowID+"a")
		w.setProvider(reflection.Provider{Nodes: map[string]bool{"milan": true, "milan-2": true, "worker": true}})
		w.wrote("all endpoints are the provider's", "delete "+shadowID+"a")
	})
}

// A burst of endpoints in one slice makes few writes: the first at once, then no more than one each 150 ms.
func TestBurstsOfChangesAreFewWrites(t *testing.T) {
	inBubble(t, func(w *world) {
		w.local.put(service("shop"))
		w.start(family)
		slice := w.local.put(endpointSlice("a", "shop", "worker")).(*discoveryv1.EndpointSlice)
		w.wrote("the first one", "create "+shadowID+"a")
		for i := range 100 {
			edit(w.local, slice, func(s *discoveryv1.EndpointSlice) {
				s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.1.%d", i)}})
			})
			w.pass(3 * time.Millisecond)
		}
		w.pass(200 * time.Millisecond)
		w.equal("endpoints", 101, w.endpoints("a"))
		if writes := len(w.remote.took(false)); writes < 1 || writes > 4 {
			t.Errorf("%d writes for 100 endpoints in 300 ms", writes)
		}
	})
}

// used is what pods use.
type used struct {
	mu      sync.Mutex
	names   map[string]bool
	unknown bool
}

func (u *used) Referenced(namespace, kind, name string) (used, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.names[namespace+"/"+kind+"/"+name], !u.unknown
}

func (u *used) forget(unknown bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.unknown = unknown
}

func (u *used) set(name string, is bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.names[name] = is
}

func TestReferencedObjects(t *testing.T) {
	inBubble(t, func(w *world) {
		references := &used{names: map[string]bool{}}
		kind, _ := reflection.Lookup("configmap")
		w.local.put(configMap("a", "1"))
		w.local.put(configMap("b", "1"))
		w.start(func(o *Options) {
			o.Kinds, o.References = []reflection.Kind{kind}, references
			o.Wanted.Set(Wanted{Kinds: map[string]offloadingv1beta1.ReflectorConfig{"configmap": {NumWorkers: 3, Type: offloadingv1beta1.Referenced}}})
		})
		w.wrote("no pod")
		reconsider := func(names ...string) {
			if err := w.engine.Reconsider("configmap", here, names...); err != nil {
				t.Fatal(err)
			}
		}
		references.set(here+"/configmap/a", true)
		w.wrote("nobody said so")
		reconsider("a", "missing")
		w.wrote("a pod uses one", "create ConfigMap/"+there+"/a")
		references.set(here+"/configmap/b", true)
		reconsider()
		w.wrote("and the other", "create ConfigMap/"+there+"/b")
		references.set(here+"/configmap/a", false)
		references.forget(true)
		reconsider()
		w.wrote("nobody knows")
		references.forget(false)
		reconsider("a")
		w.wrote("no longer", "delete ConfigMap/"+there+"/a")
		if err := w.engine.Reconsider("configmap", "elsewhere", "a"); err != nil {
			t.Error(err)
		}
		if err := w.engine.Reconsider("pod", here, "a"); err == nil {
			t.Error("an unknown kind was reconsidered")
		}
	})
}

func configMapOnly() reflection.Kind {
	kind, _ := reflection.Lookup("configmap")
	return kind
}

// What leads to an object by name does not cross while that name is somebody else's at the provider, whichever is looked at first: neither made
// nor changed. It does once the name is free.
func TestWhatLeadsToSomebodyElsesStaysAtHome(t *testing.T) {
	kind := func(name string) reflection.Kind { k, _ := reflection.Lookup(name); return k }
	backend := &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "shop"}}
	front := func(spec networkingv1.IngressSpec) *networkingv1.Ingress {
		ingress := ingressObject("front")
		ingress.Spec = spec
		return ingress
	}
	rule := networkingv1.IngressRule{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Backend: *backend}}}}}
	for name, tc := range map[string]struct {
		leads  reflection.Object
		theirs reflection.Object
	}{
		"an Ingress by its default backend": {leads: front(networkingv1.IngressSpec{DefaultBackend: backend}), theirs: service("shop")},
		"an Ingress by a rule":              {leads: front(networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{rule}}), theirs: service("shop")},
		"an Ingress by its certificate":     {leads: front(networkingv1.IngressSpec{TLS: []networkingv1.IngressTLS{{SecretName: "cert"}}}), theirs: secret("cert", "theirs")},
		"an EndpointSlice":                  {leads: endpointSlice("shop-1", "shop", "n1"), theirs: service("shop")},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				there := func() bool {
					for _, call := range w.remote.took(false) {
						if verb, path, _ := strings.Cut(call, " "); (verb == "create" || verb == "patch") && strings.HasSuffix(path, "/"+tc.leads.GetName()) {
							return true
						}
					}
					return false
				}
				theirs := at(tc.theirs)
				w.remote.put(theirs)
				w.local.put(service("shop"))
				w.local.put(secret("cert", "ours"))
				w.local.put(tc.leads)
				w.publish()
				w.start(func(o *Options) {
					o.Kinds = []reflection.Kind{kind("secret"), kind("service"), kind("endpointslice"), kind("ingress")}
				})
				w.pass(5 * time.Minute)
				if there() {
					t.Error("it crossed")
				}
				told := w.events.took()
				if !slices.Contains(told, tc.leads.GetName()+" Warning NameConflict") {
					t.Errorf("told: %v", told)
				}
				w.remote.drop(theirs)
				w.pass(5 * time.Minute)
				if !there() {
					t.Errorf("it did not cross once the name was free: %v", w.engine.Problems())
				}
				w.publish()
				w.pass(time.Minute)
				w.equal("problems", []string(nil), reasons(w.engine))
			})
		})
	}
}
