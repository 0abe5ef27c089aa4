package ip

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
)

// sliceManager is who keeps the EndpointSlices, in the words of Kubernetes: its own controllers leave them alone.
const sliceManager = "ip.ipam.liqo.io"

// fillService makes a Service what the template of an IP asks for. What the API server filled in stays.
func fillService(service *corev1.Service, ip *ipamv1alpha1.IP) {
	template := ip.Spec.ServiceTemplate
	service.Labels = merged(service.Labels, template.Labels, map[string]string{corev1beta1.ManagedLabel: "true"})
	service.Annotations = merged(service.Annotations, template.Annotations, nil)
	had := service.Spec
	service.Spec = *template.Spec.DeepCopy()
	service.Spec.Selector = nil // it leads to the address, not to pods
	service.Spec.ClusterIP, service.Spec.ClusterIPs = had.ClusterIP, had.ClusterIPs
	if had.ClusterIP == "" {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = template.Spec.ClusterIP, template.Spec.ClusterIPs
	}
	leave(&service.Spec, &had)
}

// leave puts back what the template leaves open and the API server chose.
func leave(wanted, had *corev1.ServiceSpec) {
	orHad(&wanted.Type, had.Type)
	orHad(&wanted.SessionAffinity, had.SessionAffinity)
	orHad(&wanted.ExternalTrafficPolicy, had.ExternalTrafficPolicy)
	orHad(&wanted.HealthCheckNodePort, had.HealthCheckNodePort)
	orHad(&wanted.IPFamilyPolicy, had.IPFamilyPolicy)
	orHad(&wanted.InternalTrafficPolicy, had.InternalTrafficPolicy)
	orHad(&wanted.AllocateLoadBalancerNodePorts, had.AllocateLoadBalancerNodePorts)
	if wanted.IPFamilies == nil {
		wanted.IPFamilies = had.IPFamilies
	}
	for i := range wanted.Ports {
		port := &wanted.Ports[i]
		orHad(&port.Protocol, corev1.ProtocolTCP)
		orHad(&port.TargetPort, intstr.FromInt32(port.Port))
		if i < len(had.Ports) && had.Ports[i].Port == port.Port {
			orHad(&port.NodePort, had.Ports[i].NodePort)
		}
	}
}

// orHad sets what is not set.
func orHad[T comparable](wanted *T, had T) {
	var zero T
	if *wanted == zero {
		*wanted = had
	}
}

// fillSlice makes an EndpointSlice lead to what an IP stands for. For peers, virtual kubelets put the address there that peers know it by.
func fillSlice(slice *discoveryv1.EndpointSlice, ip *ipamv1alpha1.IP) {
	slice.Labels = merged(slice.Labels, map[string]string{
		corev1beta1.ManagedLabel: "true", discoveryv1.LabelServiceName: ip.Name, discoveryv1.LabelManagedBy: sliceManager,
	}, nil)
	if slice.AddressType == "" {
		slice.AddressType = discoveryv1.AddressTypeIPv4
		if address, err := ip.Spec.IP.Addr(); err == nil && address.Is6() {
			slice.AddressType = discoveryv1.AddressTypeIPv6
		}
	}
	ready := true
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{string(ip.Spec.IP)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}}
	slice.Ports = nil
	for _, port := range ip.Spec.ServiceTemplate.Spec.Ports {
		name, protocol, number := port.Name, port.Protocol, port.Port
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		if target := port.TargetPort; target.Type == intstr.Int && target.IntVal != 0 {
			number = target.IntVal
		}
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &number, AppProtocol: port.AppProtocol})
	}
}

// merged is what is there, with what is wanted.
func merged(there, wanted, more map[string]string) map[string]string {
	if len(wanted)+len(more) == 0 {
		return there
	}
	all := maps.Clone(there)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wanted)
	maps.Copy(all, more)
	return all
}
