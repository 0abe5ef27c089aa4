package reflection

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestMissing(t *testing.T) {
	shop := func(adjust func(*corev1.ServiceSpec)) Object {
		s := &corev1.Service{Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "shop"}, TrafficDistribution: ptr.To("PreferClose"),
			Ports: []corev1.ServicePort{{Port: 80, AppProtocol: ptr.To("h2c")}, {Port: 81, AppProtocol: ptr.To("h2c")}},
		}}
		adjust(&s.Spec)
		return s
	}
	slice := func(hints *discoveryv1.EndpointHints) Object {
		s := &offloadingv1beta1.ShadowEndpointSlice{}
		s.Spec.Template.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Hints: hints}}
		return s
	}
	kind := func(name string) Kind {
		k, known := Lookup(name)
		if !known {
			t.Fatal(name)
		}
		return k
	}
	for name, tc := range map[string]struct {
		kind         Kind
		live, wanted Object
		want         []string
		enough       bool // what is missing is all that differs
	}{
		"nothing": {kind("service"), shop(func(*corev1.ServiceSpec) {}), shop(func(*corev1.ServiceSpec) {}), nil, true},
		"a field, and one in both entries of a list": {kind("service"), shop(func(s *corev1.ServiceSpec) {
			s.TrafficDistribution, s.Ports[0].AppProtocol, s.Ports[1].AppProtocol = nil, nil, nil
		}), shop(func(*corev1.ServiceSpec) {}), []string{"spec.ports[].appProtocol", "spec.trafficDistribution"}, true},
		"another value":     {kind("service"), shop(func(s *corev1.ServiceSpec) { s.TrafficDistribution = ptr.To("x") }), shop(func(*corev1.ServiceSpec) {}), nil, false},
		"one entry less":    {kind("service"), shop(func(s *corev1.ServiceSpec) { s.Ports = s.Ports[:1] }), shop(func(*corev1.ServiceSpec) {}), nil, false},
		"content of a map":  {kind("service"), shop(func(s *corev1.ServiceSpec) { s.Selector = nil }), shop(func(*corev1.ServiceSpec) {}), nil, false},
		"more than wanted":  {kind("service"), shop(func(*corev1.ServiceSpec) {}), shop(func(s *corev1.ServiceSpec) { s.TrafficDistribution = nil }), nil, false},
		"deep in our kinds": {kind("endpointslice"), slice(nil), slice(&discoveryv1.EndpointHints{}), []string{"spec.template.endpoints[].hints"}, true},
		"data":              {kind("configmap"), &corev1.ConfigMap{}, &corev1.ConfigMap{Data: map[string]string{"a": "1"}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.wanted.DeepCopyObject()
			fields, rest := Missing(tc.live, tc.wanted, tc.kind.Differences(tc.live, tc.wanted))
			if diff := cmp.Diff(tc.want, fields, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if enough := tc.kind.Contains(tc.live, rest); enough != tc.enough {
				t.Errorf("without them nothing differs: %t, want %t", enough, tc.enough)
			}
			if diff := cmp.Diff(before, tc.wanted); diff != "" {
				t.Errorf("the wanted object was changed: %s", diff)
			}
		})
	}
}

// What travels of each kind is walked without harm, whatever the types of its fields.
func TestMissingOfAllKinds(t *testing.T) {
	for _, kind := range Kinds() {
		twin := kind.RemoteKind()
		live, wanted := twin.NewObject(), twin.NewObject()
		wanted.SetCreationTimestamp(metav1.NewTime(time.Unix(1, 0)))
		fields, _ := Missing(live, wanted, []Change{{Path: []string{"spec"}, Value: "x"}, {Path: []string{"no", "such"}, Value: "x"}, {Path: []string{"metadata"}, Value: "x"}})
		if len(fields) > 0 {
			t.Errorf("kind %s misses %v", kind.Name, fields)
		}
	}
}

func TestNotes(t *testing.T) {
	many := make([]string, 30)
	for i := range many {
		many[i] = "spec." + strings.Repeat("x", 100)
	}
	for name, tc := range map[string]struct {
		fields []string
		want   string
	}{
		"one": {[]string{"spec.a"}, "spec.a"},
		"two": {[]string{"spec.a", "spec.b"}, "spec.a, spec.b"},
	} {
		if got := NoteFor(tc.fields); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	long := NoteFor(many)
	object := Noted(&corev1.Service{}, long)
	if len(long) > maxNote || NoteOf(object) != long || !strings.HasSuffix(long, " and 22 more") {
		t.Errorf("a long note is %q, read as %q", long, NoteOf(object))
	}
	both := WithoutPart(object, "its node ports")
	if NoteOf(both) != long || RefusedPartOf(both) != "its node ports" || RefusedPartOf(object) != "" {
		t.Errorf("two notes are read as %q and %q", NoteOf(both), RefusedPartOf(both))
	}
	object.GetAnnotations()[offloadingv1beta1.DroppedFieldsAnnotation] = strings.Repeat("x", maxNote+1)
	if NoteOf(object) != "" {
		t.Error("a note of any length is read")
	}
	if live := Noted(&corev1.Service{}, "spec.a"); len(metadataChanges(live, &corev1.Service{})) == 0 {
		t.Error("a note that is not wanted any more stays")
	}
}
