package mirror

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// TestWithdrawnClasses has a provider no longer offer its classes: Ingresses are made anew without, load balancers keep theirs, which
// is told once.
func TestWithdrawnClasses(t *testing.T) {
	inBubble(t, func(w *world) {
		balancer := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "lb"},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}
		entrance := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "in"}}
		offering := reflection.Provider{IngressClass: "public", LoadBalancerClass: "example.org/a"}
		start := func(provider reflection.Provider) {
			w.start(func(o *Options) { o.Kinds = []reflection.Kind{kindNamed(t, "service"), kindNamed(t, "ingress")} })
			w.setProvider(provider)
			w.pass(time.Minute)
		}
		classes := func() (string, string) {
			return ptr.Deref(w.remote.find(at(entrance)).(*networkingv1.Ingress).Spec.IngressClassName, ""),
				ptr.Deref(w.remote.find(at(balancer)).(*corev1.Service).Spec.LoadBalancerClass, "")
		}
		w.start(func(o *Options) { o.Kinds = []reflection.Kind{kindNamed(t, "service"), kindNamed(t, "ingress")} })
		w.setProvider(offering)
		w.local.put(balancer)
		w.local.put(entrance)
		w.pass(time.Minute)
		ingressClass, balancerClass := classes()
		w.equal("classes that are offered", []string{"public", "example.org/a"}, []string{ingressClass, balancerClass})
		w.remote.took(true)

		w.setProvider(reflection.Provider{})
		w.pass(time.Minute)
		ingressClass, balancerClass = classes()
		w.equal("classes that are withdrawn", []string{"", "example.org/a"}, []string{ingressClass, balancerClass})
		w.equal("events", []string{"lb Warning " + offloadingv1beta1.ReasonPartiallyReflected}, w.events.took())
		w.equal("writes", []string{"create Ingress/demo-rome/in", "delete Ingress/demo-rome/in", "patch Service/demo-rome/lb"}, sorted(w.remote.took(false)))

		edit(w.local, balancer, func(s *corev1.Service) { s.Labels = map[string]string{"tier": "front"} })
		w.wrote("a change of the Service", "patch Service/demo-rome/lb")
		w.stop()
		start(reflection.Provider{})
		w.wrote("a restart")
		w.equal("events of a restart", []string(nil), w.events.took())

		w.setProvider(offering)
		w.pass(time.Minute)
		ingressClass, balancerClass = classes()
		w.equal("classes that are offered again", []string{"public", "example.org/a"}, []string{ingressClass, balancerClass})
		w.equal("note", "", reflection.RefusedPartOf(w.remote.find(at(balancer))))
	})
}

// TestIngressesWithoutClass: who made an Ingress of a class reads once that it has none at the provider.
func TestIngressesWithoutClass(t *testing.T) {
	for name, tc := range map[string]struct {
		class    *string
		provider reflection.Provider
		told     []string
	}{
		"no class there":     {ptr.To("local"), reflection.Provider{}, []string{"in Warning " + offloadingv1beta1.ReasonPartiallyReflected}},
		"an offered class":   {ptr.To("local"), reflection.Provider{IngressClass: "public"}, nil},
		"no class at either": {nil, reflection.Provider{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.start(func(o *Options) { o.Kinds = []reflection.Kind{kindNamed(t, "service"), kindNamed(t, "ingress")} })
				w.setProvider(tc.provider)
				w.local.put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
				entrance := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "in"}, Spec: networkingv1.IngressSpec{IngressClassName: tc.class}}
				w.local.put(entrance)
				w.pass(time.Minute)
				w.equal("events", tc.told, w.events.took())
				w.remote.took(true)
				edit(w.local, entrance, func(i *networkingv1.Ingress) { i.Labels = map[string]string{"tier": "front"} })
				w.wrote("a change", "patch Ingress/demo-rome/in")
				if tc.provider.IngressClass == "" {
					w.stop()
					w.start(func(o *Options) { o.Kinds = []reflection.Kind{kindNamed(t, "service"), kindNamed(t, "ingress")} })
					w.wrote("a restart")
				}
				w.equal("later events", []string(nil), w.events.took())
			})
		})
	}
}
