package ingress

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// path is a path of an Ingress that leads to a Service of a name.
type path struct{ host, path, kind, service string }

func ingressOf(namespace string, age int64, fallback string, paths ...path) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "i", CreationTimestamp: metav1.NewTime(time.Unix(1000-age, 0))}}
	to := func(service string) networkingv1.IngressBackend {
		return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service}}
	}
	if fallback != "" {
		backend := to(fallback)
		i.Spec.DefaultBackend = &backend
	}
	for _, p := range paths {
		kind := networkingv1.PathType(p.kind)
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: p.host, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: p.path, PathType: &kind, Backend: to(p.service)}}},
		}})
	}
	return i
}

func TestRoute(t *testing.T) {
	ingresses := []*networkingv1.Ingress{
		ingressOf("young", 1, "", path{"shop.example.com", "/", "Prefix", "thief"}),
		ingressOf("shop", 5, "",
			path{"shop.example.com", "/", "Prefix", "front"},
			path{"shop.example.com", "/api", "Prefix", "api"},
			path{"shop.example.com", "/api/health", "Exact", "health"},
			path{"*.example.com", "/", "Prefix", "any"},
			path{"", "/open", "ImplementationSpecific", "open"}),
	}
	for sentence, c := range map[string]struct{ host, path, want string }{
		"the oldest of equal rules":                 {"shop.example.com", "/", "shop/front"},
		"the longest prefix":                        {"shop.example.com", "/api/v1", "shop/api"},
		"a prefix itself":                           {"shop.example.com", "/api", "shop/api"},
		"no prefix within an element":               {"shop.example.com", "/apis", "shop/front"},
		"an exact path":                             {"shop.example.com", "/api/health", "shop/health"},
		"nothing below an exact path":               {"shop.example.com", "/api/health/x", "shop/api"},
		"a wildcard for one label":                  {"other.example.com", "/", "shop/any"},
		"no wildcard for two labels":                {"a.b.example.com", "/", ""},
		"no wildcard for none":                      {"example.com", "/", ""},
		"any host":                                  {"example.org", "/open/door", "shop/open"},
		"a host before no host, whatever the paths": {"shop.example.com", "/open", "shop/front"},
		"nothing for a path that no rule has":       {"example.org", "/closed", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if to, ok := route(ingresses, c.host, c.path); ok {
				got = to.namespace + "/" + to.service.Name
			}
			if got != c.want {
				t.Errorf("http://%s%s leads to %q, want %q", c.host, c.path, got, c.want)
			}
		})
	}
	last := append(ingresses, ingressOf("last", 9, "fallback"))
	if to, ok := route(last, "example.org", "/closed"); !ok || to.service.Name != "fallback" {
		t.Errorf("without a rule the default backend is wanted, not %+v", to)
	}
	if to, ok := route(last, "shop.example.com", "/"); !ok || to.service.Name != "front" {
		t.Errorf("a rule comes before the default backend, not %+v", to)
	}
}

func TestCertificateOf(t *testing.T) {
	shop, other := ingressOf("shop", 5, ""), ingressOf("other", 1, "")
	shop.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"*.example.com"}, SecretName: "wild"}, {Hosts: []string{"bare.example.com"}}}
	other.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.example.com"}, SecretName: "own"}}
	for server, want := range map[string]string{
		"shop.example.com": "other/own", "x.example.com": "shop/wild", "bare.example.com": "shop/wild", "example.org": "", "": "",
	} {
		got := ""
		if namespace, secret, ok := certificateOf([]*networkingv1.Ingress{shop, other}, server); ok {
			got = namespace + "/" + secret
		}
		if got != want {
			t.Errorf("the certificate of %q is in %q, want %q", server, got, want)
		}
	}
}
