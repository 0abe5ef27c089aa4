package shadowendpointslice

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/reflection"
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

// hosted finds the endpoints of the pods of this cluster that the consumer names. Only its own pods count, in the same namespace; and those
// that the Service selects here have their endpoints already.
func (r *reconciler) hosted(ctx context.Context, shadow *offloadingv1beta1.ShadowEndpointSlice) (map[string]discoveryv1.Endpoint, error) {
	names := named(shadow)
	if len(names) == 0 {
		r.naming.Delete(client.ObjectKeyFromObject(shadow))
		return nil, nil
	}
	// Before the pods are read: what they become afterwards has to be an event for this one.
	r.naming.Store(client.ObjectKeyFromObject(shadow), hashes(names))
	service := &corev1.Service{}
	key := client.ObjectKey{Namespace: shadow.Namespace, Name: shadow.Labels[discoveryv1.LabelServiceName]}
	if err := r.Live.Get(ctx, key, service); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Service %s: %w", key, err)
	}
	found := map[string]discoveryv1.Endpoint{}
	for _, name := range names {
		pod := &corev1.Pod{}
		if err := r.Get(ctx, client.ObjectKey{Namespace: shadow.Namespace, Name: name}, pod); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading Pod %s/%s: %w", shadow.Namespace, name, err)
		} else if err != nil || pod.Labels[offloadingv1beta1.ManagedByLabel] != offloadingv1beta1.ManagedByShadowPod || !sameOrigin(pod, shadow) {
			continue
		}
		// The address of a pod that ended may be another's by now.
		if reflection.Terminal(pod.Status.Phase) {
			continue
		}
		address := addressIn(pod, shadow.Spec.Template.AddressType)
		if address != "" && (len(service.Spec.Selector) == 0 || !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))) {
			found[name] = buildHosted(pod, address, service.Spec.PublishNotReadyAddresses)
		}
	}
	return found, nil
}

// named are the names of the pods of this cluster that a consumer names.
func named(shadow *offloadingv1beta1.ShadowEndpointSlice) (names []string) {
	for i := range shadow.Spec.Template.Endpoints {
		if name := hostedHere(shadow, &shadow.Spec.Template.Endpoints[i]); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// hashes are what is kept of names that a consumer chooses, which may be long.
func hashes(names []string) []uint32 {
	sums := make([]uint32, 0, len(names))
	for _, name := range names {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(name)) // a hash takes everything
		sums = append(sums, sum.Sum32())
	}
	return sums
}

// addressIn is a pod's address of a family; empty if it has none.
func addressIn(pod *corev1.Pod, family discoveryv1.AddressType) string {
	for _, ip := range pod.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil && address.Is4() == (family == discoveryv1.AddressTypeIPv4) {
			return ip.IP
		}
	}
	return ""
}

// buildHosted is the endpoint of a pod of this cluster as Kubernetes' own controller would make it: the consumer calls a pod not ready that it
// does not reach, which is reached here all the same.
func buildHosted(pod *corev1.Pod, address string, publishNotReady bool) discoveryv1.Endpoint {
	serving, terminating := ready(pod), !pod.DeletionTimestamp.IsZero()
	return discoveryv1.Endpoint{
		Addresses: []string{address}, NodeName: ptr.To(pod.Spec.NodeName),
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(publishNotReady || serving && !terminating), Serving: &serving, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// namers selects the ShadowEndpointSlices that name a pod, and seldom one that names another.
func (r *reconciler) namers(pod *corev1.Pod) []client.ListOption {
	sum := hashes([]string{pod.Name})[0]
	return []client.ListOption{client.InNamespace(pod.Namespace), watch.If(func(shadow client.Object) bool {
		known, _ := r.naming.Load(client.ObjectKeyFromObject(shadow))
		sums, _ := known.([]uint32)
		return slices.Contains(sums, sum)
	})}
}

// pods passes changes of what an endpoint says of a pod.
func pods() predicate.Predicate {
	return watch.Changed(func(pod *corev1.Pod) any {
		return []any{ready(pod), pod.DeletionTimestamp.IsZero(), reflection.Terminal(pod.Status.Phase), pod.Status.PodIPs, pod.Labels}
	})
}
