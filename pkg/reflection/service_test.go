package reflection

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// classified are the fields of the specs of Services and Ingresses: copied as they are, mapped, or local, which here means
// left to the provider.
var classified = index(map[reflect.Type]fields{
	reflect.TypeFor[corev1.ServiceSpec](): {
		copied: "selector type sessionAffinity sessionAffinityConfig externalName externalTrafficPolicy internalTrafficPolicy " +
			"trafficDistribution allocateLoadBalancerNodePorts loadBalancerSourceRanges publishNotReadyAddresses",
		mapped: "ports clusterIP ipFamilyPolicy ipFamilies loadBalancerClass",
		local:  "clusterIPs externalIPs loadBalancerIP healthCheckNodePort",
	},
	reflect.TypeFor[corev1.ServicePort]():           {copied: "name protocol appProtocol port targetPort", mapped: "nodePort"},
	reflect.TypeFor[corev1.SessionAffinityConfig](): {copied: "clientIP"},
	reflect.TypeFor[corev1.ClientIPConfig]():        {copied: "timeoutSeconds"},
	ingressSpecType:                                 {copied: "defaultBackend tls rules", mapped: "ingressClassName"},
})

// TestEveryFieldIsClassified fails when Kubernetes adds a field that nobody looked at: decide whether it travels, change
// Translate and Changes accordingly, and enter it in the table.
func TestEveryFieldIsClassified(t *testing.T) {
	for at, list := range classified {
		for _, f := range list {
			if f.treatment == Unclassified {
				t.Errorf("field %s.%s is not classified", at.Name(), f.name)
			}
		}
	}
}

// serviceOf is a Service with a spec.
func serviceOf(spec corev1.ServiceSpec) *corev1.Service { return &corev1.Service{Spec: spec} }

func port(number, node int32, adjust ...func(*corev1.ServicePort)) corev1.ServicePort {
	p := corev1.ServicePort{Port: number, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(number), NodePort: node}
	for _, f := range adjust {
		f(&p)
	}
	return p
}

func named(name string) func(*corev1.ServicePort) {
	return func(p *corev1.ServicePort) { p.Name = name }
}

func TestServiceChanges(t *testing.T) {
	type spec = corev1.ServiceSpec
	type ports = []corev1.ServicePort
	change := func(field string, value any) Change { return Change{Path: []string{"spec", field}, Value: value} }
	allocated := spec{
		Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1", ClusterIPs: []string{"10.0.0.1"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack), HealthCheckNodePort: 31000, LoadBalancerIP: "1.2.3.4",
		ExternalIPs: []string{"1.2.3.4"}, Ports: ports{port(80, 30080)}, SessionAffinity: corev1.ServiceAffinityNone,
		InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyCluster), ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
		AllocateLoadBalancerNodePorts: ptr.To(true), LoadBalancerClass: ptr.To("theirs"),
	}
	const lb, nodePort, external = corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, corev1.ServiceTypeExternalName
	for name, tc := range map[string]struct {
		live, wanted spec
		want         []Change
		immutable    string
	}{
		"what the provider allocated and defaulted": {live: allocated, wanted: spec{Type: lb, Ports: ports{{Port: 80}}}},
		"empty and missing selectors":               {live: spec{Selector: map[string]string{}}, wanted: spec{}},
		"the default affinity": {
			live:   spec{SessionAffinity: corev1.ServiceAffinityClientIP, SessionAffinityConfig: &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10800)}}},
			wanted: spec{SessionAffinity: corev1.ServiceAffinityClientIP},
		},
		"a selector": {live: spec{Selector: map[string]string{"a": "b"}}, wanted: spec{}, want: []Change{change("selector", nil)}},
		"a port that stays keeps its node port": {
			live: spec{Type: nodePort, Ports: ports{port(80, 30080, named("a"))}}, wanted: spec{Type: nodePort, Ports: ports{port(443, 0, named("b")), port(80, 0, named("a"))}},
			want: []Change{change("ports", ports{port(443, 0, named("b")), port(80, 30080, named("a"))})},
		},
		"a port that is renumbered keeps its node port by its name": {
			live: spec{Type: nodePort, Ports: ports{port(80, 30080, named("a"))}}, wanted: spec{Type: nodePort, Ports: ports{port(81, 0, named("a"))}},
			want: []Change{change("ports", ports{port(81, 30080, named("a"))})},
		},
		"two ports do not get the same node port": {
			live:   spec{Type: nodePort, Ports: ports{port(80, 30080, named("a"))}},
			wanted: spec{Type: nodePort, Ports: ports{port(81, 0, named("a")), port(80, 0, named("b"))}},
			want:   []Change{change("ports", ports{port(81, 0, named("a")), port(80, 30080, named("b"))})},
		},
		"a forced node port": {
			live: spec{Type: nodePort, Ports: ports{port(80, 30080)}}, wanted: spec{Type: nodePort, Ports: ports{port(80, 30081)}},
			want: []Change{change("ports", ports{port(80, 30081)})},
		},
		"a node port that is no longer forced": {live: spec{Type: nodePort, Ports: ports{port(80, 30081)}}, wanted: spec{Type: nodePort, Ports: ports{port(80, 0)}}},
		"a node port that is forced upon another port": {
			live:   spec{Type: nodePort, Ports: ports{port(80, 30080, named("a")), port(81, 30081, named("b"))}},
			wanted: spec{Type: nodePort, Ports: ports{port(80, 0, named("a")), port(81, 30080, named("b"))}},
			want:   []Change{change("ports", ports{port(80, 0, named("a")), port(81, 30080, named("b"))})},
		},
		"NodePort becomes ClusterIP": {
			live: spec{Type: nodePort, Ports: ports{port(80, 30080)}, ExternalTrafficPolicy: "Cluster"}, wanted: spec{Ports: ports{port(80, 0)}},
			want: []Change{change("type", corev1.ServiceTypeClusterIP)},
		},
		"NodePort becomes ClusterIP with another port": {
			live: spec{Type: nodePort, Ports: ports{port(80, 30080)}}, wanted: spec{Ports: ports{port(81, 0)}},
			want: []Change{change("type", corev1.ServiceTypeClusterIP), change("ports", ports{port(81, 0)})},
		},
		"ClusterIP becomes LoadBalancer of a class": {
			live: spec{}, wanted: spec{Type: lb, LoadBalancerClass: ptr.To("x"), ExternalTrafficPolicy: "Local"},
			want: []Change{change("type", lb), change("externalTrafficPolicy", corev1.ServiceExternalTrafficPolicyLocal), change("loadBalancerClass", "x")},
		},
		"LoadBalancer becomes ClusterIP": {live: allocated, wanted: spec{Ports: ports{port(80, 0)}}, want: []Change{change("type", corev1.ServiceTypeClusterIP)}},
		"the class of a load balancer": {
			live: allocated, wanted: spec{Type: lb, Ports: ports{port(80, 0)}, LoadBalancerClass: ptr.To("x")},
			want: []Change{change("loadBalancerClass", "x")}, immutable: "spec.loadBalancerClass",
		},
		"a load balancer gets a class": {
			live: spec{Type: lb}, wanted: spec{Type: lb, LoadBalancerClass: ptr.To("x")},
			want: []Change{change("loadBalancerClass", "x")}, immutable: "spec.loadBalancerClass",
		},
		"becoming headless":        {live: spec{ClusterIP: "10.0.0.1"}, wanted: spec{ClusterIP: "None"}, immutable: "spec.clusterIP"},
		"headless stays headless":  {live: spec{ClusterIP: "None", ClusterIPs: []string{"None"}}, wanted: spec{ClusterIP: "None"}},
		"no longer headless":       {live: spec{ClusterIP: "None"}, wanted: spec{}, immutable: "spec.clusterIP"},
		"headless to ExternalName": {live: spec{ClusterIP: "None"}, wanted: spec{Type: external, ExternalName: "a.b"}, want: []Change{change("type", external), change("externalName", "a.b")}},
		"ExternalName to headless": {
			live: spec{Type: external, ExternalName: "a.b"}, wanted: spec{ClusterIP: "None"},
			want: []Change{change("type", corev1.ServiceTypeClusterIP), change("clusterIP", "None"), change("externalName", nil)},
		},
		"ExternalName to ClusterIP": {
			live: spec{Type: external, ExternalName: "a.b"}, wanted: spec{},
			want: []Change{change("type", corev1.ServiceTypeClusterIP), change("externalName", nil)},
		},
		"affinity appears": {
			live: spec{}, wanted: spec{SessionAffinity: corev1.ServiceAffinityClientIP},
			want: []Change{change("sessionAffinity", corev1.ServiceAffinityClientIP), change("sessionAffinityConfig",
				corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](10800)}})},
		},
		"affinity goes":     {live: spec{SessionAffinity: corev1.ServiceAffinityClientIP}, wanted: spec{}, want: []Change{change("sessionAffinity", corev1.ServiceAffinityNone)}},
		"distribution goes": {live: spec{TrafficDistribution: ptr.To("PreferClose")}, wanted: spec{}, want: []Change{change("trafficDistribution", nil)}},
		"an IP family policy that changes": {
			live: spec{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack)}, wanted: spec{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack)},
			want: []Change{change("ipFamilyPolicy", corev1.IPFamilyPolicyPreferDualStack)},
		},
		"IPv6 alone, after ExternalName": {
			live: spec{Type: external, ExternalName: "a.b"}, wanted: spec{IPFamilies: []corev1.IPFamily{"IPv6"}},
			want: []Change{change("type", corev1.ServiceTypeClusterIP), change("externalName", nil), change("ipFamilies", []corev1.IPFamily{"IPv6"})},
		},
		"IPv6 alone, where there was IPv4": {
			live: spec{IPFamilies: []corev1.IPFamily{"IPv4"}}, wanted: spec{IPFamilies: []corev1.IPFamily{"IPv6"}},
			want: []Change{change("ipFamilies", []corev1.IPFamily{"IPv6"})}, immutable: "spec.ipFamilies",
		},
		"IPv6 alone, as it is":        {live: spec{IPFamilies: []corev1.IPFamily{"IPv6"}}, wanted: spec{IPFamilies: []corev1.IPFamily{"IPv6"}}},
		"the provider's own families": {live: spec{IPFamilies: []corev1.IPFamily{"IPv6", "IPv4"}}, wanted: spec{}},
		"everything else": {
			live: spec{Type: lb}, wanted: spec{
				Type: lb, LoadBalancerSourceRanges: []string{"1.0.0.0/8"}, AllocateLoadBalancerNodePorts: ptr.To(false), PublishNotReadyAddresses: true,
				InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyLocal), TrafficDistribution: ptr.To("PreferClose"),
			},
			want: []Change{
				change("loadBalancerSourceRanges", []string{"1.0.0.0/8"}), change("allocateLoadBalancerNodePorts", false),
				change("internalTrafficPolicy", corev1.ServiceInternalTrafficPolicyLocal), change("trafficDistribution", "PreferClose"),
				change("publishNotReadyAddresses", true),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			live, wanted := serviceOf(tc.live), serviceOf(tc.wanted)
			before := live.DeepCopy()
			if diff := cmp.Diff(tc.want, serviceChanges(live, wanted), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, live); diff != "" {
				t.Errorf("the live object was changed: %s", diff)
			}
			if got := serviceMustRecreate(live, wanted); got != tc.immutable {
				t.Errorf("immutable = %q, want %q", got, tc.immutable)
			}
		})
	}
}

// drawService draws a spec as some API server may have stored it.
func drawService(t *rapid.T, label string) *corev1.Service {
	pick := func(name string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label+" "+name) }
	flag := func(name string) bool { return rapid.Bool().Draw(t, label+" "+name) }
	spec := corev1.ServiceSpec{
		Type: corev1.ServiceType(pick("type", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName", "")), ClusterIP: pick("clusterIP", "None", "10.0.0.1", ""),
		LoadBalancerIP: pick("loadBalancerIP", "", "1.2.3.4"), ExternalName: pick("externalName", "", "a.b"),
		SessionAffinity:       corev1.ServiceAffinity(pick("affinity", "", "None", "ClientIP")),
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicy(pick("external", "", "Cluster", "Local")), PublishNotReadyAddresses: flag("unready"),
		HealthCheckNodePort: rapid.Int32Range(0, 2).Draw(t, label+" health"),
	}
	if flag("extras") {
		spec.ClusterIPs, spec.ExternalIPs = []string{spec.ClusterIP}, []string{"1.2.3.4"}
		spec.IPFamilies = rapid.SampledFrom([][]corev1.IPFamily{{"IPv6"}, {"IPv4"}, {"IPv6", "IPv4"}, {"IPv4", "IPv6"}}).Draw(t, label+" families")
		spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicy(pick("policy", "SingleStack", "PreferDualStack", "RequireDualStack")))
		spec.LoadBalancerClass, spec.AllocateLoadBalancerNodePorts = ptr.To(pick("class", "a", "b")), ptr.To(flag("allocate"))
		spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicy(pick("internal", "Cluster", "Local")))
		spec.TrafficDistribution, spec.Selector = ptr.To("PreferClose"), map[string]string{"a": "b"}
		spec.LoadBalancerSourceRanges = []string{"1.0.0.0/8"}
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(rapid.Int32Range(1, 2).Draw(t, label+" timeout"))}}
	}
	// API servers refuse two ports of one name or number.
	names := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, label+" names")
	for i, port := range rapid.SliceOfNDistinct(rapid.Int32Range(1, 4), 0, 3, rapid.ID[int32]).Draw(t, label+" ports") {
		spec.Ports = append(spec.Ports, corev1.ServicePort{
			Name: names[i], Port: port, NodePort: rapid.Int32Range(0, 3).Draw(t, label+" node port"),
			Protocol: corev1.Protocol(pick("protocol", "TCP", "UDP", "")), TargetPort: intstr.FromInt32(rapid.Int32Range(0, 2).Draw(t, label+" target")),
		})
	}
	annotations := map[string]string{}
	if flag("forced") {
		annotations[offloadingv1beta1.ForceRemoteNodePortAnnotation] = "true"
	}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: spec}
}

// TestServicesLeaveAllocationsToTheProvider checks for random Services that nothing travels which a cluster allocates, and
// that a translated Service translates to itself.
func TestServicesLeaveAllocationsToTheProvider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := drawService(t, "local")
		forced := len(local.Annotations) > 0
		provider := rapid.SampledFrom([]Provider{{}, offeringProvider}).Draw(t, "provider")
		translate := func(s *corev1.Service) *corev1.Service {
			return translateService(input(s, func(in *Input) { in.Provider = provider })).Apply.(*corev1.Service)
		}
		got := translate(local)
		leftToProvider(t, got.Spec, forced)
		again := got.DeepCopy()
		again.Labels, again.Annotations = nil, local.Annotations
		if diff := cmp.Diff(got.Spec, translate(again).Spec); diff != "" {
			t.Fatal(diff)
		}
	})
}

// leftToProvider fails on fields that the provider decides.
func leftToProvider(t interface{ Fatalf(string, ...any) }, spec corev1.ServiceSpec, forced bool) {
	if spec.ClusterIP != "" && spec.ClusterIP != corev1.ClusterIPNone || spec.LoadBalancerIP != "" || spec.HealthCheckNodePort != 0 ||
		len(spec.ClusterIPs)+len(spec.ExternalIPs) > 0 || len(spec.IPFamilies) > 0 && !slices.Equal(spec.IPFamilies, []corev1.IPFamily{"IPv6"}) {
		t.Fatalf("fields of the provider: %+v", spec)
	}
	for _, port := range spec.Ports {
		if port.NodePort != 0 && !forced {
			t.Fatalf("node port %d", port.NodePort)
		}
	}
}

// TestServicesPatchedMeansContained checks for random pairs that the changes listed, once made, leave nothing to change.
func TestServicesPatchedMeansContained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted := translateService(input(drawService(t, "wanted"))).Apply.(*corev1.Service)
		live := drawService(t, "live")
		if serviceMustRecreate(live, wanted) != "" {
			return
		}
		live.ObjectMeta = wanted.ObjectMeta
		patched := patchSpec(t, live, &corev1.Service{}, serviceChanges(live, wanted))
		if rest := serviceKind().Differences(patched, wanted); len(rest) > 0 {
			t.Fatalf("still to change: %v", rest)
		}
	})
}

// patchSpec makes changes as an API server would: on the JSON form.
func patchSpec(t interface{ Fatalf(string, ...any) }, live, into Object, changes []Change) Object {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, c := range changes {
		if c.Value == nil {
			if _, there, _ := unstructured.NestedFieldNoCopy(content, c.Path...); !there {
				t.Fatalf("field %s is to be removed, but is not there", strings.Join(c.Path, "."))
			}
			unstructured.RemoveNestedField(content, c.Path...)
			continue
		}
		raw, err := json.Marshal(c.Value)
		if err != nil {
			t.Fatalf("%v", err)
		}
		var value any
		if err := json.Unmarshal(raw, &value); err != nil {
			t.Fatalf("%v", err)
		}
		content["spec"].(map[string]any)[c.Path[1]] = value
	}
	raw, err := json.Marshal(content)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%v", err)
	}
	return into
}

// FuzzService feeds whatever two API servers could have stored.
func FuzzService(f *testing.F) {
	f.Add([]byte(`{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}}`), []byte(`{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30081}]}}`))
	f.Add([]byte(`{"spec":{"clusterIP":"None","externalIPs":["1.2.3.4"]}}`), []byte(`{"spec":{"type":"ExternalName","externalName":"a"}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"liqo.io/force-remote-node-port":"true"}},"spec":{"ports":[{"nodePort":1},{"nodePort":1}]}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, localRaw, liveRaw []byte) {
		local, live := &corev1.Service{}, &corev1.Service{}
		if json.Unmarshal(localRaw, local) != nil || json.Unmarshal(liveRaw, live) != nil {
			return
		}
		local.ObjectMeta = metav1.ObjectMeta{Annotations: local.Annotations}
		result := translateService(input(local))
		if result.Apply == nil {
			return
		}
		wanted := result.Apply.(*corev1.Service)
		leftToProvider(t, wanted.Spec, local.Annotations[offloadingv1beta1.ForceRemoteNodePortAnnotation] == "true")
		serviceMustRecreate(live, wanted)
		serviceKind().Differences(live, wanted)
		if !serviceKind().Contains(wanted, wanted) {
			t.Fatal("it does not contain itself")
		}
	})
}

func TestServiceRelax(t *testing.T) {
	forced := serviceOf(corev1.ServiceSpec{Ports: []corev1.ServicePort{port(80, 30080), port(81, 0)}})
	for name, tc := range map[string]struct {
		wanted  *corev1.Service
		refusal string
		relaxed bool
	}{
		"a node port that is taken":       {forced, "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated", true},
		"a node port out of range":        {forced, "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range", true},
		"something else":                  {forced, "spec.type: Unsupported value", false},
		"a node port that nobody forced":  {serviceOf(corev1.ServiceSpec{Ports: []corev1.ServicePort{port(80, 0)}}), "spec.ports[0].nodePort: Invalid value", false},
		"words that a provider invented":  {forced, "nodePort", false},
		"a Service that has no ports yet": {serviceOf(corev1.ServiceSpec{}), "spec.ports[0].nodePort: Invalid value", false},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.wanted.DeepCopy()
			relaxed, given := serviceRelax(tc.wanted, tc.refusal)
			if (relaxed != nil) != tc.relaxed || (given != "") != tc.relaxed {
				t.Fatalf("relaxed to %+v, %q", relaxed, given)
			}
			if diff := cmp.Diff(before, tc.wanted); diff != "" {
				t.Errorf("the wanted object was changed: %s", diff)
			}
			if relaxed != nil {
				if !strings.Contains(given, "(30080)") {
					t.Errorf("the words %q do not name the port", given)
				}
				leftToProvider(t, relaxed.(*corev1.Service).Spec, false)
			}
		})
	}
}

// A Service does without the annotations that a provider refuses; a load balancer is not made without them. A provider takes nothing
// else away by such words.
func TestServiceRelaxesAnnotations(t *testing.T) {
	annotated := func(kind corev1.ServiceType) *corev1.Service {
		s := serviceOf(corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{port(80, 0)}})
		s.Annotations = map[string]string{"a.example.org/b": "c", "metallb.io/loadBalancerIPs": "192.0.2.1", "note": "d", "liqo.io/origin-uid": "u"}
		return s
	}
	const words = `services "a" is forbidden: ValidatingAdmissionPolicy 'liqo-consumer-exposure' with binding 'liqo-consumer-exposure' denied request: ` +
		"ServiceAnnotationNotAllowed: consumers' Services may not have these annotations here: "
	for name, tc := range map[string]struct {
		kind    corev1.ServiceType
		refusal string
		given   string
	}{
		"both":                {corev1.ServiceTypeClusterIP, words + "metallb.io/loadBalancerIPs a.example.org/b", "it does not allow the annotations a.example.org/b, metallb.io/loadBalancerIPs"},
		"one after the other": {corev1.ServiceTypeNodePort, words + "a.example.org/b\n" + words + "metallb.io/loadBalancerIPs", "it does not allow the annotations a.example.org/b, metallb.io/loadBalancerIPs"},
		"a load balancer":     {corev1.ServiceTypeLoadBalancer, words + "a.example.org/b", ""},
		"a load balancer that may do without": {corev1.ServiceTypeLoadBalancer, words + "metallb.io/loadBalancerIPs a.example.org/b (ServiceAnnotationIgnored: load balancers are made without them, too)",
			"it does not allow the annotations a.example.org/b, metallb.io/loadBalancerIPs"},
		"our own, and the user's":   {corev1.ServiceTypeClusterIP, words + "liqo.io/origin-uid note", ""},
		"words that are no refusal": {corev1.ServiceTypeClusterIP, "a.example.org/b", ""},
		"what the Service has not":  {corev1.ServiceTypeClusterIP, words + "b.example.org/c", ""},
		"without saying which":      {corev1.ServiceTypeClusterIP, "ServiceAnnotationNotAllowed: consumers' Services may not have all of these annotations here", ""},
	} {
		t.Run(name, func(t *testing.T) {
			relaxed, given := serviceRelax(annotated(tc.kind), tc.refusal)
			if given != tc.given || (relaxed != nil) != (tc.given != "") {
				t.Fatalf("relaxed to %v, %q", relaxed, given)
			}
			if relaxed != nil {
				if diff := cmp.Diff(map[string]string{"note": "d", "liqo.io/origin-uid": "u"}, relaxed.GetAnnotations()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// IP families cross where their Service has IPv6 alone, and are given up where the provider has none.
func TestServiceFamilies(t *testing.T) {
	type families = []corev1.IPFamily
	single, prefer := corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack
	for name, tc := range map[string]struct {
		spec corev1.ServiceSpec
		want families
	}{
		"IPv6 alone":           {corev1.ServiceSpec{IPFamilies: families{"IPv6"}, IPFamilyPolicy: &single}, families{"IPv6"}},
		"IPv6 alone, headless": {corev1.ServiceSpec{IPFamilies: families{"IPv6"}, IPFamilyPolicy: &single, ClusterIP: "None"}, families{"IPv6"}},
		"IPv6 for want of two": {corev1.ServiceSpec{IPFamilies: families{"IPv6"}, IPFamilyPolicy: &prefer}, nil},
		"IPv4 alone":           {corev1.ServiceSpec{IPFamilies: families{"IPv4"}, IPFamilyPolicy: &single}, nil},
		"both":                 {corev1.ServiceSpec{IPFamilies: families{"IPv6", "IPv4"}, IPFamilyPolicy: &prefer}, nil},
		"an ExternalName":      {corev1.ServiceSpec{IPFamilies: families{"IPv6"}, Type: corev1.ServiceTypeExternalName, ExternalName: "a.b"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := translateService(input(serviceOf(tc.spec))).Apply.(*corev1.Service)
			if diff := cmp.Diff(tc.want, wanted.Spec.IPFamilies); diff != "" {
				t.Error(diff)
			}
			relaxed, given := serviceRelax(wanted, `Service "a" is invalid: spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`)
			if (relaxed != nil) != (tc.want != nil) || tc.want != nil && (given != "it has no addresses of family IPv6" || relaxed.(*corev1.Service).Spec.IPFamilies != nil) {
				t.Errorf("relaxed %v, %q", relaxed, given)
			}
		})
	}
}

// D7: who requires two IP families gets those that the provider has, and reads that it has only one.
func TestServicesThatRequireTwoFamilies(t *testing.T) {
	const refusal = `Service "a" is invalid: spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`
	single, prefer, require := corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
	for name, tc := range map[string]struct {
		policy  *corev1.IPFamilyPolicy
		refusal string
		relaxed bool
	}{
		"both required":             {&require, refusal, true},
		"both preferred":            {&prefer, refusal, false},
		"one":                       {&single, refusal, false},
		"no policy":                 {nil, refusal, false},
		"refused for another field": {&require, `spec.ports[0].port: Invalid value: 0`, false},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := translateService(input(serviceOf(corev1.ServiceSpec{IPFamilyPolicy: tc.policy}))).Apply.(*corev1.Service)
			if diff := cmp.Diff(tc.policy, wanted.Spec.IPFamilyPolicy); diff != "" {
				t.Error(diff)
			}
			relaxed, given := serviceRelax(wanted, tc.refusal)
			if (relaxed != nil) != tc.relaxed || (given == "it has addresses of one IP family alone") != tc.relaxed {
				t.Fatalf("relaxed %v, %q", relaxed, given)
			}
			if tc.relaxed && *relaxed.(*corev1.Service).Spec.IPFamilyPolicy != prefer {
				t.Errorf("policy %s", *relaxed.(*corev1.Service).Spec.IPFamilyPolicy)
			}
		})
	}
}
