package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

func serviceOf(kind corev1.ServiceType, change func(*corev1.Service)) *corev1.Service {
	service := &corev1.Service{Spec: corev1.ServiceSpec{
		Type: kind, ClusterIP: "10.96.0.9", Ports: []corev1.ServicePort{{Port: 51840, NodePort: 30840, Protocol: corev1.ProtocolUDP}},
	}}
	if change != nil {
		change(service)
	}
	return service
}

func nodeOf(name string, ready corev1.ConditionStatus, labels map[string]string, addresses ...corev1.NodeAddress) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{
		Addresses: addresses, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}
}

func inside(address string) corev1.NodeAddress {
	return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address}
}

func outside(address string) corev1.NodeAddress {
	return corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: address}
}

func TestEndpoint(t *testing.T) {
	nodes := []corev1.Node{
		nodeOf("d", corev1.ConditionTrue, nil, inside("172.18.0.5")),
		nodeOf("a", corev1.ConditionTrue, map[string]string{corev1.LabelNodeExcludeBalancers: ""}, inside("172.18.0.2")),
		nodeOf("b", corev1.ConditionFalse, nil, inside("172.18.0.3")),
		nodeOf("c", corev1.ConditionTrue, nil, inside("172.18.0.4"), outside("192.0.2.4"), corev1.NodeAddress{Type: corev1.NodeHostName, Address: "c"}),
		nodeOf("milan", corev1.ConditionTrue, map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}, inside("10.0.0.1")),
	}
	annotated := func(key, value string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Annotations = map[string]string{key: value} }
	}
	at := func(port networkingv1beta1.Port, addresses ...networkingv1beta1.Host) *networkingv1beta1.EndpointStatus {
		return &networkingv1beta1.EndpointStatus{Addresses: addresses, Port: port, Protocol: corev1.ProtocolUDP}
	}
	for name, tc := range map[string]struct {
		service *corev1.Service
		nodes   []corev1.Node
		want    *networkingv1beta1.EndpointStatus
		missing string
	}{
		"an address of the cluster":     {serviceOf(corev1.ServiceTypeClusterIP, nil), nil, at(51840, "10.96.0.9"), ""},
		"no address of the cluster yet": {serviceOf("", func(s *corev1.Service) { s.Spec.ClusterIP = "" }), nil, nil, "its Service has no address of the cluster"},
		"without an address by wish":    {serviceOf("", func(s *corev1.Service) { s.Spec.ClusterIP = "None" }), nil, nil, "its Service has no address of the cluster"},
		"a load balancer": {serviceOf(corev1.ServiceTypeLoadBalancer, func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}, {Hostname: "LB.example.com"}, {IP: "192.0.2.1"}, {Hostname: "no name"}}
		}), nil, at(51840, "192.0.2.1", "lb.example.com"), ""},
		"a load balancer that has none yet": {serviceOf(corev1.ServiceTypeLoadBalancer, nil), nodes, nil, unbalanced},
		"ports of nodes: those that are ready, those towards the Internet first": {
			serviceOf(corev1.ServiceTypeNodePort, nil), nodes, at(30840, "192.0.2.4", "172.18.0.4", "172.18.0.5", "172.18.0.2"), ""},
		"ports of three nodes": {serviceOf(corev1.ServiceTypeNodePort, nil), []corev1.Node{
			nodeOf("4", corev1.ConditionTrue, nil, inside("172.18.0.4")), nodeOf("3", corev1.ConditionTrue, nil, inside("172.18.0.3")),
			nodeOf("2", corev1.ConditionTrue, nil, inside("172.18.0.2")), nodeOf("1", corev1.ConditionTrue, nil, inside("fd00::1")),
		}, at(30840, "fd00::1", "172.18.0.2", "172.18.0.3"), ""},
		"a port of the pod's node alone": {serviceOf(corev1.ServiceTypeNodePort, func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}), nodes, at(30840, "172.18.0.5"), ""},
		"no node is ready":           {serviceOf(corev1.ServiceTypeNodePort, nil), nodes[2:3], nil, "no node that has its port is ready"},
		"no port of nodes yet":       {serviceOf(corev1.ServiceTypeNodePort, func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 0 }), nodes, nil, "its Service has no port of nodes yet"},
		"no port":                    {serviceOf("", func(s *corev1.Service) { s.Spec.Ports = nil }), nodes, nil, "its Service has no port"},
		"another address":            {serviceOf(corev1.ServiceTypeLoadBalancer, annotated(networkingv1beta1.OverrideAddressAnnotation, "gw.example.com, 192.0.2.7")), nil, at(51840, "gw.example.com", "192.0.2.7"), ""},
		"another address that is no": {serviceOf("", annotated(networkingv1beta1.OverrideAddressAnnotation, "999.1.1.1")), nil, nil, "annotation liqo.io/override-address has neither an address nor a DNS name"},
		"another port":               {serviceOf("", annotated(networkingv1beta1.OverridePortAnnotation, "443")), nil, at(443, "10.96.0.9"), ""},
		"another port that is none":  {serviceOf("", annotated(networkingv1beta1.OverridePortAnnotation, "0")), nil, nil, "annotation liqo.io/override-port has no port"},
		"another port of no address": {serviceOf(corev1.ServiceTypeLoadBalancer, annotated(networkingv1beta1.OverridePortAnnotation, "443")), nil, nil, unbalanced},
	} {
		t.Run(name, func(t *testing.T) {
			got, missing := Endpoint(tc.service, tc.nodes, "d")
			if diff := cmp.Diff(tc.want, got); diff != "" || missing != tc.missing {
				t.Errorf("missing %q, want %q; %s", missing, tc.missing, diff)
			}
		})
	}
}

func podOf(name, address string, change func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{
		PodIP: address, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}}
	if change != nil {
		change(&pod)
	}
	return pod
}

func TestActivePod(t *testing.T) {
	leaving := podOf("leaving", "10.1.0.1", func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) })
	starting := podOf("starting", "10.1.0.2", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })
	unknown := podOf("unknown", "", nil)
	a, b := podOf("a", "10.1.0.3", nil), podOf("b", "10.1.0.4", nil)
	active := podOf("z", "10.1.0.5", func(p *corev1.Pod) { p.Labels[networkingv1beta1.ActiveLabel] = "true" })
	for name, tc := range map[string]struct {
		pods   []corev1.Pod
		before string
		want   string
	}{
		"none":                        {nil, "10.1.0.1", ""},
		"none that runs":              {[]corev1.Pod{leaving, unknown}, "10.1.0.1", ""},
		"one that waits for nodes":    {[]corev1.Pod{leaving, starting, unknown}, "10.1.0.1", "starting"},
		"the one that is ready":       {[]corev1.Pod{leaving, starting, b}, "", "b"},
		"the first of several":        {[]corev1.Pod{b, a}, "", "a"},
		"the one that had the tunnel": {[]corev1.Pod{a, b}, "10.1.0.4", "b"},
		"the one that says it has it": {[]corev1.Pod{a, b, active}, "10.1.0.4", "z"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ActivePod(tc.pods, &networkingv1beta1.InternalGatewayEndpoint{IP: ptr.To(networkingv1beta1.IP(tc.before))})
			if name := ptr.Deref(got, corev1.Pod{}).Name; name != tc.want {
				t.Errorf("got %q, want %q", name, tc.want)
			}
		})
	}
}

func TestWhyNoPod(t *testing.T) {
	pulling := podOf("p", "", func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}}}}
	})
	pending := podOf("p", "", func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"}}
	})
	for want, pods := range map[string][]corev1.Pod{
		"": nil, "pod p: ErrImagePull: no such image": {pulling}, "pod p: Unschedulable: no room": {pending},
	} {
		if got := WhyNoPod(pods); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	type object = map[string]any
	live := object{"a": "x", "list": []any{object{"name": "c", "port": 1.0}}, "added": true}
	for name, tc := range map[string]struct {
		want any
		same bool
	}{
		"nothing":              {object{}, true},
		"all":                  {live, true},
		"a part":               {object{"list": []any{object{"name": "c"}}}, true},
		"what is empty":        {object{"b": "", "c": 0.0, "d": false, "e": nil, "f": []any{}, "g": object{}, "h": object{"i": 0.0}}, true},
		"another value":        {object{"a": "y"}, false},
		"another in a list":    {object{"list": []any{object{"name": "d"}}}, false},
		"one more in the list": {object{"list": []any{object{"name": "c"}, object{"name": "d"}}}, false},
		"one that is missing":  {object{"z": "z"}, false},
		"one below it":         {object{"z": object{"z": 1.0}}, false},
		"another type":         {object{"a": []any{"x"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := covers(live, tc.want); got != tc.same {
				t.Errorf("got %v", got)
			}
		})
	}
	if covers([]any{"a", "b"}, []any{"a"}) {
		t.Error("what somebody added to a list is not noticed")
	}
}
