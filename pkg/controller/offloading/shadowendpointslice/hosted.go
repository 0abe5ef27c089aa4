package shadowendpointslice

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// hostedHere is the pod of this cluster that an endpoint names; empty if it names none.
func hostedHere(shadow *offloadingv1beta1.ShadowEndpointSlice, endpoint *discoveryv1.Endpoint) string {
	here := endpoint.NodeName != nil && *endpoint.NodeName == shadow.Labels[offloadingv1beta1.DestinationLabel] &&
		*endpoint.NodeName != shadow.Labels[offloadingv1beta1.OriginLabel]
	if !here || endpoint.TargetRef == nil || endpoint.TargetRef.Kind != "Pod" {
		return ""
	}
	return endpoint.TargetRef.Name
}

// hosted finds the pods of this cluster that the endpoints name. Only the consumer's own count, in the same namespace; and those that the
// Service selects here have their endpoints already.
func (r *reconciler) hosted(ctx context.Context, shadow *offloadingv1beta1.ShadowEndpointSlice) (map[string]*corev1.Pod, error) {
	found := map[string]*corev1.Pod{}
	var service *corev1.Service
	for i := range shadow.Spec.Template.Endpoints {
		name := hostedHere(shadow, &shadow.Spec.Template.Endpoints[i])
		if name == "" || found[name] != nil {
			continue
		}
		if service == nil {
			service = &corev1.Service{}
			key := client.ObjectKey{Namespace: shadow.Namespace, Name: shadow.Labels[discoveryv1.LabelServiceName]}
			if err := r.Live.Get(ctx, key, service); client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("reading Service %s: %w", key, err)
			}
		}
		pod := &corev1.Pod{}
		if err := r.Get(ctx, client.ObjectKey{Namespace: shadow.Namespace, Name: name}, pod); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Pod %s/%s: %w", shadow.Namespace, name, err)
		} else if err != nil || pod.Labels[offloadingv1beta1.ManagedByLabel] != offloadingv1beta1.ManagedByShadowPod || !sameOrigin(pod, shadow) {
			continue
		}
		if len(service.Spec.Selector) == 0 || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			found[name] = pod
		}
	}
	return found, nil
}

// buildHosted is the endpoint of a pod of this cluster: where it is this cluster knows itself, how it is the consumer says.
func buildHosted(shadow *offloadingv1beta1.ShadowEndpointSlice, wanted *discoveryv1.Endpoint, pod *corev1.Pod) []discoveryv1.Endpoint {
	for _, ip := range pod.Status.PodIPs {
		address, err := netip.ParseAddr(ip.IP)
		if err != nil || address.Is4() != (shadow.Spec.Template.AddressType == discoveryv1.AddressTypeIPv4) {
			continue
		}
		return []discoveryv1.Endpoint{{
			Addresses: []string{ip.IP}, Conditions: *wanted.Conditions.DeepCopy(), Hostname: wanted.Hostname, NodeName: ptr.To(pod.Spec.NodeName),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}}
	}
	return nil
}
