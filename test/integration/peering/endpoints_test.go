package peering

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// nodeAddress is where a node of milan is.
func nodeAddress(t *testing.T) string {
	t.Helper()
	nodes := &corev1.NodeList{}
	fixture.Must(t, "listing milan's nodes", env.Milan.Client.List(t.Context(), nodes))
	for i := range nodes.Items {
		for _, address := range nodes.Items[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				return address.Address
			}
		}
	}
	t.Fatal("milan has no node with an address")
	return ""
}

// V7: a consumer announces ranges that are not its own, and has the provider's Services point into them: at the provider's nodes,
// pods and Services, at what each node reaches by itself, such as the metadata services of clouds, and at what it did not announce. It writes to the provider as itself,
// past every virtual kubelet. Only the addresses that are its own are published, and the user is told of the others.
func TestV7HostileShadowEndpointSlice(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	slice := c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "memory", "1Gi", "pods", "10"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	node := nodeAddress(t)
	within := func(prefix string) string { return netip.MustParsePrefix(prefix).Addr().Next().Next().String() }
	changed := slice.DeepCopy()
	changed.Spec.PodCIDRs = []string{"10.99.0.0/16", "fd99::/64", "0.0.0.0/0", "::/0", "127.0.0.0/8", "169.254.0.0/16", "169.254.169.254/32",
		node + "/32", env.Milan.PodCIDR, env.Milan.ServiceCIDR, "::1/128", "fe80::/10", "::ffff:169.254.0.0/112",
		"100.64.0.0/10", "168.63.0.0/16", "192.0.0.0/24", "fd00::/16", "fd20::/16", "fd00:ec2::254/128"}
	fixture.Must(t, "announcing ranges", c.User.Patch(t.Context(), changed, client.MergeFrom(slice)))
	for family, tc := range map[discoveryv1.AddressType]struct {
		own, stolen []string
	}{
		discoveryv1.AddressTypeIPv4: {[]string{"10.99.0.1"}, []string{"127.0.0.1", "127.8.8.8", "169.254.169.254", "169.254.1.1", "0.0.0.0",
			within(env.Milan.PodCIDR), within(env.Milan.ServiceCIDR), node, "192.0.2.1", "224.0.0.1", "255.255.255.255", "10.100.0.1",
			"100.100.100.200", "168.63.129.16", "192.0.0.192"}},
		discoveryv1.AddressTypeIPv6: {[]string{"fd99::1"}, []string{"::1", "fe80::1", "ff02::1", "2001:db8::1", "::ffff:169.254.169.254", "::",
			"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42"}},
		discoveryv1.AddressTypeFQDN: {nil, []string{"metadata.google.internal"}},
	} {
		t.Run(string(family), func(t *testing.T) {
			name := "web-" + strings.ToLower(string(family))
			shadow := &offloadingv1beta1.ShadowEndpointSlice{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
					offloadingv1beta1.OriginLabel: c.ID, offloadingv1beta1.DestinationLabel: "milan", discoveryv1.LabelServiceName: name}},
				Spec: offloadingv1beta1.ShadowEndpointSliceSpec{Template: offloadingv1beta1.EndpointSliceTemplate{
					AddressType: family, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}}, Endpoints: world.Endpoints(append(tc.stolen, tc.own...)...)}},
			}
			ask(t, user, shadow)
			awaitWarning(t, shadow)
			if len(tc.own) > 0 {
				fixture.Await(t, fixture.Patience, "the consumer's own address to be published", func(ctx context.Context) (bool, string) {
					_, addresses, err := world.SlicesOf(ctx, env.Milan, namespace, name)
					return err == nil && slices.Equal(addresses, tc.own), fmt.Sprint(addresses, err)
				})
				// A second address of its own shows that the controller looked at all of them once more.
				next := netip.MustParseAddr(tc.own[0]).Next().String()
				shadow.Spec.Template.Endpoints = world.Endpoints(append(append(tc.own, next), tc.stolen...)...)
				fixture.Must(t, "changing the ShadowEndpointSlice", user.Update(t.Context(), shadow))
				fixture.Await(t, fixture.Patience, "both of the consumer's own addresses, and no others, to be published", func(ctx context.Context) (bool, string) {
					_, addresses, err := world.SlicesOf(ctx, env.Milan, namespace, name)
					return err == nil && slices.Equal(addresses, append(tc.own, next)), fmt.Sprint(addresses, err)
				})
				return
			}
			if names, addresses, err := world.SlicesOf(t.Context(), env.Milan, namespace, name); err != nil || len(names) > 0 {
				t.Errorf("EndpointSlices %v with addresses %v, error %v", names, addresses, err)
			}
		})
	}
	// Nor does it get there without the controller.
	direct := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: world.Endpoints("169.254.169.254"), ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "direct", Labels: map[string]string{discoveryv1.LabelServiceName: "web", offloadingv1beta1.OriginLabel: c.ID}}}
	if err := user.Create(t.Context(), direct); !apierrors.IsForbidden(err) {
		t.Errorf("creating an EndpointSlice was answered with %v", err)
	}
	published := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-ipv4"}}
	err := user.Patch(t.Context(), published, client.RawPatch("application/merge-patch+json", []byte(`{"endpoints":[{"addresses":["169.254.169.254"]}]}`)))
	if !apierrors.IsForbidden(err) {
		t.Errorf("changing a published EndpointSlice was answered with %v", err)
	}
}

// ask makes a ShadowEndpointSlice and its Service once the twin's quota is counted. A creation whose answer was lost is tried again by the
// client: then the object is there, and is read, because Events are about its UID and changes need its version.
func ask(t *testing.T, user *fixture.User, shadow *offloadingv1beta1.ShadowEndpointSlice) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: shadow.Namespace, Name: shadow.Labels[discoveryv1.LabelServiceName], Labels: map[string]string{
			offloadingv1beta1.OriginLabel: shadow.Labels[offloadingv1beta1.OriginLabel], offloadingv1beta1.DestinationLabel: "milan"}},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	fixture.Await(t, fixture.Patience, "the twin's quota to be counted", func(ctx context.Context) (bool, string) {
		if err := user.Create(ctx, service.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
			return false, err.Error()
		}
		err := user.Create(ctx, shadow)
		if apierrors.IsAlreadyExists(err) {
			err = env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(shadow), shadow)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// awaitWarning waits until milan told why it does not publish all of a ShadowEndpointSlice.
func awaitWarning(t *testing.T, about *offloadingv1beta1.ShadowEndpointSlice) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "an Event about ShadowEndpointSlice "+about.Name, func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		err := env.Milan.Client.List(ctx, list, client.InNamespace(about.Namespace))
		for _, e := range list.Items {
			if e.InvolvedObject.UID == about.UID && (e.Reason == offloadingv1beta1.ReasonAddressNotAnnounced || e.Reason == offloadingv1beta1.ReasonEndpointSliceInvalid) {
				return true, ""
			}
		}
		return false, fmt.Sprint(list.Items, err)
	})
}
