package mirror

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// forcedService is a Service whose node port is wanted at the provider, too.
func forcedService(port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "a", Annotations: map[string]string{offloadingv1beta1.ForceRemoteNodePortAnnotation: "true"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}},
	}
}

// TestWhatIsRefusedIsGivenUp covers D6: a Service whose node port is taken at the provider crosses without it.
func TestWhatIsRefusedIsGivenUp(t *testing.T) {
	inBubble(t, func(w *world) {
		refusals := 0
		w.remote.intercept = func(verb, key string) error {
			if key != "Service/"+there+"/a" || verb != "create" && verb != "patch" || refusals > 0 {
				return nil
			}
			refusals++
			return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "a", field.ErrorList{
				field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), 30080, "provided port is already allocated")})
		}
		w.local.put(forcedService(30080))
		w.start(func(o *Options) { o.Kinds = []reflection.Kind{kindNamed(t, "service")} })
		create := "create Service/" + there + "/a"
		w.wrote("a refused port", create, create)
		remote, crossed := w.remote.find(at(forcedService(0))).(*corev1.Service)
		if !crossed || remote.Spec.Ports[0].NodePort != 0 {
			t.Fatalf("at the provider: %+v", remote)
		}
		w.equal("events", []string{"a Warning " + offloadingv1beta1.ReasonPartiallyReflected}, w.events.took())
		// Somebody else's change does not have the refused port asked for again.
		theirs := remote.DeepCopy()
		theirs.Labels["theirs"] = "1"
		w.remote.put(theirs)
		w.wrote("another's change")
		// The user's does.
		w.local.put(forcedService(30081))
		w.wrote("another port", "patch Service/"+there+"/a")
		if remote := w.remote.find(at(forcedService(0))).(*corev1.Service); remote.Spec.Ports[0].NodePort != 30081 {
			t.Errorf("node port %d", remote.Spec.Ports[0].NodePort)
		}
	})
}

// TestWhatIsRefusedIsToldOnce covers D6: whoever starts asks for the port again, because it may be free now. As long as it is not,
// nothing is written and nothing is told; another port is told again, and one that is free takes the note away.
func TestWhatIsRefusedIsToldOnce(t *testing.T) {
	const key = "Service/" + there + "/a"
	inBubble(t, func(w *world) {
		taken := true
		w.remote.admit = allocate
		w.remote.refuse = func(o reflection.Object) error {
			if s, is := o.(*corev1.Service); !is || !taken || s.Spec.Ports[0].NodePort >= 32000 {
				return nil
			}
			return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "a", field.ErrorList{
				field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), 30080, "provided port is already allocated")})
		}
		only := func(o *Options) { o.Kinds = []reflection.Kind{kindNamed(t, "service")} }
		w.local.put(forcedService(30080))
		w.start(only)
		w.wrote("a refused port", "create "+key, "create "+key)
		told := []string{"a Warning " + offloadingv1beta1.ReasonPartiallyReflected}
		w.equal("Events", told, w.events.took())
		version := w.remote.find(at(forcedService(0))).GetResourceVersion()
		for range 2 {
			w.stop()
			w.start(only)
			w.pass(time.Hour)
			w.wrote("a restart asks in vain", "patch "+key)
			w.equal("Events of a restart", 0, len(w.events.took()))
			w.equal("version", version, w.remote.find(at(forcedService(0))).GetResourceVersion())
		}
		// Another change of the Service is no news of the port, but another port is.
		edit(w.local, forcedService(0), func(s *corev1.Service) { s.Labels = map[string]string{"tier": "front"} })
		w.rest()
		w.equal("Events of a label", 0, len(w.events.took()))
		edit(w.local, forcedService(0), func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30081 })
		w.rest()
		w.equal("Events of another port", told, w.events.took())
		taken = false
		w.stop()
		w.start(only)
		live := w.remote.find(at(forcedService(0))).(*corev1.Service)
		w.equal("the free port", int32(30081), live.Spec.Ports[0].NodePort)
		w.equal("the note", "", reflection.RefusedPartOf(live))
		w.equal("labels", "front", live.Labels["tier"])
	})
}

// allocate gives a Service a node port, as an API server does.
func allocate(o reflection.Object) {
	if s, is := o.(*corev1.Service); is && s.Spec.Ports[0].NodePort == 0 {
		s.Spec.Ports[0].NodePort = 32000
	}
}

func kindNamed(t *testing.T, name string) reflection.Kind {
	kind, known := reflection.Lookup(name)
	if !known {
		t.Fatalf("no kind %q", name)
	}
	return kind
}

// TestFamiliesThatTheProviderLacks covers D7: a Service of IPv6 alone crosses to a provider without, which is told once. One that is
// there already, with IPv4, stays as it is, and is replaced once the provider has IPv6.
func TestFamiliesThatTheProviderLacks(t *testing.T) {
	const key = "Service/" + there + "/a"
	v4, v6 := []corev1.IPFamily{corev1.IPv4Protocol}, []corev1.IPFamily{corev1.IPv6Protocol}
	for name, before := range map[string][]corev1.IPFamily{"a new one": nil, "one that is there": v4} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				only := func(o *Options) { o.Kinds = []reflection.Kind{kindNamed(t, "service")} }
				object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "a"}, Spec: corev1.ServiceSpec{IPFamilies: before}}
				lacking := true
				w.remote.admit = func(o reflection.Object) {
					if s, is := o.(*corev1.Service); is && len(s.Spec.IPFamilies) == 0 {
						s.Spec.IPFamilies = v4
					}
				}
				w.remote.refuse = func(o reflection.Object) error {
					if s, is := o.(*corev1.Service); !is || !lacking || s.Spec.IPFamilies[0] == corev1.IPv4Protocol {
						return nil
					}
					return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "a", field.ErrorList{
						field.Invalid(field.NewPath("spec", "ipFamilies").Index(0), "IPv6", "not configured on this cluster")})
				}
				if before != nil {
					w.local.put(object)
					w.start(only)
					w.stop()
				}
				object.Spec.IPFamilies = v6
				object.UID = ""
				w.local.put(object)
				w.start(only)
				w.pass(time.Minute)
				live := w.remote.find(at(object))
				if live == nil {
					t.Fatal("it did not cross")
				}
				told := `Reflected to cluster "milan" in part, it has no addresses of family IPv6: `
				w.equal("told", 1, len(w.events.saying(told)))
				w.equal("events", []string{"a Warning " + offloadingv1beta1.ReasonPartiallyReflected}, w.events.took())
				w.remote.took(true)
				for range 2 {
					w.stop()
					w.start(only)
					w.pass(time.Hour)
					w.wrote("a restart asks in vain")
					w.equal("version", live.GetResourceVersion(), w.remote.find(at(object)).GetResourceVersion())
				}
				w.equal("events of restarts", []string(nil), w.events.took())
				lacking = false
				w.stop()
				w.start(only)
				w.wrote("the provider has IPv6 now", "delete "+key, "create "+key)
				w.equal("families", v6, w.remote.find(at(object)).(*corev1.Service).Spec.IPFamilies)
			})
		})
	}
}
