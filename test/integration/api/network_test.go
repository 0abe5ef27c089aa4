package api

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	connecting "liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/config/v1alpha1"
	peerranges "liqo.io/liqo/pkg/controller/networking/configuration"
	"liqo.io/liqo/pkg/controller/networking/gateway"
	"liqo.io/liqo/pkg/controller/networking/gatewaytemplate"
	ownranges "liqo.io/liqo/pkg/controller/networking/network"
	"liqo.io/liqo/test/integration/fixture"
)

// networks are two clusters whose networks are connected, with the controllers that find ranges and make gateways run. There is no kernel:
// the test says what gateways would.
type networks struct {
	*testing.T
	pair *target.Pair
}

// What liqoctl asks for is taken by the API servers and answered by the controllers; asked for again it changes nothing, and taken back it
// leaves nothing.
func TestNetworksAreConnectedAndTakenBack(t *testing.T) {
	n := &networks{T: t, pair: &target.Pair{ConsumerID: fixture.Unique("here"), ProviderID: fixture.Unique("there")}}
	n.pair.Consumer, n.pair.Provider = n.open(env.Rome, n.pair.ConsumerID), n.open(env.Milan, n.pair.ProviderID)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n.speak(ctx, env.Rome, n.pair.ProviderID, &networkingv1beta1.GatewayClient{}, networkingv1beta1.ConnectionTypeClient)
	n.speak(ctx, env.Milan, n.pair.ConsumerID, &networkingv1beta1.GatewayServer{}, networkingv1beta1.ConnectionTypeServer)
	settings := connecting.Settings{ServiceType: corev1.ServiceTypeNodePort, MTU: ptr.To[int32](1400)}
	for _, changed := range []bool{true, false} {
		recorder := &progress.Recorder{}
		joining, report, err := connecting.Join(ctx, n.pair, settings, false, recorder)
		if err == nil {
			err = joining.Connected(ctx)
		}
		if err != nil || !report.Connected || report.Changed != changed || report.Server != n.pair.ProviderID {
			t.Fatalf("%v, %+v, told %q", err, report, recorder.Lines())
		}
		for id, ranges := range report.Ranges {
			if len(ranges) != 2 || ranges[0].SeenAs == "" || ranges[1].SeenAs == "" {
				t.Errorf("%s sees %v", id, ranges)
			}
		}
	}
	for _, p := range []connecting.Parting{{Cluster: n.pair.Consumer, PeerID: n.pair.ProviderID}, {Cluster: n.pair.Provider, PeerID: n.pair.ConsumerID}} {
		recorder := &progress.Recorder{}
		p.Ranges, p.Observer = true, recorder
		for _, changed := range []bool{true, false} {
			if did, err := connecting.Part(ctx, p); err != nil || did != changed {
				t.Fatalf("changed: %t, %v, told %q", did, err, recorder.Lines())
			}
		}
	}
}

// open runs the controllers in a cluster, and returns it as liqoctl sees it.
func (n *networks) open(c *fixture.Cluster, id string) *target.Cluster {
	n.Helper()
	cluster, err := target.FromConfig(c.Config, nil, fixture.Namespace)
	fixture.Must(n, "opening "+c.ID, err)
	cluster.Name = id
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{Scheme: target.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}}}}})
	fixture.Must(n, "preparing the manager", err)
	pods := []netip.Prefix{netip.MustParsePrefix(c.PodCIDR)}
	pools := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	fixture.Must(n, "registering", ownranges.Register(mgr, ownranges.Options{ClusterID: id, Namespace: fixture.Namespace, Pods: pods,
		Services: []netip.Prefix{netip.MustParsePrefix(c.ServiceCIDR)}, Pools: pools}))
	fixture.Must(n, "registering", peerranges.Register(mgr, peerranges.Options{ClusterID: id, Namespace: fixture.Namespace, Pods: pods}))
	fixture.Must(n, "registering", gateway.Register(mgr, gateway.Options{Namespace: fixture.Namespace}))
	n.templates(c)
	ctx, stop := context.WithCancel(n.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	n.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			n.Errorf("the manager ended: %v", err)
		}
	})
	return cluster
}

// templates makes those of the chart.
func (n *networks) templates(c *fixture.Cluster) {
	n.Helper()
	objects, err := c.Manifests(map[string]any{"networking": map[string]any{"enabled": true}})
	fixture.Must(n, "rendering the chart", err)
	for _, o := range objects {
		text, found, _ := unstructured.NestedString(o.Object, "data", "config.yaml")
		if !found {
			continue
		}
		parsed, err := v1alpha1.Parse([]byte(text))
		fixture.Must(n, "reading the configuration", err)
		made, err := gatewaytemplate.Objects(gatewaytemplate.Options{Templates: parsed.Networking.GatewayTemplates, Namespace: fixture.Namespace})
		fixture.Must(n, "making the templates", err)
		for _, template := range made {
			fixture.Must(n, "creating the template "+template.GetName(), client.IgnoreAlreadyExists(c.Client.Create(n.Context(), template)))
		}
	}
}

// speak is what a gateway tells of its tunnel, once it knows the key of the other one.
func (n *networks) speak(ctx context.Context, c *fixture.Cluster, peer string, own client.Object, end networkingv1beta1.ConnectionType) {
	key := client.ObjectKey{Namespace: corev1beta1.TenantNamespacePrefix + peer, Name: peer}
	tell := func() error {
		if err := c.Client.Get(ctx, key, &networkingv1beta1.PublicKey{}); err != nil {
			return fmt.Errorf("reading the key: %w", err)
		}
		if err := c.Client.Get(ctx, key, own); err != nil {
			return fmt.Errorf("reading the gateway: %w", err)
		}
		connection := &networkingv1beta1.Connection{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer}},
			Spec:       networkingv1beta1.ConnectionSpec{Type: end, GatewayRef: corev1.ObjectReference{Namespace: key.Namespace, Name: key.Name}},
		}
		if err := controllerutil.SetControllerReference(own, connection, target.Scheme()); err != nil {
			return fmt.Errorf("telling of the tunnel: %w", err)
		}
		if err := client.IgnoreAlreadyExists(c.Client.Create(ctx, connection)); err != nil {
			return fmt.Errorf("telling of the tunnel: %w", err)
		}
		if err := c.Client.Get(ctx, key, connection); err != nil {
			return fmt.Errorf("reading the connection: %w", err)
		}
		connection.Status.Value = networkingv1beta1.Connected
		return c.Client.Status().Update(ctx, connection)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for tell() != nil {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	n.Cleanup(func() { <-done })
}
