package reflection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// TestServiceTypes walks a Service through its types.
func TestServiceTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "service")
	w.put(specimens["service"].make("walker"))
	uid := w.converged("walker").GetUID()
	affinity := &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To[int32](60)}}
	for _, step := range []struct {
		name   string
		change func(*corev1.Service)
	}{
		{"NodePort", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }},
		{"LoadBalancer with a health check port", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
			s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
		}},
		{"session affinity", func(s *corev1.Service) {
			s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityClientIP, affinity
		}},
		{"ClusterIP, with another port", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalTrafficPolicy, s.Spec.LoadBalancerSourceRanges, s.Spec.HealthCheckNodePort = corev1.ServiceTypeClusterIP, "", nil, 0
			s.Spec.AllocateLoadBalancerNodePorts, s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = nil, corev1.ServiceAffinityNone, nil
			s.Spec.Ports = []corev1.ServicePort{{Name: "b", Port: 81}}
		}},
		{"ExternalName", toExternalName},
		{"LoadBalancer", func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeLoadBalancer, "" }},
		{"ExternalName again", func(s *corev1.Service) {
			toExternalName(s)
			s.Spec.ExternalTrafficPolicy, s.Spec.AllocateLoadBalancerNodePorts = "", nil
			for i := range s.Spec.Ports {
				s.Spec.Ports[i].NodePort = 0
			}
		}},
		{"headless", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP = corev1.ServiceTypeClusterIP, "", corev1.ClusterIPNone
		}},
	} {
		t.Logf("becoming %s", step.name)
		w.editLocal("walker", of(step.change))
		remote := w.converged("walker").(*corev1.Service)
		if remote.UID != uid {
			t.Errorf("%s: the Service was replaced, though the API server changes it in place", step.name)
			uid = remote.UID
		}
	}
}

// TestNodePortsStay changes the ports of a Service without giving the allocated ones up.
func TestNodePortsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "service")
	service := specimens["service"].make("nodeport").(*corev1.Service)
	service.Spec.Type = corev1.ServiceTypeNodePort
	w.put(service)
	before := w.converged("nodeport").(*corev1.Service)
	w.editLocal("nodeport", of(func(s *corev1.Service) {
		s.Spec.Ports = append([]corev1.ServicePort{{Name: "b", Port: 443}}, s.Spec.Ports...)
	}))
	after := w.converged("nodeport").(*corev1.Service)
	if after.Spec.ClusterIP != before.Spec.ClusterIP || len(after.Spec.Ports) != 2 || after.Spec.Ports[1].NodePort != before.Spec.Ports[0].NodePort {
		t.Errorf("before %+v, after %+v", before.Spec.Ports, after.Spec.Ports)
	}
}

// The Service of the API server stays at home, as do the external addresses of any Service.
func TestExternalAddressesStayAtHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "service")
	service := specimens["service"].make("exposed").(*corev1.Service)
	service.Spec.ExternalIPs = []string{"192.0.2.1"}
	w.put(service)
	remote := w.converged("exposed").(*corev1.Service)
	if len(remote.Spec.ExternalIPs) > 0 {
		t.Errorf("external addresses %v", remote.Spec.ExternalIPs)
	}
	fixture.Must(t, "adding an address as the provider", env.Milan.Client.Patch(t.Context(), remote,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"externalIPs":["192.0.2.2"]}}`))))
	w.editLocal("exposed", specimens["service"].update)
	if remote := w.converged("exposed").(*corev1.Service); len(remote.Spec.ExternalIPs) != 1 {
		t.Errorf("the provider's own address is gone: %v", remote.Spec.ExternalIPs)
	}
}

// An EndpointSlice without endpoints, as users write them for Services without a selector, is there at the provider, too; its endpoints come and go.
func TestEmptyEndpointSlicesCross(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "endpointslice")
	object := specimens["endpointslice"].make("empty").(*discoveryv1.EndpointSlice)
	endpoints := object.Endpoints
	object.Endpoints = []discoveryv1.Endpoint{}
	w.put(object)
	for _, step := range [][]discoveryv1.Endpoint{{}, endpoints, {}} {
		w.editLocal("empty", of(func(e *discoveryv1.EndpointSlice) { e.Endpoints = step }))
		remote := w.converged("empty").(*offloadingv1beta1.ShadowEndpointSlice)
		if len(remote.Spec.Template.Endpoints) != len(step) {
			t.Errorf("%d endpoints at home, %+v at the provider", len(step), remote.Spec.Template.Endpoints)
		}
	}
}
