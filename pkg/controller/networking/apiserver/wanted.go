package apiserver

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// name of the IP for the ClusterIP, and what those for endpoints begin with.
const name = "api-server"

// defaultPort is that of every API server's Service, should it say none.
const defaultPort = 443

// Wanted are the IPs for an API server, sorted by name: for its endpoints if there are any, else for the ClusterIP of its Service. There are
// none as long as no address is known.
func Wanted(namespace string, service *corev1.Service, endpoints []discoveryv1.EndpointSlice) []ipamv1alpha1.IP {
	byName := map[string]ipamv1alpha1.IP{}
	for i := range endpoints {
		port := portOf(&endpoints[i])
		for _, endpoint := range endpoints[i].Endpoints {
			for _, text := range endpoint.Addresses {
				if address, err := netip.ParseAddr(text); err == nil && port != 0 && address.Zone() == "" {
					ip := ipOf(namespace, fmt.Sprintf("%s-%s", name, dashed(address)), address, port)
					byName[ip.Name] = ip
				}
			}
		}
	}
	if address, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && len(endpoints) == 0 {
		byName[name] = ipOf(namespace, name, address, servicePort(service))
	}
	wanted := make([]ipamv1alpha1.IP, 0, len(byName))
	for _, ip := range byName {
		wanted = append(wanted, ip)
	}
	slices.SortFunc(wanted, func(a, b ipamv1alpha1.IP) int { return strings.Compare(a.Name, b.Name) })
	return wanted
}

// portOf is where the API server answers at its endpoints; 0 if that is not known.
func portOf(slice *discoveryv1.EndpointSlice) int32 {
	for _, port := range slice.Ports {
		if ptr.Deref(port.Name, "") == "https" || len(slice.Ports) == 1 {
			return ptr.Deref(port.Port, 0)
		}
	}
	return 0
}

// servicePort is where the API server answers at its Service.
func servicePort(service *corev1.Service) int32 {
	for _, port := range service.Spec.Ports {
		if port.Name == "https" || len(service.Spec.Ports) == 1 {
			return port.Port
		}
	}
	return defaultPort
}

// dashed is an address as a part of a name.
func dashed(address netip.Addr) string {
	return strings.Trim(strings.NewReplacer(".", "-", ":", "-").Replace(address.StringExpanded()), "-")
}

// ipOf has peers reach an API server, and nothing else that its node has.
func ipOf(namespace, name string, address netip.Addr, port int32) ipamv1alpha1.IP {
	return ipamv1alpha1.IP{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			ipamv1alpha1.IPTypeLabel: ipamv1alpha1.IPTypeAPIServer, corev1beta1.ManagedLabel: "true"}},
		// Without it the API server would have to know a way back to the peers.
		Spec: ipamv1alpha1.IPSpec{IP: networkingv1beta1.IP(address.String()), Masquerade: ptr.To(true),
			Ports: []ipamv1alpha1.IPPort{{Port: port, Protocol: corev1.ProtocolTCP}}},
	}
}
