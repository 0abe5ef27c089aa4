package reflection

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// TestServiceTypes walks a Service through its types.
func TestServiceTypes(t *testing.T) {
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

// D6: a node port that is taken at the provider.
func TestForcedNodePort(t *testing.T) {
	w := newWorld(t, "service")
	free := specimens["service"].make("free").(*corev1.Service)
	free.Spec.Type, free.Annotations = corev1.ServiceTypeNodePort, map[string]string{offloadingv1beta1.ForceRemoteNodePortAnnotation: "true"}
	taken := free.DeepCopy()
	taken.Name = "taken"
	w.put(free)
	if remote := w.converged("free").(*corev1.Service); remote.Spec.Ports[0].NodePort != free.Spec.Ports[0].NodePort {
		t.Errorf("node port %d, want %d", remote.Spec.Ports[0].NodePort, free.Spec.Ports[0].NodePort)
	}
	// Somebody at the provider has the port that the API server at home allocates.
	w.link.connect(false)
	w.put(taken)
	other := specimens["service"].make("other").(*corev1.Service)
	other.Namespace, other.Spec.Type = w.twin, corev1.ServiceTypeNodePort
	other.Spec.Ports[0].NodePort = taken.Spec.Ports[0].NodePort
	fixture.Must(t, "taking the node port at the provider", env.Milan.Client.Create(t.Context(), other))
	w.link.connect(true)
	w.told(offloadingv1beta1.ReasonPartiallyReflected, "provided port is already allocated")
	fixture.Await(t, fixture.Patience, "the Service to cross with another node port", func(ctx context.Context) (bool, string) {
		remote, there := w.remote(ctx, "taken").(*corev1.Service)
		return there && remote.Spec.Ports[0].NodePort != 0 && remote.Spec.Ports[0].NodePort != taken.Spec.Ports[0].NodePort, w.events.all()
	})
	w.mark("before")
	start := env.Milan.Recorder.Now(t)
	w.restart()
	w.mark("after")
	if writes := w.writes(start, "taken"); len(writes) > 0 {
		t.Errorf("writes after a restart: %v", writes)
	}
	if told := strings.Count(w.events.all(), offloadingv1beta1.ReasonPartiallyReflected); told != 1 {
		t.Errorf("it is told %d times: %s", told, w.events.all())
	}
	fixture.Must(t, "freeing the node port", env.Milan.Client.Delete(t.Context(), other))
	w.editLocal("taken", func(o reflection.Object) { o.GetLabels()["touched"] = "true" })
	w.converged("taken")
}

// D7: what asks for two IP families crosses to a provider with one.
func TestTwoFamilies(t *testing.T) {
	w := newWorld(t, "service")
	// Without a selector, an API server makes a headless Service require both.
	headless := &corev1.Service{ObjectMeta: meta("both"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	headless.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	w.put(headless)
	remote := w.converged("both").(*corev1.Service)
	if got := ptr.Deref(remote.Spec.IPFamilyPolicy, ""); got != corev1.IPFamilyPolicyPreferDualStack {
		t.Errorf("policy %q", got)
	}
}

// The Service of the API server stays at home, as do the external addresses of any Service.
func TestExternalAddressesStayAtHome(t *testing.T) {
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
