package world

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// Endpoints are a Service's, each at one address.
func Endpoints(addresses ...string) []discoveryv1.Endpoint {
	var all []discoveryv1.Endpoint
	for _, address := range addresses {
		all = append(all, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
	}
	return all
}

// SlicesOf lists the EndpointSlices of a Service that were made from here, and the addresses in all of them.
func SlicesOf(ctx context.Context, c *fixture.Cluster, namespace, service string) (names, addresses []string, err error) {
	list := &discoveryv1.EndpointSliceList{}
	err = c.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	for _, slice := range list.Items {
		names = append(names, slice.Name)
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, endpoint.Addresses...)
		}
	}
	slices.Sort(names)
	slices.Sort(addresses)
	return names, addresses, err
}

// Became says what became of the Service of a namespace, for people who look for the reason.
func (s *Shared) Became(ctx context.Context, namespace string) string {
	shadows, events, remote := &offloadingv1beta1.ShadowEndpointSliceList{}, &corev1.EventList{}, &corev1.ServiceList{}
	for c, list := range map[*fixture.Cluster][]client.ObjectList{s.Milan: {shadows, remote}, s.Rome: {events}} {
		for _, l := range list {
			if err := c.Client.List(ctx, l, client.InNamespace(namespace)); err != nil {
				return err.Error()
			}
		}
	}
	text := fmt.Sprintf("%d Services and %d ShadowEndpointSlices at the provider", len(remote.Items), len(shadows.Items))
	for _, e := range events.Items {
		text += "; " + e.InvolvedObject.Name + ": " + e.Message
	}
	return text
}
