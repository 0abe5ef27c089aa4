package reflection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func translated(t *testing.T, kind Kind, local Object, provider Provider) Object {
	t.Helper()
	in := input(local)
	in.Provider = provider
	result := kind.Translate(in)
	if result.Apply == nil {
		t.Fatalf("skipped: %+v", result.Skip)
	}
	return result.Apply
}

// A class that the provider no longer offers goes from the copies of Ingresses; one that the provider chose stays.
func TestWithdrawnIngressClasses(t *testing.T) {
	kind := ingressKind()
	local := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}}
	none, offering := Provider{}, Provider{IngressClass: "public"}
	chosen := translated(t, kind, local, none).(*networkingv1.Ingress)
	chosen.Spec.IngressClassName = ptr.To("public")
	changed := translated(t, kind, local, offering).(*networkingv1.Ingress)
	changed.Spec.IngressClassName = ptr.To("theirs")
	for name, tc := range map[string]struct {
		live     Object
		provider Provider
		want     string
	}{
		"withdrawn":                         {translated(t, kind, local, offering), none, "spec.ingressClassName"},
		"still offered":                     {translated(t, kind, local, offering), offering, ""},
		"another one":                       {translated(t, kind, local, offering), Provider{IngressClass: "other"}, ""},
		"the provider's own choice":         {chosen, none, ""},
		"the provider's own, instead of it": {changed, none, ""},
		"none at all":                       {translated(t, kind, local, none), none, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kind.Immutable(tc.live, translated(t, kind, local, tc.provider)); got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The copy of a load balancer keeps the class that it has from here, and says so.
func TestWithdrawnLoadBalancerClasses(t *testing.T) {
	kind := serviceKind()
	local := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	plain := local.DeepCopy()
	plain.Spec.Type = corev1.ServiceTypeClusterIP
	none, offering := Provider{}, Provider{LoadBalancerClass: "example.org/a"}
	chosen := translated(t, kind, local, none).(*corev1.Service)
	chosen.Spec.LoadBalancerClass = ptr.To("example.org/a")
	for name, tc := range map[string]struct {
		live, local Object
		provider    Provider
		keeps       bool
	}{
		"withdrawn":                 {translated(t, kind, local, offering), local, none, true},
		"still offered":             {translated(t, kind, local, offering), local, offering, false},
		"another one":               {translated(t, kind, local, offering), local, Provider{LoadBalancerClass: "example.org/b"}, false},
		"no load balancer any more": {translated(t, kind, local, offering), plain, none, false},
		"the provider's own choice": {chosen, local, none, false},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := translated(t, kind, tc.local, tc.provider)
			before := len(wanted.GetAnnotations())
			kept, what := kind.Keep(tc.live, wanted)
			if (kept != nil) != tc.keeps || (what != "") != tc.keeps || len(wanted.GetAnnotations()) != before {
				t.Fatalf("keeps %v, %q", kept, what)
			}
			if !tc.keeps {
				return
			}
			if RefusedPartOf(kept) != what || kept.GetAnnotations()[offloadingv1beta1.GivenClassAnnotation] != "example.org/a" {
				t.Errorf("annotations %v", kept.GetAnnotations())
			}
			// Once it is noted it is at rest, and the note remembers what is kept.
			live := kept.DeepCopyObject().(*corev1.Service)
			live.Spec.LoadBalancerClass = ptr.To("example.org/a")
			if kept, _ := kind.Keep(live, wanted); kept == nil || !kind.Contains(live, kept) || kind.Immutable(live, kept) != "" {
				t.Errorf("not at rest: %+v", kind.Differences(live, kept))
			}
		})
	}
}
