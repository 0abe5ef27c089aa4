package ip

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
)

func asking() *ipamv1alpha1.IP {
	return &ipamv1alpha1.IP{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "database"},
		Spec: ipamv1alpha1.IPSpec{IP: "192.168.7.7", ServiceTemplate: &ipamv1alpha1.ServiceTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "database"}},
			Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "none"}, Ports: []corev1.ServicePort{
				{Name: "sql", Port: 5432}, {Name: "web", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP},
			}},
		}},
		Status: ipamv1alpha1.IPStatus{IP: "10.70.0.1"},
	}
}

// What the API server fills in is no difference: otherwise the Service would be written again and again.
func TestAServiceThatIsThereIsNotWrittenAgain(t *testing.T) {
	made := &corev1.Service{}
	fillService(made, asking())
	if len(made.Spec.Selector) > 0 {
		t.Error("the Service selects pods")
	}
	stored := made.DeepCopy()
	stored.Spec.Type, stored.Spec.SessionAffinity = corev1.ServiceTypeNodePort, corev1.ServiceAffinityNone
	stored.Spec.ClusterIP, stored.Spec.ClusterIPs = "10.96.0.7", []string{"10.96.0.7"}
	stored.Spec.IPFamilies, stored.Spec.IPFamilyPolicy = []corev1.IPFamily{corev1.IPv4Protocol}, ptr.To(corev1.IPFamilyPolicySingleStack)
	stored.Spec.InternalTrafficPolicy, stored.Spec.ExternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster), corev1.ServiceExternalTrafficPolicyCluster
	stored.Spec.Ports[0].NodePort, stored.Spec.Ports[1].NodePort = 30001, 30002
	stored.Labels["somebody"] = "else"
	again := stored.DeepCopy()
	fillService(again, asking())
	if diff := cmp.Diff(stored, again); diff != "" {
		t.Error(diff)
	}
	moved := asking()
	moved.Spec.ServiceTemplate.Spec.Ports[1].Port = 81
	fillService(again, moved)
	if again.Spec.Ports[1].Port != 81 || again.Spec.ClusterIP != "10.96.0.7" {
		t.Errorf("a change of the template became %+v", again.Spec)
	}
}

// No node of this cluster has a way to the address for peers.
func TestTheSliceLeadsToTheAddress(t *testing.T) {
	got := &discoveryv1.EndpointSlice{}
	fillSlice(got, asking())
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			"liqo.io/managed": "true", "kubernetes.io/service-name": "database", "endpointslice.kubernetes.io/managed-by": "ip.ipam.liqo.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.168.7.7"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr.To("sql"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](5432)},
			{Name: ptr.To("web"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](8080)},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	again := got.DeepCopy()
	fillSlice(again, asking())
	if diff := cmp.Diff(got, again); diff != "" {
		t.Error(diff)
	}
}

func TestWhyNotServed(t *testing.T) {
	for name, tc := range map[string]struct {
		ref    *corev1.ObjectReference
		served bool
	}{
		"nothing":                        {nil, true},
		"the external range":             {&corev1.ObjectReference{Namespace: "liqo", Name: "external-cidr"}, true},
		"without a namespace":            {&corev1.ObjectReference{Name: "external-cidr"}, true},
		"of another namespace":           {&corev1.ObjectReference{Namespace: "shop", Name: "external-cidr"}, false},
		"a range that peers do not know": {&corev1.ObjectReference{Namespace: "liqo", Name: "reserved"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			one := asking()
			one.Spec.NetworkRef = tc.ref
			if why := whyNotServed(one, "liqo"); (why == "") != tc.served {
				t.Errorf("said %q", why)
			}
		})
	}
}
