package settings

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

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// networked has a cluster run the network module, and keep the peer's own ranges for something else, so that they have to be others here.
func networked(c, peer *fixture.Cluster) map[string]any {
	return map[string]any{"networking": map[string]any{"enabled": true}, "ipam": map[string]any{
		"podCIDR": c.PodCIDR, "serviceCIDR": c.ServiceCIDR, "reservedSubnets": []any{peer.PodCIDR}}}
}

// network turns the module on in both clusters. The returned function turns it off.
func network(t *testing.T, w *world.Peering) (off func()) {
	t.Helper()
	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	inRome, inMilan := networked(env.Rome, env.Milan), networked(env.Milan, env.Rome)
	w.Rome.Reconfigure(t, nil, inRome)
	w.Milan.Reconfigure(t, nil, inMilan)
	args := slices.Clone(w.Kubelet.Args)
	w.Kubelet.Args = append(slices.DeleteFunc(w.Kubelet.Args, func(arg string) bool { return strings.HasPrefix(arg, "--home-api-server") }), "--networking")
	w.Kubelet.Start(t)
	return func() {
		fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
		w.Rome.Reconfigure(t, inRome, nil)
		w.Milan.Reconfigure(t, inMilan, nil)
		w.Kubelet.Args = args
		w.Kubelet.Start(t)
	}
}

func ranges(pod, external string) networkingv1beta1.ClusterConfig {
	return networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
		Pod: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(pod)}, External: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(external)}}}
}

// seen returns how a cluster sees addresses of a peer.
func seen(ctx context.Context, c *fixture.Cluster, peer string) (func(netip.Addr) string, error) {
	configuration, err := translation.Find(ctx, c.Client, peer)
	if err != nil {
		return nil, err
	}
	view, err := translation.Of(configuration)
	return func(own netip.Addr) string {
		if there, ok := view.Translate(own); ok && there != own {
			return there.String()
		}
		return "an address that is translated"
	}, err
}

// announce tells a cluster of a peer's ranges, and under which it sees them, unless its controllers say so first. Its tunnel works. The
// returned function takes it back.
func announce(t *testing.T, c, peer *fixture.Cluster, namespace, pods, external string) (forget func()) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: peer.ID, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer.ID}}
	configuration := &networkingv1beta1.Configuration{ObjectMeta: meta, Spec: networkingv1beta1.ConfigurationSpec{Remote: ranges(peer.PodCIDR, "10.70.0.0/16")}}
	connection := &networkingv1beta1.Connection{ObjectMeta: meta, Spec: networkingv1beta1.ConnectionSpec{Type: networkingv1beta1.ConnectionTypeServer}}
	for _, object := range []client.Object{configuration, connection} {
		fixture.Must(t, "creating what is known of "+peer.ID, c.Client.Create(t.Context(), object))
	}
	connection.Status.Value = networkingv1beta1.Connected
	fixture.Must(t, "connecting "+peer.ID, c.Client.Status().Update(t.Context(), connection))
	given := ranges(pods, external)
	fixture.Await(t, fixture.Patience, peer.ID+" to be seen", func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)
		if err == nil && configuration.Status.Remote == nil {
			configuration.Status.Remote = &given
			err = c.Client.Status().Update(ctx, configuration)
		}
		return err == nil, fmt.Sprint(err)
	})
	return func() {
		for _, object := range []client.Object{configuration, connection} {
			fixture.Await(t, fixture.Patience, fmt.Sprintf("%T of %s to go", object, peer.ID), func(ctx context.Context) (bool, string) {
				err := c.Client.Delete(ctx, object)
				return apierrors.IsNotFound(err), fmt.Sprint(err)
			})
		}
	}
}

// address gives the API server of a cluster its address for peers, unless its controllers do first.
func address(t *testing.T, c *fixture.Cluster) netip.Addr {
	t.Helper()
	ip := &ipamv1alpha1.IP{}
	fixture.Await(t, fixture.Patience, "the API server to have an address for peers", func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: fixture.Namespace, Name: "api-server"}, ip)
		if err == nil && ip.Status.IP == "" {
			ip.Status.IP, ip.Status.CIDR = "10.70.0.3", "10.70.0.0/16"
			err = c.Client.Status().Update(ctx, ip)
		}
		return err == nil, fmt.Sprint(err)
	})
	given, err := ip.Status.IP.Addr()
	fixture.Must(t, "reading the address", err)
	return given
}

// What crosses is the sender's own, and the receiver shows it where it sees it: a remote pod at home, an endpoint of home at the provider,
// and the API server in a pod there. Without a Configuration it means what it says. Where the tunnel does not work nothing is sent.
func TestAddressesAreTranslated(t *testing.T) {
	w := env.Peered(t)
	defer network(t, w)()
	namespace := env.Offloaded(t)
	first := world.Pod(namespace, fixture.Unique("pod"))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), first))
	remote := &corev1.Pod{}
	shows := func(local *corev1.Pod, how func(context.Context, netip.Addr) (string, error)) {
		t.Helper()
		fixture.Await(t, 2*fixture.Patience, "the pod to show its address", func(ctx context.Context) (bool, string) {
			key := client.ObjectKeyFromObject(local)
			if err := env.Milan.Client.Get(ctx, key, remote); err != nil {
				return false, err.Error()
			}
			if err := env.Rome.Client.Get(ctx, key, local); err != nil {
				return false, err.Error()
			}
			own, err := netip.ParseAddr(remote.Status.PodIP)
			if err != nil {
				return false, err.Error()
			}
			want, err := how(ctx, own)
			return err == nil && local.Status.PodIP == want, fmt.Sprintf("%s is shown as %s, want %s (%v)", own, local.Status.PodIP, want, err)
		})
	}
	asItIs := func(_ context.Context, own netip.Addr) (string, error) { return own.String(), nil }
	asRomeSees := func(ctx context.Context, own netip.Addr) (string, error) {
		there, err := seen(ctx, env.Rome, "milan")
		if err != nil {
			return "", err
		}
		return there(own), nil
	}
	shows(first, asItIs)
	defer announce(t, env.Rome, env.Milan, fixture.ConsumerNamespace, "10.61.0.0/16", "10.71.0.0/16")()
	defer announce(t, env.Milan, env.Rome, fixture.ProviderNamespace, "10.62.0.0/16", "10.72.0.0/16")()
	address(t, env.Rome)
	shows(first, asRomeSees)

	own := netip.MustParsePrefix(env.Rome.PodCIDR).Addr().Next().Next()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: "web-by-hand", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: ptr.To[int32](80)}}, Endpoints: world.Endpoints(own.String(), "192.0.2.1"),
	}
	fixture.Must(t, "creating a Service", env.Rome.Client.Create(t.Context(), service))
	fixture.Must(t, "creating an EndpointSlice", env.Rome.Client.Create(t.Context(), slice))
	fixture.Await(t, fixture.Patience, "the endpoint to be published where the provider sees it", func(ctx context.Context) (bool, string) {
		there, err := seen(ctx, env.Milan, "rome")
		if err != nil {
			return false, err.Error()
		}
		names, addresses, err := world.SlicesOf(ctx, env.Milan, namespace, "web")
		return err == nil && slices.Equal(addresses, []string{there(own)}), fmt.Sprint(names, addresses, there(own), err, "; ", env.Became(ctx, namespace))
	})

	second := world.Pod(namespace, fixture.Unique("pod"))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), second))
	shows(second, asRomeSees)
	there, err := seen(t.Context(), env.Milan, "rome")
	fixture.Must(t, "reading how milan sees rome", err)
	// Its controllers may have given another one since than the test did.
	server := address(t, env.Rome)
	if aliases := remote.Spec.HostAliases; len(aliases) != 1 || aliases[0].IP != there(server) || !slices.Contains(aliases[0].Hostnames, "kubernetes.default.svc") {
		t.Errorf("the pod finds its API server by %v, want %s, which is %s", aliases, there(server), server)
	}
	t.Run("while the tunnel is down, remote pods are no ready endpoints", tunnelFailsAndWorks)
}
