package reflection

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// service is one of the twin, as it is now; nil if there is none.
func (w *world) service(ctx context.Context, name string) *corev1.Service {
	service, _ := w.remote(ctx, name).(*corev1.Service)
	return service
}

// crossed waits until a Service of the twin is as it has to be, and returns it.
func (w *world) crossed(name, what string, is func(*corev1.Service) bool) *corev1.Service {
	w.Helper()
	var remote *corev1.Service
	fixture.Await(w, fixture.Patience, "the Service to cross "+what, func(ctx context.Context) (bool, string) {
		remote = w.service(ctx, name)
		return remote != nil && is(remote), fmt.Sprintf("%+v\n%s", remote, w.events.all())
	})
	return remote
}

// rests restarts the engine, which neither writes an object nor tells what was told, so many times in all.
func (w *world) rests(name string, times int) {
	w.Helper()
	w.mark("before")
	start := env.Milan.Recorder.Now(w)
	w.restart()
	w.mark("after")
	if writes := w.writes(start, name); len(writes) > 0 {
		w.Errorf("writes after a restart: %v", writes)
	}
	if told := strings.Count(w.events.all(), offloadingv1beta1.ReasonPartiallyReflected); told != times {
		w.Errorf("it is told %d times, want %d: %s", told, times, w.events.all())
	}
}

// consumed makes a Service of another consumer in a twin of its own, by that consumer's rights.
func consumed(w *world, service *corev1.Service) *corev1.Service {
	w.Helper()
	const other = "turin"
	twin := fixture.Unique("theirs")
	for _, object := range fixture.TwinNamespace(twin, other) {
		fixture.Must(w, "creating "+object.GetName()+" at the provider", env.Milan.Client.Create(w.Context(), object))
	}
	wanted := w.kind.Translate(reflection.Input{Local: service, Home: other, Remote: provider, RemoteNamespace: twin}).Apply.(*corev1.Service)
	user := env.Milan.Slice(w, other, sliceName)
	fixture.Await(w, fixture.Patience, "another consumer's Service", func(ctx context.Context) (bool, string) {
		err := user.Create(ctx, wanted)
		return err == nil, fmt.Sprint(err)
	})
	return wanted
}

func forced(name string, port int32) *corev1.Service {
	service := specimens["service"].make(name).(*corev1.Service)
	service.Spec.Type, service.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, port
	service.Annotations = map[string]string{offloadingv1beta1.ForceRemoteNodePortAnnotation: "true"}
	return service
}

// Node ports that tests force, each its own: API servers choose none of the lowest 86 of such ranges by themselves, so that no other test
// has them.
const (
	freePort  = 30010
	takenPort = 30020
	// strangePort is in the range of rome alone.
	strangePort = 29991
)

func TestD6ForcedNodePort(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "service")
	free := forced("free", freePort)
	w.put(free)
	if remote := w.converged("free").(*corev1.Service); remote.Spec.Ports[0].NodePort != free.Spec.Ports[0].NodePort {
		t.Errorf("node port %d, want %d", remote.Spec.Ports[0].NodePort, free.Spec.Ports[0].NodePort)
	}
	w.rests("free", 0)
}

// D6: a node port that cannot be had at the provider, because another consumer has it or it lies outside of the range there, becomes
// one that the provider chooses. The user reads why, once, and gets the wanted one when it can be had, or does without.
func TestD6NodePortsThatCannotBeHad(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		port  int32
		taken bool
		words string
	}{
		"taken by another consumer": {takenPort, true, "provided port is already allocated"},
		"outside of the range":      {strangePort, false, "provided port is not in the valid range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "service")
			w.link.connect(false)
			local := forced("web", tc.port)
			w.put(local)
			wanted := local.Spec.Ports[0].NodePort
			var theirs *corev1.Service
			if tc.taken {
				theirs = consumed(w, forced("theirs", wanted))
			}
			w.link.connect(true)
			w.told(offloadingv1beta1.ReasonPartiallyReflected, tc.words, fmt.Sprint(wanted))
			w.crossed("web", "with another node port", func(s *corev1.Service) bool {
				return s.Spec.Type == corev1.ServiceTypeNodePort && s.Spec.Ports[0].NodePort != 0 && s.Spec.Ports[0].NodePort != wanted
			})
			w.rests("web", 1)
			if tc.taken {
				fixture.Must(t, "freeing the node port", env.Milan.Client.Delete(t.Context(), theirs))
			} else {
				w.editLocal("web", of(func(s *corev1.Service) { delete(s.Annotations, offloadingv1beta1.ForceRemoteNodePortAnnotation) }))
			}
			w.editLocal("web", func(o reflection.Object) { o.GetLabels()["touched"] = "true" })
			w.converged("web")
		})
	}
}

// D6: the address of a load balancer is the provider's to choose: one that is asked for at home, which another consumer has there,
// is not asked for there, so that it keeps nothing from working. What the provider chooses stays.
func TestD6LoadBalancerAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "service")
	balancer := func(name string) *corev1.Service {
		service := specimens["service"].make(name).(*corev1.Service)
		service.Spec.Type, service.Spec.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, "192.0.2.10"
		return service
	}
	give := func(service *corev1.Service, spec, status string) {
		t.Helper()
		for sub, patch := range map[string]string{"": `{"spec":{"loadBalancerIP":"` + spec + `"}}`,
			"status": `{"status":{"loadBalancer":{"ingress":[{"ip":"` + status + `"}]}}}`} {
			raw := client.RawPatch("application/merge-patch+json", []byte(patch))
			err := env.Milan.Client.Patch(t.Context(), service, raw)
			if sub != "" {
				err = env.Milan.Client.SubResource(sub).Patch(t.Context(), service, raw)
			}
			fixture.Must(t, "giving a load balancer its address", err)
		}
	}
	give(consumed(w, balancer("theirs")), "192.0.2.10", "192.0.2.10")
	w.put(balancer("web"))
	remote := w.converged("web").(*corev1.Service)
	if remote.Spec.LoadBalancerIP != "" {
		t.Errorf("address %s is asked for", remote.Spec.LoadBalancerIP)
	}
	give(remote.DeepCopy(), "192.0.2.11", "192.0.2.11")
	w.rests("web", 0)
	w.editLocal("web", specimens["service"].update)
	remote = w.converged("web").(*corev1.Service)
	if given := remote.Status.LoadBalancer.Ingress; remote.Spec.LoadBalancerIP != "192.0.2.11" || len(given) != 1 || given[0].IP != "192.0.2.11" {
		t.Errorf("the provider's choice became %q, %v", remote.Spec.LoadBalancerIP, given)
	}
}

// D7: IP families that the provider does not have are given up. The Service works with what there is, and the user reads that, once.
func TestD7FamiliesThatAreNotThere(t *testing.T) {
	t.Parallel()
	const oneFamily, noIPv6 = "it has addresses of one IP family alone", "it has no addresses of family IPv6"
	policy := func(p corev1.IPFamilyPolicy, more ...func(*corev1.Service)) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.IPFamilyPolicy = &p
			for _, change := range more {
				change(s)
			}
		}
	}
	headless := func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }
	const single, prefer, require = corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	for name, tc := range map[string]struct {
		make   func(*corev1.Service)
		atHome int
		told   string
		want   corev1.IPFamilyPolicy
	}{
		"both required":           {policy(require), 2, oneFamily, prefer},
		"both required, headless": {policy(require, headless), 2, oneFamily, prefer},
		"both preferred":          {policy(prefer), 2, "", prefer},
		"IPv6 alone":              {policy(single, func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{"IPv6"} }), 1, noIPv6, single},
		"IPv4 alone":              {policy(single), 1, "", single},
		// Nobody has to have two families for these: API servers take them anywhere.
		"headless without a selector": {func(s *corev1.Service) { headless(s); s.Spec.Selector = nil }, 2, "", require},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "service")
			local := specimens["service"].make("web").(*corev1.Service)
			tc.make(local)
			w.put(local)
			if len(local.Spec.IPFamilies) != tc.atHome {
				t.Fatalf("at home it has the families %v", local.Spec.IPFamilies)
			}
			told := 0
			if tc.told != "" {
				told = 1
				w.told(offloadingv1beta1.ReasonPartiallyReflected, tc.told, "not configured")
			}
			w.crossed("web", "with what there is", func(s *corev1.Service) bool {
				return ptr.Deref(s.Spec.IPFamilyPolicy, "") == tc.want && s.Spec.IPFamilies[0] == corev1.IPv4Protocol && s.Spec.ClusterIP != ""
			})
			w.rests("web", told)
			w.editLocal("web", of(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }))
			w.crossed("web", "once it changed", func(s *corev1.Service) bool { return s.Spec.PublishNotReadyAddresses })
			if told := strings.Count(w.events.all(), offloadingv1beta1.ReasonPartiallyReflected); (told > 0) != (tc.told != "") {
				t.Errorf("it is told %d times: %s", told, w.events.all())
			}
		})
	}
}

// D9: the classes of Ingresses stay at home. Who has one, and gets none at the provider, reads that once; who gets the provider's
// default one, or one that it offers, reads nothing.
func TestD9IngressClassThatIsNotThere(t *testing.T) {
	w := newWorld(t, "ingress")
	class := func(name string) string {
		t.Helper()
		w.converged(name)
		return ptr.Deref(w.remote(t.Context(), name).(*networkingv1.Ingress).Spec.IngressClassName, "")
	}
	told := func(times int) {
		t.Helper()
		got := 0
		fixture.Await(t, fixture.Patience, fmt.Sprintf("it to be told %d times", times), func(context.Context) (bool, string) {
			got = strings.Count(w.events.all(), offloadingv1beta1.ReasonPartiallyReflected)
			return got >= times, w.events.all()
		})
		if got > times {
			t.Errorf("it is told %d times, want %d: %s", got, times, w.events.all())
		}
	}
	w.put(specimens["ingress"].make("none"))
	if got := class("none"); got != "" {
		t.Fatalf("milan has a default class: %s", got)
	}
	w.told(offloadingv1beta1.ReasonPartiallyReflected, "its class local stays at home", "neither offers an IngressClass nor has a default one")
	start := env.Milan.Recorder.Now(t)
	w.restart()
	w.put(specimens["ingress"].make("mark"))
	class("mark")
	if writes := w.writes(start, "none"); len(writes) > 0 {
		t.Errorf("writes after a restart: %v", writes)
	}
	told(2) // once for each

	theirs := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("theirs"), Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.org/ingress"},
	}
	fixture.Must(t, "creating an IngressClass at the provider", env.Milan.Client.Create(t.Context(), theirs))
	t.Cleanup(func() {
		fixture.Must(t, "deleting the IngressClass", env.Milan.Client.Delete(context.WithoutCancel(t.Context()), theirs))
	})
	fixture.Await(t, fixture.Patience, "the class to be the default one", func(ctx context.Context) (bool, string) {
		probe := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: w.twin, Name: "probe"},
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "a.b"}}}}
		err := env.Milan.Client.Create(ctx, probe, client.DryRunAll)
		return err == nil && ptr.Deref(probe.Spec.IngressClassName, "") == theirs.Name, fmt.Sprint(probe.Spec, err)
	})
	w.put(specimens["ingress"].make("default"))
	if got := class("default"); got != theirs.Name {
		t.Errorf("class %q, want %q", got, theirs.Name)
	}
	// One that the provider offers is given though it does not exist there: a consumer's rights do not tell.
	if err := w.link.client.List(t.Context(), &networkingv1.IngressClassList{}); err == nil {
		t.Error("a consumer may list the provider's IngressClasses: then what is missing could be told")
	}
	w.wanted.Change(func(now *mirror.Wanted) { now.Provider = reflection.Provider{IngressClass: "absent"} })
	w.put(specimens["ingress"].make("offered"))
	fixture.Await(t, fixture.Patience, "the offered class", func(ctx context.Context) (bool, string) {
		ingress, there := w.remote(ctx, "offered").(*networkingv1.Ingress)
		return there && ptr.Deref(ingress.Spec.IngressClassName, "") == "absent", w.events.all()
	})
	told(2)
}
