package gateway

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

const (
	// maxNodes is how many nodes a gateway is announced at, where it has a port of each: one of them may be down.
	maxNodes = 3
	// maxAddresses is how many addresses the status holds.
	maxAddresses = 64
)

// unbalanced is what a Service without a load balancer lacks, and the way out where there is none.
const unbalanced = "the load balancer of its Service has no address yet; " + networkingv1beta1.NoLoadBalancers

// Endpoint is where the peer reaches a gateway; nil, with what is missing, as long as it is nowhere. host is the node that the gateway's pod
// runs on.
func Endpoint(service *corev1.Service, nodes []corev1.Node, host string) (endpoint *networkingv1beta1.EndpointStatus, missing string) {
	if len(service.Spec.Ports) == 0 {
		return nil, "its Service has no port"
	}
	port := service.Spec.Ports[0]
	endpoint = &networkingv1beta1.EndpointStatus{Port: networkingv1beta1.Port(port.Port), Protocol: cmp.Or(port.Protocol, corev1.ProtocolTCP)}
	switch service.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		endpoint.Addresses, missing = hosts(ofLoadBalancer(service)), unbalanced
	case corev1.ServiceTypeNodePort:
		endpoint.Port = networkingv1beta1.Port(port.NodePort)
		if service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			nodes = slices.DeleteFunc(slices.Clone(nodes), func(n corev1.Node) bool { return n.Name != host })
		}
		endpoint.Addresses, missing = hosts(ofNodes(nodes)), "no node that has its port is ready"
	default:
		missing = "its Service has no address of the cluster"
		if service.Spec.ClusterIP != corev1.ClusterIPNone {
			endpoint.Addresses = hosts([]string{service.Spec.ClusterIP})
		}
	}
	missing = overridden(endpoint, service.Annotations, missing)
	if len(endpoint.Addresses) == 0 || endpoint.Port == 0 {
		return nil, cmp.Or(missing, "its Service has no port of nodes yet")
	}
	return endpoint, ""
}

// overridden puts in place what annotations say instead.
func overridden(endpoint *networkingv1beta1.EndpointStatus, annotations map[string]string, missing string) string {
	if text, set := annotations[networkingv1beta1.OverrideAddressAnnotation]; set {
		endpoint.Addresses = hosts(strings.Split(text, ","))
		missing = "annotation " + networkingv1beta1.OverrideAddressAnnotation + " has neither an address nor a DNS name"
	}
	if text, set := annotations[networkingv1beta1.OverridePortAnnotation]; set {
		number, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || number == 0 {
			endpoint.Port = 0
			return "annotation " + networkingv1beta1.OverridePortAnnotation + " has no port"
		}
		endpoint.Port = networkingv1beta1.Port(number) //nolint:gosec // It has 16 bits.
	}
	if len(endpoint.Addresses) > 0 {
		return ""
	}
	return missing
}

func ofLoadBalancer(service *corev1.Service) []string {
	var found []string
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		found = append(found, cmp.Or(ingress.IP, ingress.Hostname))
	}
	return found
}

// ofNodes are the addresses of some nodes that are ready: those towards the Internet first, then those inside. Nodes that clusters keep load
// balancers away from come last.
func ofNodes(nodes []corev1.Node) []string {
	var ready []corev1.Node
	for i := range nodes {
		if isReady(&nodes[i]) && nodes[i].DeletionTimestamp.IsZero() && nodes[i].Labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
			ready = append(ready, nodes[i])
		}
	}
	slices.SortFunc(ready, func(a, b corev1.Node) int {
		return cmp.Or(cmp.Compare(kept(&a), kept(&b)), strings.Compare(a.Name, b.Name))
	})
	ready = ready[:min(len(ready), maxNodes)]
	var found []string
	for _, kind := range []corev1.NodeAddressType{corev1.NodeExternalIP, corev1.NodeInternalIP} {
		for i := range ready {
			for _, address := range ready[i].Status.Addresses {
				if address.Type == kind {
					found = append(found, address.Address)
				}
			}
		}
	}
	return found
}

func kept(node *corev1.Node) int {
	if _, excluded := node.Labels[corev1.LabelNodeExcludeBalancers]; excluded {
		return 1
	}
	return 0
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// hosts are those of the texts that are an address or a DNS name, each once.
func hosts(texts []string) []networkingv1beta1.Host {
	var found []networkingv1beta1.Host
	for _, text := range texts {
		text = strings.ToLower(strings.TrimSpace(text))
		if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
			text = address.Unmap().String()
		} else if len(validation.IsDNS1123Subdomain(text)) > 0 || !strings.ContainsFunc(text, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
			continue
		}
		if host := networkingv1beta1.Host(text); !slices.Contains(found, host) && len(found) < maxAddresses {
			found = append(found, host)
		}
	}
	return found
}

// ActivePod is the pod of a gateway that has the tunnel: the one with the label if one has it, and the one that had it before if there are
// several. A pod becomes ready only after nodes know it by its address, so one that is not is taken if none is. nil if there is none.
func ActivePod(pods []corev1.Pod, before *networkingv1beta1.InternalGatewayEndpoint) *corev1.Pod {
	rank := func(pod *corev1.Pod) int {
		switch {
		case !podReady(pod):
			return 3
		case pod.Labels[networkingv1beta1.ActiveLabel] == "true":
			return 0
		case before != nil && string(ptr.Deref(before.IP, "")) == pod.Status.PodIP:
			return 1
		default:
			return 2
		}
	}
	var active *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if !podRuns(pod) {
			continue
		}
		if active == nil || cmp.Or(cmp.Compare(rank(pod), rank(active)), strings.Compare(pod.Name, active.Name)) < 0 {
			active = pod
		}
	}
	return active
}

// podRuns tells whether a pod can have a tunnel: it has an address, and stays.
func podRuns(pod *corev1.Pod) bool {
	_, err := netip.ParseAddr(pod.Status.PodIP)
	return err == nil && pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName != "" &&
		pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

func podReady(pod *corev1.Pod) bool {
	return podRuns(pod) && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// WhyNoPod says, as far as pods tell, why none of a gateway's pods is ready.
func WhyNoPod(pods []corev1.Pod) string {
	for i := range pods {
		pod := &pods[i]
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
				return "pod " + pod.Name + ": " + c.State.Waiting.Reason + ": " + c.State.Waiting.Message
			}
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return "pod " + pod.Name + ": " + c.Reason + ": " + c.Message
			}
		}
	}
	return ""
}
