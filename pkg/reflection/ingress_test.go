package reflection

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

var ingressSpecType = reflect.TypeFor[networkingv1.IngressSpec]()

func TestIngressChanges(t *testing.T) {
	type spec = networkingv1.IngressSpec
	change := func(field string, value any) Change { return Change{Path: []string{"spec", field}, Value: value} }
	backend := func(name string) *networkingv1.IngressBackend {
		return &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: name}}
	}
	rules := []networkingv1.IngressRule{{Host: "a.b"}}
	tls := []networkingv1.IngressTLS{{Hosts: []string{"a.b"}, SecretName: "s"}}
	for name, tc := range map[string]struct {
		live, wanted spec
		want         []Change
	}{
		"nothing":                       {live: spec{Rules: rules, TLS: tls, DefaultBackend: backend("a")}, wanted: spec{Rules: rules, TLS: tls, DefaultBackend: backend("a")}},
		"the provider's default class":  {live: spec{IngressClassName: ptr.To("theirs")}, wanted: spec{}},
		"another class":                 {live: spec{IngressClassName: ptr.To("theirs")}, wanted: spec{IngressClassName: ptr.To("x")}, want: []Change{change("ingressClassName", "x")}},
		"rules":                         {live: spec{}, wanted: spec{Rules: rules}, want: []Change{change("rules", rules)}},
		"rules and certificates vanish": {live: spec{Rules: rules, TLS: tls}, wanted: spec{}, want: []Change{change("tls", nil), change("rules", nil)}},
		"a backend":                     {live: spec{DefaultBackend: backend("a")}, wanted: spec{DefaultBackend: backend("b")}, want: []Change{change("defaultBackend", *backend("b"))}},
		"a backend that vanishes":       {live: spec{DefaultBackend: backend("a")}, wanted: spec{}, want: []Change{change("defaultBackend", nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			live := &networkingv1.Ingress{Spec: tc.live, Status: networkingv1.IngressStatus{LoadBalancer: networkingv1.IngressLoadBalancerStatus{
				Ingress: []networkingv1.IngressLoadBalancerIngress{{IP: "1.2.3.4"}}}}}
			if diff := cmp.Diff(tc.want, ingressChanges(live, &networkingv1.Ingress{Spec: tc.wanted}), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIngressBack(t *testing.T) {
	type entries = []networkingv1.IngressLoadBalancerIngress
	var many, most entries
	for i := range 100 {
		many = append(many, networkingv1.IngressLoadBalancerIngress{Hostname: fmt.Sprintf("h%d.example.org", i)})
	}
	most = many[:maxBackAddresses]
	for name, tc := range map[string]struct {
		local, live, want entries
		same              bool
	}{
		"nothing yet":                 {same: true},
		"the same again":              {local: entries{{IP: "203.0.113.1"}}, live: entries{{IP: "203.0.113.1"}}, same: true},
		"an address and a host name":  {live: entries{{IP: "203.0.113.1"}, {Hostname: "LB.example.org"}}, want: entries{{IP: "203.0.113.1"}, {Hostname: "lb.example.org"}}},
		"an IPv6 address":             {live: entries{{IP: "2001:DB8::0:1"}}, want: entries{{IP: "2001:db8::1"}}},
		"addresses that vanish":       {local: entries{{IP: "203.0.113.1"}}, live: nil, want: nil},
		"addresses of the reader":     {live: entries{{IP: "127.0.0.1"}, {IP: "::1"}, {IP: "0.0.0.0"}, {IP: "::"}, {IP: "169.254.169.254"}, {IP: "fe80::1"}, {IP: "224.0.0.1"}, {IP: "::ffff:127.0.0.1"}, {IP: "fd00::1%eth0"}}, same: true},
		"what is no address":          {live: entries{{IP: "1.2.3"}, {IP: "010.0.0.1"}, {Hostname: "a_b"}, {Hostname: "1.2.3.4"}, {Hostname: "localhost"}, {Hostname: "a b"}, {}}, same: true},
		"half of an entry":            {live: entries{{IP: "bad", Hostname: "a.example.org"}}, want: entries{{Hostname: "a.example.org"}}},
		"twice the same":              {live: entries{{IP: "203.0.113.1"}, {IP: "203.0.113.1"}}, want: entries{{IP: "203.0.113.1"}}},
		"more than anybody asked for": {live: many, want: most},
		"ports and their errors":      {live: entries{{IP: "203.0.113.1", Ports: []networkingv1.IngressPortStatus{{Port: 1, Error: ptr.To("words")}}}}, want: entries{{IP: "203.0.113.1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			ingress := func(e entries) *networkingv1.Ingress {
				i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
				i.Status.LoadBalancer.Ingress = e
				return i
			}
			local := ingress(tc.local)
			got := ingressBack(local, ingress(tc.live))
			if tc.same != (got == nil) {
				t.Fatalf("got %+v", got)
			}
			if diff := cmp.Diff(ingress(tc.local), local); diff != "" {
				t.Errorf("the local object was changed: %s", diff)
			}
			if got == nil {
				return
			}
			if diff := cmp.Diff(ingress(tc.want), got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if ingressBack(got, ingress(tc.live)) != nil {
				t.Error("it is taken twice")
			}
		})
	}
}

// drawIngress draws an Ingress.
func drawIngress(t *rapid.T, label string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Annotations: rapid.MapOf(
		rapid.SampledFrom([]string{ingressClassAnnotation, "note"}), rapid.SampledFrom([]string{"a", "b"})).Draw(t, label+" annotations")}}
	if rapid.Bool().Draw(t, label+" class") {
		i.Spec.IngressClassName = ptr.To("local")
	}
	if rapid.Bool().Draw(t, label+" backend") {
		i.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "a"}}
	}
	for _, host := range rapid.SliceOfN(rapid.SampledFrom([]string{"", "a.b", "*.c"}), 0, 3).Draw(t, label+" hosts") {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host})
		i.Spec.TLS = append(i.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{host}})
	}
	return i
}

// TestIngressesLeaveTheClassToTheProvider checks for random Ingresses that no local class travels, that a translated Ingress
// translates to itself, and that the changes listed, once made, leave nothing to change.
func TestIngressesLeaveTheClassToTheProvider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		provider := rapid.SampledFrom([]Provider{{}, offeringProvider}).Draw(t, "provider")
		translate := func(i *networkingv1.Ingress) *networkingv1.Ingress {
			return translateIngress(input(i, func(in *Input) { in.Provider = provider })).Apply.(*networkingv1.Ingress)
		}
		wanted := translate(drawIngress(t, "local"))
		if _, named := wanted.Annotations[ingressClassAnnotation]; named || ptr.Deref(wanted.Spec.IngressClassName, "") != provider.IngressClass {
			t.Fatalf("class %v, annotations %v", wanted.Spec.IngressClassName, wanted.Annotations)
		}
		if diff := cmp.Diff(wanted.Spec, translate(&networkingv1.Ingress{Spec: wanted.Spec}).Spec); diff != "" {
			t.Fatal(diff)
		}
		live := drawIngress(t, "live")
		live.ObjectMeta = wanted.ObjectMeta
		patched := patchSpec(t, live, &networkingv1.Ingress{}, ingressChanges(live, wanted))
		if rest := ingressKind().Differences(patched, wanted); len(rest) > 0 {
			t.Fatalf("still to change: %v", rest)
		}
	})
}

// D9: only what the local one has and the remote one lacks is told.
func TestIngressesThatLackAClass(t *testing.T) {
	of := func(class *string, annotation string) *networkingv1.Ingress {
		ingress := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: class}}
		if annotation != "" {
			ingress.Annotations = map[string]string{ingressClassAnnotation: annotation}
		}
		return ingress
	}
	for name, tc := range map[string]struct {
		local, made *networkingv1.Ingress
		named       string
	}{
		"a class, and none there":           {of(ptr.To("nginx"), ""), of(nil, ""), "nginx"},
		"an annotation, and none there":     {of(nil, "traefik"), of(nil, ""), "traefik"},
		"the provider's default one":        {of(ptr.To("nginx"), ""), of(ptr.To("theirs"), ""), ""},
		"one of the provider's admission":   {of(ptr.To("nginx"), ""), of(nil, "theirs"), ""},
		"none at home, and the default one": {of(nil, ""), of(ptr.To("theirs"), ""), ""},
		"none":                              {of(nil, ""), of(nil, ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			what := ingressLacks(tc.local, tc.made)
			if (what != "") != (tc.named != "") || !strings.Contains(what, "class "+tc.named) && tc.named != "" {
				t.Errorf("it says %q", what)
			}
		})
	}
}

// FuzzIngress feeds whatever two API servers could have stored.
func FuzzIngress(f *testing.F) {
	f.Add([]byte(`{"spec":{"rules":[{"host":"a.b"}]}}`), []byte(`{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"},{"hostname":"a.b"}]}}}`))
	f.Add([]byte(`{"spec":{"ingressClassName":"x"}}`), []byte(`{"spec":{"ingressClassName":"y"},"status":{"loadBalancer":{"ingress":[{"ip":"::1"}]}}}`))
	f.Fuzz(func(t *testing.T, localRaw, liveRaw []byte) {
		local, live := &networkingv1.Ingress{}, &networkingv1.Ingress{}
		if json.Unmarshal(localRaw, local) != nil || json.Unmarshal(liveRaw, live) != nil {
			return
		}
		local.ObjectMeta = metav1.ObjectMeta{}
		wanted := translateIngress(input(local)).Apply
		ingressKind().Differences(live, wanted)
		if !ingressKind().Contains(wanted, wanted) {
			t.Fatal("it does not contain itself")
		}
		back, _ := ingressBack(local, live).(*networkingv1.Ingress)
		if back != nil && (len(back.Status.LoadBalancer.Ingress) > maxBackAddresses || ingressBack(back, live) != nil) {
			t.Fatalf("too much or unstable: %+v", back.Status)
		}
	})
}

func TestProviderOf(t *testing.T) {
	vn := &offloadingv1beta1.VirtualNode{}
	vn.Spec.IngressClasses = []authv1beta1.IngressType{{IngressClassName: "a"}, {IngressClassName: "b", Default: true}, {IngressClassName: "c", Default: true}}
	vn.Spec.LoadBalancerClasses = []authv1beta1.LoadBalancerType{{LoadBalancerClassName: "x"}}
	want := Provider{IngressClass: "b"}
	if diff := cmp.Diff(want, ProviderOf(vn), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Provider{}, "Addresses")); diff != "" {
		t.Error(diff)
	}
	vn.Spec.IngressClasses, vn.Spec.LoadBalancerClasses[0].Default = nil, true
	want = Provider{LoadBalancerClass: "x"}
	if diff := cmp.Diff(want, ProviderOf(vn), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Provider{}, "Addresses")); diff != "" {
		t.Error(diff)
	}
}
