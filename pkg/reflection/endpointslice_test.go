package reflection

import (
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// milan is a provider behind two virtual nodes that reaches pods of 10.0.0.0/8 under 100.0.0.0/8, and nothing else.
var milan = Provider{
	Nodes: map[string]bool{"milan": true, "milan-big": true},
	Addresses: seenAs(func(a netip.Addr) (netip.Addr, bool) {
		if !netip.MustParsePrefix("10.0.0.0/8").Contains(a) {
			return netip.Addr{}, false
		}
		four := a.As4()
		return netip.AddrFrom4([4]byte{100, four[1], four[2], four[3]}), true
	}),
}

// homeOf tells by a function whose pod has an address.
type homeOf func(netip.Addr) (string, netip.Addr, bool)

func (h homeOf) Home(seen netip.Addr) (string, netip.Addr, bool) { return h(seen) }

func slice(name string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "shop"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
	}
}

func endpoint(node string, addresses ...string) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: addresses, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}
	if node != "" {
		e.NodeName = &node
	}
	return e
}

// TestEndpointSliceGolden shows what becomes of a slice with endpoints everywhere.
func TestEndpointSliceGolden(t *testing.T) {
	for name, provider := range map[string]Provider{
		"mixed.identity": {Nodes: milan.Nodes}, "mixed.mapped": milan,
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile("testdata/endpointslice/mixed.yaml")
			if err != nil {
				t.Fatal(err)
			}
			local := &discoveryv1.EndpointSlice{}
			if err := yaml.UnmarshalStrict(raw, local); err != nil {
				t.Fatal(err)
			}
			result := translateEndpointSlice(Input{
				Local: local, Home: "rome", Remote: "milan", RemoteNamespace: "shop-rome", Provider: provider, Parent: &corev1.Service{},
				NotReflected: NotReflected{Labels: []string{"team", discoveryv1.LabelServiceName}},
			})
			goldenPod(t, "testdata/endpointslice/"+name+".golden", result)
		})
	}
}

func TestWhichEndpointSlicesCross(t *testing.T) {
	service := func(annotations map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "demo", Annotations: annotations}}
	}
	skip := map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}
	allow := map[string]string{offloadingv1beta1.AllowReflectionAnnotation: ""}
	plain := func() *discoveryv1.EndpointSlice { return slice("a", endpoint("worker", "10.0.0.1")) }
	labelled := func(key, value string) *discoveryv1.EndpointSlice {
		s := plain()
		s.Labels[key] = value
		return s
	}
	annotated := func(annotations map[string]string) *discoveryv1.EndpointSlice {
		s := plain()
		s.Annotations = annotations
		return s
	}
	fqdn := plain()
	fqdn.AddressType = discoveryv1.AddressTypeFQDN
	const controller = "endpointslice-controller.k8s.io"
	selecting := service(nil)
	selecting.Spec.Selector = map[string]string{"app": "shop"}
	byKubernetes := func(manager string, more ...string) *discoveryv1.EndpointSlice {
		s := slice("a")
		s.Labels[discoveryv1.LabelManagedBy] = manager
		for _, label := range more {
			s.Labels[label] = "milan"
		}
		return s
	}
	crowded := slice("a")
	crowded.Ports = make([]discoveryv1.EndpointPort, maxSlicePorts+1)
	many := slice("a", slices.Repeat([]discoveryv1.Endpoint{endpoint("worker", "10.0.0.1")}, maxSliceEndpoints+1)...)
	for name, tc := range map[string]struct {
		slice  *discoveryv1.EndpointSlice
		parent *corev1.Service
		policy offloadingv1beta1.ReflectionType
		reason string
	}{
		"an ordinary one":                            {plain(), service(nil), "", ""},
		"without its Service":                        {plain(), nil, "", offloadingv1beta1.ReasonServiceNotReflected},
		"with a Service that stays":                  {plain(), service(skip), "", offloadingv1beta1.ReasonServiceNotReflected},
		"with a Service that is not allowed":         {plain(), service(nil), offloadingv1beta1.AllowList, offloadingv1beta1.ReasonServiceNotReflected},
		"with a Service that is allowed":             {plain(), service(allow), offloadingv1beta1.AllowList, ""},
		"itself kept at home":                        {annotated(skip), service(nil), "", offloadingv1beta1.ReasonReflectionDisabled},
		"itself allowed":                             {annotated(allow), service(nil), offloadingv1beta1.AllowList, ""},
		"itself kept at home, of an allowed Service": {annotated(skip), service(allow), offloadingv1beta1.AllowList, offloadingv1beta1.ReasonReflectionDisabled},
		"made by a reflection":                       {labelled(discoveryv1.LabelManagedBy, offloadingv1beta1.EndpointSliceManager), service(nil), "", offloadingv1beta1.ReasonNotReflectable},
		"made of a shadow":                           {labelled(offloadingv1beta1.ManagedByLabel, offloadingv1beta1.ManagedByShadowEndpointSlice), service(nil), "", offloadingv1beta1.ReasonNotReflectable},
		"that came from the provider":                {labelled(offloadingv1beta1.OriginLabel, "milan"), service(nil), "", offloadingv1beta1.ReasonNotReflectable},
		"of names":                                   {fqdn, service(nil), "", offloadingv1beta1.ReasonNotReflectable},
		"too large":                                  {many, service(nil), "", offloadingv1beta1.ReasonTooLarge},
		"empty":                                      {slice("a"), service(nil), "", ""},
		"empty, of a Service that stays":             {slice("a"), service(skip), "", offloadingv1beta1.ReasonServiceNotReflected},
		"empty, that came from the provider":         {byKubernetes("slice.example", offloadingv1beta1.OriginLabel), service(nil), "", offloadingv1beta1.ReasonNotReflectable},
		"empty, with too many ports":                 {crowded, service(nil), "", offloadingv1beta1.ReasonTooLarge},
		"empty, as the provider makes one itself":    {byKubernetes(controller), selecting, "", offloadingv1beta1.ReasonNoRemoteEndpoints},
		"empty, of another controller":               {byKubernetes("endpointslicemirroring-controller.k8s.io"), service(nil), "", ""},
		"empty, of a selector that was taken away":   {byKubernetes(controller), service(nil), "", ""},
		"empty, written by a user for a selector":    {slice("a"), selecting, "", ""},
		"of the provider's pods only":                {slice("a", endpoint("milan", "10.0.0.1")), service(nil), "", offloadingv1beta1.ReasonNoRemoteEndpoints},
		"of addresses without translation":           {slice("a", endpoint("worker", "8.8.8.8")), service(nil), "", offloadingv1beta1.ReasonNoRemoteEndpoints},
		"without any Service":                        {labelled(discoveryv1.LabelServiceName, ""), service(nil), "", offloadingv1beta1.ReasonServiceNotReflected},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(tc.slice, func(in *Input) { in.ParentPolicy, in.Provider = tc.policy, milan })
			if tc.parent != nil {
				in.Parent = tc.parent
			}
			result := translateEndpointSlice(in)
			got := ""
			if result.Skip != nil {
				got = result.Skip.Reason
			}
			if got != tc.reason || (result.Apply == nil) != (tc.reason != "") {
				t.Errorf("got %+v, want reason %q", result.Skip, tc.reason)
			}
		})
	}
	none := translateEndpointSlice(input(slice("a"), func(in *Input) { in.Parent, in.Provider = service(nil), milan })).Apply
	one := translateEndpointSlice(input(plain(), func(in *Input) { in.Parent, in.Provider = service(nil), milan })).Apply
	if got := endpointSliceChanges(one, none); len(got) != 1 || got[0].Value != nil {
		t.Errorf("the last endpoint that goes changes %+v, want the endpoints to be removed", got)
	}
	if got := endpointSliceChanges(none, none); len(got) != 0 {
		t.Errorf("an empty slice that is in step changes %+v", got)
	}
	apiServer := slice("kubernetes", endpoint("", "10.0.0.1"))
	apiServer.Labels[discoveryv1.LabelServiceName] = "kubernetes"
	in := input(apiServer, func(in *Input) { in.Parent = service(nil) })
	apiServer.Namespace = "default"
	if result := translateEndpointSlice(in); result.Skip == nil {
		t.Error("the API server's own slice crosses")
	}
}

// TestServicesWithoutLocalEndpoints: a node serves what comes from outside with the pods on it, if the Service wants it so.
func TestServicesWithoutLocalEndpoints(t *testing.T) {
	local, there := corev1.ServiceExternalTrafficPolicyLocal, endpoint("milan", "10.0.0.1")
	for name, tc := range map[string]struct {
		policy    corev1.ServiceExternalTrafficPolicy
		endpoints []discoveryv1.Endpoint
		told      bool
	}{
		"all at the provider":                 {local, []discoveryv1.Endpoint{there, endpoint("milan-big", "10.0.0.2")}, true},
		"all at the provider, or on nobody":   {local, []discoveryv1.Endpoint{there, endpoint("", "10.0.0.2")}, true},
		"one at home":                         {local, []discoveryv1.Endpoint{there, endpoint("worker", "10.0.0.2")}, false},
		"none":                                {local, nil, false},
		"on nobody":                           {local, []discoveryv1.Endpoint{endpoint("", "10.0.0.2")}, false},
		"all at the provider, policy Cluster": {corev1.ServiceExternalTrafficPolicyCluster, []discoveryv1.Endpoint{there}, false},
		"all at the provider, no policy":      {"", []discoveryv1.Endpoint{there}, false},
	} {
		t.Run(name, func(t *testing.T) {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: corev1.ServiceSpec{ExternalTrafficPolicy: tc.policy}}
			siblings := func() (all []Object) {
				for _, e := range tc.endpoints {
					all = append(all, slice("a", e))
				}
				return append(all, slice("empty"))
			}
			reason, message := whyNothingComesFromOutside(Input{Parent: service, Remote: "milan", Provider: milan}, siblings)
			if told := reason == offloadingv1beta1.ReasonNoLocalEndpoints && strings.Contains(message, `cluster "milan"`); told != tc.told || !told && reason+message != "" {
				t.Errorf("got %q %q, want it told: %v", reason, message, tc.told)
			}
		})
	}
}

// TestThreeClusters: what runs at one provider is told to the other, as the consumer sees it.
func TestThreeClusters(t *testing.T) {
	local := slice("a", endpoint("milan", "10.20.0.1"), endpoint("turin", "10.30.0.1"))
	for remote, want := range map[string]string{"milan": "10.30.0.1", "turin": "10.20.0.1"} {
		in := input(local, func(in *Input) {
			in.Remote, in.Parent = remote, &corev1.Service{}
			in.Provider.Nodes = map[string]bool{remote: true}
		})
		got := translateEndpointSlice(in).Apply.(*offloadingv1beta1.ShadowEndpointSlice).Spec.Template.Endpoints
		if len(got) != 1 || !slices.Equal(got[0].Addresses, []string{want}) || *got[0].NodeName != "rome" {
			t.Errorf("cluster %s is told of %+v", remote, got)
		}
	}
}

// A provider is told the addresses that pods at others have there, of Services that want it, in the order of the endpoints.
func TestDirectConnections(t *testing.T) {
	local := slice("a", endpoint("worker", "10.0.0.1"), endpoint("turin", "10.30.0.2"), endpoint("naples", "10.40.0.1"), endpoint("turin", "10.30.0.1"),
		endpoint("milan", "10.20.0.1"), endpoint("", "10.20.0.9"))
	local.Annotations = map[string]string{offloadingv1beta1.DirectConnectionsDataAnnotation: `{"lie":["10.1.1.1"]}`}
	homes := map[string]string{"10.30": "turin", "10.40": "naples", "10.20": "milan"}
	for name, tc := range map[string]struct {
		annotations map[string]string
		addresses   []string
		data        string
	}{
		"wanted": {map[string]string{offloadingv1beta1.UseDirectConnectionsAnnotation: "true"},
			[]string{"10.40.0.1", "10.30.0.1", "10.30.0.2", "10.0.0.1", "10.20.0.9"}, `{"naples":["10.99.0.1"],"turin":["10.99.0.1","10.99.0.2"]}`},
		"not wanted": {map[string]string{offloadingv1beta1.UseDirectConnectionsAnnotation: "false"},
			[]string{"10.0.0.1", "10.20.0.9", "10.30.0.1", "10.30.0.2", "10.40.0.1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(local, func(in *Input) {
				in.Remote, in.Parent = "milan", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
				in.Provider.Nodes = map[string]bool{"milan": true}
				in.Provider.Elsewhere = homeOf(func(a netip.Addr) (string, netip.Addr, bool) {
					four := a.As4()
					cluster, found := homes[a.String()[:5]]
					return cluster, netip.AddrFrom4([4]byte{10, 99, four[2], four[3]}), found
				})
			})
			got := translateEndpointSlice(in).Apply.(*offloadingv1beta1.ShadowEndpointSlice)
			var addresses []string
			for _, e := range got.Spec.Template.Endpoints {
				addresses = append(addresses, e.Addresses...)
			}
			if diff := cmp.Diff(tc.addresses, addresses); diff != "" {
				t.Error(diff)
			}
			if data := got.Annotations[offloadingv1beta1.DirectConnectionsDataAnnotation]; data != tc.data {
				t.Errorf("the provider is told %s, want %s", data, tc.data)
			}
		})
	}
}

func anyEndpoint(t *rapid.T) discoveryv1.Endpoint {
	e := endpoint(rapid.SampledFrom([]string{"", "worker", "milan", "turin"}).Draw(t, "node"),
		rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.1", "10.1.2.3", "8.8.8.8", "fd00::1", "nonsense", "fe80::1%eth0", ""}), 0, 3).Draw(t, "addresses")...)
	yes, no := ptr.To(true), ptr.To(false)
	e.Conditions = discoveryv1.EndpointConditions{
		Ready: rapid.SampledFrom([]*bool{nil, yes, no}).Draw(t, "ready"), Serving: rapid.SampledFrom([]*bool{nil, yes, no}).Draw(t, "serving"),
		Terminating: rapid.SampledFrom([]*bool{nil, yes, no}).Draw(t, "terminating"),
	}
	if rapid.Bool().Draw(t, "target") {
		e.TargetRef = &corev1.ObjectReference{Kind: "Pod", Namespace: "demo", Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pod"), UID: "u", ResourceVersion: "1"}
	}
	return e
}

func TestEndpointSliceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		local := slice("a", rapid.SliceOfN(rapid.Custom(anyEndpoint), 0, 6).Draw(t, "endpoints")...)
		in := input(local, func(in *Input) { in.Provider, in.Parent = milan, &corev1.Service{} })
		before := local.DeepCopy()
		checkEndpointSlice(t, in)
		if diff := cmp.Diff(before, local); diff != "" {
			t.Fatalf("the local slice was changed: %s", diff)
		}
		first := translateEndpointSlice(in)
		shuffled := local.DeepCopy()
		slices.Reverse(shuffled.Endpoints)
		second := in
		second.Local = shuffled
		if first.Apply != nil {
			again := translateEndpointSlice(second).Apply
			if changes := endpointSliceKind().Differences(first.Apply, translateEndpointSlice(in).Apply); len(changes) > 0 {
				t.Fatalf("translating twice differs in %v", changes)
			}
			if again == nil || len(again.(*offloadingv1beta1.ShadowEndpointSlice).Spec.Template.Endpoints) != len(first.Apply.(*offloadingv1beta1.ShadowEndpointSlice).Spec.Template.Endpoints) {
				t.Fatal("the order of the endpoints matters")
			}
		}
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

// checkEndpointSlice checks what holds of every translation.
func checkEndpointSlice(t failer, in Input) {
	result := translateEndpointSlice(in)
	if (result.Apply == nil) == (result.Skip == nil) {
		t.Fatalf("neither or both: %+v", result)
	}
	if result.Apply == nil {
		return
	}
	remote := result.Apply.(*offloadingv1beta1.ShadowEndpointSlice)
	if !IsOurs(remote, in.Home, in.Remote) || remote.Labels[discoveryv1.LabelManagedBy] != offloadingv1beta1.EndpointSliceManager ||
		remote.Labels[discoveryv1.LabelServiceName] == "" {
		t.Fatalf("metadata is %+v", remote.ObjectMeta)
	}
	for _, e := range remote.Spec.Template.Endpoints {
		if e.DeprecatedTopology != nil || len(e.Addresses) == 0 ||
			e.NodeName == nil || *e.NodeName != in.Home || e.Hints != nil && len(e.Hints.ForNodes) > 0 {
			t.Fatalf("endpoint %+v", e)
		}
		if target := e.TargetRef; target != nil && (target.UID != "" || target.ResourceVersion != "" || target.Namespace != in.RemoteNamespace) {
			t.Fatalf("target %+v", target)
		}
		for _, a := range e.Addresses {
			if !netip.MustParsePrefix("100.0.0.0/8").Contains(netip.MustParseAddr(a)) {
				t.Fatalf("address %s is not a translated one", a)
			}
		}
	}
}

func FuzzEndpointSlice(f *testing.F) {
	raw, err := json.Marshal(slice("a", endpoint("worker", "10.0.0.1"), endpoint("milan", "10.0.0.2")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		local := &discoveryv1.EndpointSlice{}
		if json.Unmarshal(raw, local) != nil {
			t.Skip()
		}
		checkEndpointSlice(t, input(local, func(in *Input) { in.Provider, in.Parent = milan, &corev1.Service{} }))
	})
}

// A pod at the provider that the Service may not select there, because a label stays at home, is named to the provider, which knows its address.
func TestPodsThatTheirServiceDoesNotSelectThereAreNamed(t *testing.T) {
	pod := endpoint("milan-big", "8.8.4.4")
	pod.TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "web-0", Namespace: "demo", UID: "1"}
	named := discoveryv1.Endpoint{Addresses: pod.Addresses, Conditions: pod.Conditions, NodeName: ptr.To("milan"),
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "web-0", Namespace: "demo-rome"}}
	for name, tc := range map[string]struct {
		selector map[string]string
		not      []string
		want     []discoveryv1.Endpoint
	}{
		"a label by which pods get something": {map[string]string{"app": "web", "dapr.io/app-id": "web"}, nil, []discoveryv1.Endpoint{named}},
		"a label that the user keeps":         {map[string]string{"team": "a"}, []string{"team"}, []discoveryv1.Endpoint{named}},
		"labels that cross":                   {map[string]string{"app": "web", "cnpg.io/cluster": "db"}, []string{"team"}, nil},
		"a label of ours":                     {map[string]string{"app": "web", offloadingv1beta1.LocalPodLabel: "true"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(slice("a", pod, endpoint("milan", "10.0.0.9")), func(in *Input) {
				in.Provider, in.Parent, in.RemoteNamespace = milan, &corev1.Service{Spec: corev1.ServiceSpec{Selector: tc.selector}}, "demo-rome"
				in.NotReflected.Labels, in.Home, in.Remote = tc.not, "rome", "milan"
			})
			var got []discoveryv1.Endpoint
			if result := translateEndpointSlice(in); result.Apply != nil {
				got = result.Apply.(*offloadingv1beta1.ShadowEndpointSlice).Spec.Template.Endpoints
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
