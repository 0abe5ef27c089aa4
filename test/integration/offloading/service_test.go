package offloading

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// A Service is found at the provider with the endpoints that the provider cannot know, and with its own pods once; V7: an
// address that is not this cluster's does not get there.
func TestServiceAtTheProvider(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	own := netip.MustParsePrefix(env.Rome.PodCIDR).Addr().Next().Next()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}
	fixture.Must(t, "creating a Service", env.Rome.Client.Create(t.Context(), service))
	ready := discoveryv1.EndpointConditions{Ready: ptr.To(true)}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "web-by-hand", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}},
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{own.String()}, Conditions: ready},
			{Addresses: []string{own.Next().String()}, Conditions: ready, NodeName: ptr.To("milan")},
			{Addresses: []string{"192.0.2.1"}, Conditions: ready},
		},
	}
	fixture.Must(t, "creating an EndpointSlice", env.Rome.Client.Create(t.Context(), slice))
	arrives := func(what string, want ...string) {
		t.Helper()
		fixture.Await(t, fixture.Patience, what, func(ctx context.Context) (bool, string) {
			names, addresses, err := world.SlicesOf(t.Context(), env.Milan, namespace, "web")
			return err == nil && slices.Equal(addresses, want), fmt.Sprint(names, addresses, err, "; ", env.Became(t.Context(), namespace))
		})
	}
	arrives("the one endpoint that the provider has to be told of", own.String())
	remote := &corev1.Service{}
	fixture.Must(t, "reading the Service at the provider", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(service), remote))
	if remote.Spec.ClusterIP == "" || remote.Spec.ClusterIP == service.Spec.ClusterIP {
		t.Errorf("the Service at the provider has cluster IP %q, at home it is %q", remote.Spec.ClusterIP, service.Spec.ClusterIP)
	}
	slice.Endpoints = slice.Endpoints[1:]
	fixture.Must(t, "removing the endpoint", env.Rome.Client.Update(t.Context(), slice))
	arrives("the endpoint to go")
	fixture.Must(t, "deleting the Service", env.Rome.Client.Delete(t.Context(), service))
	fixture.Await(t, fixture.Patience, "the Service to go", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(service), remote)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}
