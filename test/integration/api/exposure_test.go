package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"liqo.io/liqo/charts"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// Reasons of the policies about what consumers expose.
const (
	externalIPsNot    = "ExternalIPsNotAllowed"
	loadBalancerIPNot = "LoadBalancerIPNotAllowed"
	serviceTypeNot    = "ServiceTypeNotAllowed"
	lbClassNot        = "LoadBalancerClassNotAllowed"
	ingressClassNot   = "IngressClassNotAllowed"
	ingressHostNot    = "IngressHostNotAllowed"
	annotationNot     = "IngressAnnotationNotAllowed"
)

func (p *peering) service(name string, labels map[string]string, spec corev1.ServiceSpec) *corev1.Service {
	if spec.Type != corev1.ServiceTypeExternalName {
		spec.Ports = []corev1.ServicePort{{Port: 80}}
	}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.twin, Labels: labels}, Spec: spec}
}

func (p *peering) ingress(name string, labels map[string]string, hosts ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.twin, Labels: labels}}
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	for _, host := range hosts {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{PathType: ptr.To(networkingv1.PathTypePrefix), Path: "/", Backend: backend}}}}})
	}
	if len(hosts) == 0 {
		i.Spec.DefaultBackend = &backend
	}
	return i
}

// making tries to create what is made for the peering.
func making(object func(p *peering) client.Object) func(*testing.T, *peering) error {
	return func(t *testing.T, p *peering) error { return p.slice.Create(t.Context(), object(p)) }
}

// exposureAttempts are what a consumer tries to expose where the profile is compatible and nothing is configured.
var exposureAttempts = map[string]attempt{
	"honest: reflect, change and delete a Service": {"", func(t *testing.T, p *peering) error {
		s := p.service("honest", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort})
		fixture.Must(t, "creating it", p.slice.Create(t.Context(), s))
		fixture.Must(t, "patching it", p.slice.Patch(t.Context(), s, merge(`{"spec":{"selector":{"a":"c"}}}`)))
		return p.slice.Delete(t.Context(), s)
	}},
	"honest: reflect an ExternalName": {"", making(func(p *peering) client.Object {
		return p.service("honest-name", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "a.example.org"})
	})},
	"honest: reflect a load balancer of a class": {"", making(func(p *peering) client.Object {
		return p.service("honest-lb", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: ptr.To("milan.it/lb")})
	})},
	"honest: reflect, change and delete an Ingress": {"", func(t *testing.T, p *peering) error {
		i := p.ingress("honest", p.reflected(), "a.example.org")
		i.Annotations = map[string]string{"nginx.ingress.kubernetes.io/rewrite-target": "/"}
		fixture.Must(t, "creating it", p.slice.Create(t.Context(), i))
		fixture.Must(t, "patching it", p.slice.Patch(t.Context(), i, merge(`{"metadata":{"labels":{"a":"b"}}}`)))
		return p.slice.Delete(t.Context(), i)
	}},
	"V6: external addresses": {externalIPsNot, making(func(p *peering) client.Object {
		return p.service("v6-ips", p.reflected(), corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}})
	})},
	"V6: external addresses, added later": {externalIPsNot, func(t *testing.T, p *peering) error {
		s := p.service("v6-later", p.reflected(), corev1.ServiceSpec{})
		fixture.Must(t, "creating a Service", p.slice.Create(t.Context(), s))
		return p.slice.Patch(t.Context(), s, merge(`{"spec":{"externalIPs":["192.0.2.1"]}}`))
	}},
	"V6: external addresses that the provider added stay": {"", func(t *testing.T, p *peering) error {
		s := p.service("v6-theirs", p.reflected(), corev1.ServiceSpec{})
		fixture.Must(t, "creating a Service", p.slice.Create(t.Context(), s))
		fixture.Must(t, "adding an address as the provider", env.Milan.Client.Patch(t.Context(), s, merge(`{"spec":{"externalIPs":["192.0.2.1"]}}`)))
		return p.slice.Patch(t.Context(), s, merge(`{"spec":{"selector":{"a":"c"}}}`))
	}},
	"V6: the address of a load balancer": {loadBalancerIPNot, making(func(p *peering) client.Object {
		return p.service("v6-lbip", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerIP: "192.0.2.1"})
	})},
	"V6: a Service without marks":  {notYourObject, making(func(p *peering) client.Object { return p.service("v6-none", nil, corev1.ServiceSpec{}) })},
	"V6: an Ingress without marks": {notYourObject, making(func(p *peering) client.Object { return p.ingress("v6-none", nil, "a.b") })},
	"V6: change the provider's Service": {notYourObject, func(t *testing.T, p *peering) error {
		s := p.service("v6-providers", nil, corev1.ServiceSpec{})
		p.provide(t, s)
		return p.slice.Patch(t.Context(), s, merge(`{"spec":{"selector":{"a":"c"}}}`))
	}},
	"V6: take the provider's Ingress over": {notYourObject, func(t *testing.T, p *peering) error {
		i := p.ingress("v6-providers", nil, "a.b")
		p.provide(t, i)
		return p.slice.Patch(t.Context(), i, merge(`{"metadata":{"labels":{"offloading.liqo.io/origin":"`+p.consumer+`"}}}`))
	}},
	"V6: a Service with a finalizer": {finalizerNotAllowed, making(func(p *peering) client.Object {
		s := p.service("v6-finalizer", p.reflected(), corev1.ServiceSpec{})
		s.Finalizers = []string{"turin.it/never"}
		return s
	})},
	"V6: an Ingress with an owner": {ownerNotAllowed, making(func(p *peering) client.Object {
		i := p.ingress("v6-owner", p.reflected(), "a.b")
		i.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "b"}}
		return i
	})},
	"V6: say where a load balancer is": {rbac, func(t *testing.T, p *peering) error {
		s := p.service("v6-status", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer})
		fixture.Must(t, "creating a Service", p.slice.Create(t.Context(), s))
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		return p.slice.Status().Update(t.Context(), s)
	}},
}

func TestHostileExposure(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	for name, a := range exposureAttempts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.check(t, a.try(t, p))
		})
	}
}

// strictValues let consumers expose a little of everything.
const strictValues = `
profile: hardened
discovery: {config: {clusterID: milan}}
networking: {enabled: false}
offloading:
  reflection: {ingress: {ingressClasses: [{name: offered, default: true}]}}
  consumers:
    serviceTypes: [ClusterIP, LoadBalancer]
    ingressClasses: [public]
    loadBalancerClasses: [milan.it/lb]
    ingressHostSuffixes: [apps.example.org]
    ingressAnnotationPrefixes: [cert-manager.io/]
`

// strictAttempts are what a consumer tries to expose where the provider allows little.
var strictAttempts = map[string]attempt{
	"honest: a ClusterIP": {"", making(func(p *peering) client.Object { return p.service("honest", p.reflected(), corev1.ServiceSpec{}) })},
	"honest: a load balancer of an allowed class": {"", making(func(p *peering) client.Object {
		return p.service("honest-lb", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: ptr.To("milan.it/lb")})
	})},
	"honest: a load balancer that leaves the class to the provider": {"", making(func(p *peering) client.Object {
		return p.service("honest-any", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer})
	})},
	"honest: an Ingress within the rules": {"", making(func(p *peering) client.Object {
		i := p.ingress("honest", p.reflected(), "shop.apps.example.org", "apps.example.org", "*.apps.example.org")
		i.Annotations = map[string]string{"cert-manager.io/issuer": "x", "liqo.io/origin-uid": "1", "offloading.liqo.io/reflected-keys": "abcd"}
		i.Spec.IngressClassName = ptr.To("public")
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.apps.example.org"}}}
		return i
	})},
	"honest: an Ingress of the offered class": {"", making(func(p *peering) client.Object {
		i := p.ingress("honest-offered", p.reflected(), "shop.apps.example.org")
		i.Spec.IngressClassName = ptr.To("offered")
		return i
	})},
	"honest: change an Ingress that the provider's controllers annotated": {"", func(t *testing.T, p *peering) error {
		i := p.ingress("honest-annotated", p.reflected(), "shop.apps.example.org")
		fixture.Must(t, "creating an Ingress", p.slice.Create(t.Context(), i))
		fixture.Must(t, "annotating it", env.Milan.Client.Patch(t.Context(), i, merge(`{"metadata":{"annotations":{"milan.it/pool":"1"}},"spec":{"ingressClassName":"theirs"}}`)))
		return p.slice.Patch(t.Context(), i, merge(`{"metadata":{"labels":{"a":"b"}}}`))
	}},
	"V6: a node port": {serviceTypeNot, making(func(p *peering) client.Object {
		return p.service("v6-node", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort})
	})},
	"V6: a node port, later": {serviceTypeNot, func(t *testing.T, p *peering) error {
		s := p.service("v6-later", p.reflected(), corev1.ServiceSpec{})
		fixture.Must(t, "creating a Service", p.slice.Create(t.Context(), s))
		return p.slice.Patch(t.Context(), s, merge(`{"spec":{"type":"NodePort"}}`))
	}},
	"V6: an external name": {serviceTypeNot, making(func(p *peering) client.Object {
		return p.service("v6-name", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "metadata.milan.it"})
	})},
	"V6: another class of load balancers": {lbClassNot, making(func(p *peering) client.Object {
		return p.service("v6-class", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: ptr.To("milan.it/internal")})
	})},
	"V6: another ingress class": {ingressClassNot, making(func(p *peering) client.Object {
		i := p.ingress("v6-class", p.reflected(), "shop.apps.example.org")
		i.Spec.IngressClassName = ptr.To("internal")
		return i
	})},
	"V6: another ingress class, by annotation": {ingressClassNot, making(func(p *peering) client.Object {
		i := p.ingress("v6-old-class", p.reflected(), "shop.apps.example.org")
		i.Annotations = map[string]string{"kubernetes.io/ingress.class": "internal"}
		return i
	})},
	"V6: a foreign host":               {ingressHostNot, making(func(p *peering) client.Object { return p.ingress("v6-host", p.reflected(), "bank.example.org") })},
	"V6: a host that only looks alike": {ingressHostNot, making(func(p *peering) client.Object { return p.ingress("v6-alike", p.reflected(), "badapps.example.org") })},
	"V6: a foreign host among others": {ingressHostNot, making(func(p *peering) client.Object {
		return p.ingress("v6-among", p.reflected(), "a.apps.example.org", "bank.example.org")
	})},
	"V6: all hosts":             {ingressHostNot, making(func(p *peering) client.Object { return p.ingress("v6-all", p.reflected(), "") })},
	"V6: all hosts, by default": {ingressHostNot, making(func(p *peering) client.Object { return p.ingress("v6-default", p.reflected()) })},
	"V6: a certificate for a foreign host": {ingressHostNot, making(func(p *peering) client.Object {
		i := p.ingress("v6-tls", p.reflected(), "shop.apps.example.org")
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"bank.example.org"}}}
		return i
	})},
	"V6: a snippet": {annotationNot, making(func(p *peering) client.Object {
		i := p.ingress("v6-snippet", p.reflected(), "shop.apps.example.org")
		i.Annotations = map[string]string{"nginx.ingress.kubernetes.io/server-snippet": "return 200;"}
		return i
	})},
	"V6: a snippet, later": {annotationNot, func(t *testing.T, p *peering) error {
		i := p.ingress("v6-snippet-later", p.reflected(), "shop.apps.example.org")
		fixture.Must(t, "creating an Ingress", p.slice.Create(t.Context(), i))
		return p.slice.Patch(t.Context(), i, merge(`{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"return 200;"}}}`))
	}},
}

// restrict applies the chart's policies with strictValues, for one consumer only.
func restrict(t *testing.T, p *peering) {
	t.Helper()
	chart, err := helm.Load(charts.Liqo())
	fixture.Must(t, "loading the chart", err)
	var values map[string]any
	fixture.Must(t, "parsing the values", yaml.Unmarshal([]byte(strictValues), &values))
	rendered, err := chart.Render("liqo", fixture.Namespace, values)
	fixture.Must(t, "rendering the chart", err)
	applied := 0
	for path, text := range rendered {
		if !strings.HasSuffix(path, "exposurepolicies.yaml") {
			continue
		}
		for _, document := range strings.Split(text, "\n---") {
			object := &unstructured.Unstructured{}
			fixture.Must(t, "parsing a policy", yaml.Unmarshal([]byte(document), &object.Object))
			object.SetName(object.GetName() + "-" + p.consumer)
			if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
				fixture.Must(t, "binding a policy", unstructured.SetNestedField(object.Object, object.GetName(), "spec", "policyName"))
			} else {
				only := fmt.Sprintf("request.userInfo.groups.exists(g, g == '%s')", identity.ConsumerGroup(p.consumer))
				fixture.Must(t, "narrowing a policy", unstructured.SetNestedSlice(object.Object,
					[]any{map[string]any{"name": "one-consumer", "expression": only}}, "spec", "matchConditions"))
			}
			fixture.Must(t, "creating "+object.GetName(), env.Milan.Client.Create(t.Context(), object))
			t.Cleanup(func() { _ = env.Milan.Client.Delete(context.WithoutCancel(t.Context()), object) })
			applied++
		}
	}
	if applied != 4 {
		t.Fatalf("%d objects, want two policies and their bindings", applied)
	}
	for reason, probe := range map[string]client.Object{
		serviceTypeNot: p.service("probe", p.reflected(), corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}),
		ingressHostNot: p.ingress("probe", p.reflected(), "bank.example.org"),
	} {
		fixture.Await(t, fixture.Patience, "the policy of "+reason+" to be effective", func(ctx context.Context) (bool, string) {
			answer := fmt.Sprint(p.slice.Create(ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll))
			return strings.Contains(answer, reason), answer
		})
	}
}

func TestHostileExposureWhereLittleIsAllowed(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	restrict(t, p)
	t.Run("attempts", func(t *testing.T) {
		for name, a := range strictAttempts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a.check(t, a.try(t, p))
			})
		}
	})
}
