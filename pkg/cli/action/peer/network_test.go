package peer_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/action/revoke"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
)

// networked is a pair with the network module in both clusters, unless it is missing in one.
func networked(t *testing.T, home, there bool, change ...func(*fixture.Networks)) pair {
	t.Helper()
	plays := &controllers{}
	networks := [2]*fixture.Networks{{T: t, Key: 1, PeerKey: 2}, {T: t, Key: 2, PeerKey: 1}}
	for _, one := range change {
		one(networks[1])
	}
	both := func(n *fixture.Networks) func(context.Context, client.Client, client.Object) {
		return func(ctx context.Context, store client.Client, written client.Object) {
			plays.react(ctx, store, written)
			n.React(ctx, store, written)
		}
	}
	return newPair(t, plays, func(consumer, provider *fixture.Options) {
		consumer.Networking, provider.Networking = home, there
		consumer.Objects, provider.Objects = fixture.OwnNetworks("10.244.0.0/16"), fixture.OwnNetworks("10.244.0.0/16")
		consumer.React, provider.React = both(networks[0]), both(networks[1])
	})
}

// Authentication waits for nothing of the network, gateways start while resources are asked for, and there is no virtual node before its pods can be reached.
func TestPeeringConnectsTheNetworks(t *testing.T) {
	p := networked(t, true, true)
	o := p.options()
	o.Network = network.Settings{ServerHere: true}
	report, err := peer.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Network == nil || !report.Network.Connected || report.Network.Server != "rome" || report.VirtualNode != "milan" || !report.Changed {
		t.Errorf("%+v, %+v", report, report.Network)
	}
	lines := p.recorder.Lines()
	index := func(prefix string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, prefix) })
	}
	keys, nonce := index("milan: done: PublicKey rome"), index("milan: done: Nonce received")
	connected, node := index("done: The networks of rome and milan are connected"), index("rome: done: Virtual node milan")
	granted := index("rome: done: milan granted")
	if nonce < 0 || keys < nonce || granted < keys || connected < granted || node < connected {
		t.Errorf("nonce in line %d, keys in %d, granted in %d, connected in %d, virtual node in %d of %s", nonce, keys, granted, connected, node, strings.Join(lines, "\n"))
	}
	before := len(p.consumer.Writes()) + len(p.provider.Writes())
	report, err = peer.Run(t.Context(), o)
	if after := len(p.consumer.Writes()) + len(p.provider.Writes()); err != nil || report.Changed || after != before {
		t.Errorf("again: %v, %+v, %d writes", err, report, after-before)
	}
}

// Whoever peers again after a revocation has the new key, whatever the network waits for.
func TestAuthenticationDoesNotWaitForALoadBalancer(t *testing.T) {
	p := networked(t, true, true, func(n *fixture.Networks) { n.Gateway = networkingv1beta1.ReasonEndpointPending })
	o := p.options()
	o.Timeout = 8 * time.Second
	report, err := peer.Run(t.Context(), o)
	if failure.CodeOf(err) != failure.Timeout || !strings.HasSuffix(err.Error(), "add --gw-server-service-type NodePort") {
		t.Errorf("got %v", err)
	}
	lines := strings.Join(p.recorder.Lines(), "\n")
	if report.Identity != "controlplane-milan" || !strings.Contains(lines, "rome: done: Identity controlplane-milan is usable") || !strings.Contains(lines, "interrupt this and run it again with") {
		t.Errorf("%+v, said %s", report, lines)
	}
}

func TestPeeringLeavesNetworksAlone(t *testing.T) {
	for sentence, test := range map[string]struct {
		home, there, disabled bool
		want                  string
	}{
		"neither has the module":   {},
		"the user wants it so":     {home: true, there: true, disabled: true},
		"the user wants it, again": {home: true, disabled: true},
		"only the consumer has it": {home: true, want: "cluster rome has the network module, and cluster milan has it not: " +
			"turn it on there with 'liqoctl install --set networking.enabled=true --context kind-milan', or add --networking-disabled to peer without"},
		"only the provider has it": {there: true, want: "cluster milan has the network module, and cluster rome has it not: " +
			"turn it on there with 'liqoctl install --set networking.enabled=true --context kind-rome', or add --networking-disabled to peer without"},
	} {
		t.Run(sentence, func(t *testing.T) {
			p := networked(t, test.home, test.there)
			o := p.options()
			o.NoNetwork = test.disabled
			report, err := peer.Run(t.Context(), o)
			writes := strings.Join(append(p.consumer.Writes(), p.provider.Writes()...), "\n")
			if test.want != "" {
				if failure.CodeOf(err) != failure.Precondition || err.Error() != test.want || writes != "" {
					t.Errorf("%v, wrote %s", err, writes)
				}
				return
			}
			if err != nil || report.Network != nil || strings.Contains(writes, "Gateway") || strings.Contains(writes, "Configuration") {
				t.Errorf("%v, %+v, wrote\n%s", err, report, writes)
			}
		})
	}
}

// A provider without load balancers that revoked its consumer is peered with again as it was, from either side.
func TestTheGatewayOutlivesARevocation(t *testing.T) {
	for sentence, revoking := range map[string]func(pair) (*fixture.Cluster, string){
		"at the provider": func(p pair) (*fixture.Cluster, string) { return p.provider, "rome" },
		"at the consumer": func(p pair) (*fixture.Cluster, string) { return p.consumer, "milan" },
	} {
		t.Run(sentence, func(t *testing.T) {
			p := networked(t, true, true)
			for _, known := range []struct {
				cluster *fixture.Cluster
				peer    string
			}{{p.consumer, "milan"}, {p.provider, "rome"}} {
				if err := known.cluster.Client.Create(t.Context(), &corev1beta1.ForeignCluster{
					ObjectMeta: metav1.ObjectMeta{Name: known.peer}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: corev1beta1.ClusterID(known.peer)}}); err != nil {
					t.Fatal(err)
				}
			}
			o := p.options()
			o.Network = network.Settings{ServiceType: corev1.ServiceTypeNodePort, NodePort: ptr.To[int32](30100), MTU: ptr.To[int32](1300)}
			if _, err := peer.Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			cluster, revoked := revoking(p)
			if err := cluster.Client.DeleteAllOf(t.Context(), &networkingv1beta1.Connection{}, client.InNamespace("liqo-tenant-"+revoked)); err != nil {
				t.Fatal(err)
			}
			report, err := revoke.Run(t.Context(), revoke.Options{Cluster: cluster.Cluster, PeerID: revoked, Timeout: 20 * time.Second})
			if err != nil || !report.Network {
				t.Fatal(report, err)
			}
			if _, err := peer.Run(t.Context(), p.options()); err != nil {
				t.Fatal(err)
			}
			server, dialer := &networkingv1beta1.GatewayServer{}, &networkingv1beta1.GatewayClient{}
			if err := p.provider.Client.Get(t.Context(), types.NamespacedName{Namespace: "liqo-tenant-rome", Name: "rome"}, server); err != nil {
				t.Fatal(err)
			}
			if err := p.consumer.Client.Get(t.Context(), types.NamespacedName{Namespace: "liqo-tenant-milan", Name: "milan"}, dialer); err != nil {
				t.Fatal(err)
			}
			want := networkingv1beta1.Endpoint{ServiceType: corev1.ServiceTypeNodePort, NodePort: 30100, Port: networkingv1beta1.Port(network.DefaultPort)}
			if diff := cmp.Diff(want, server.Spec.Endpoint); diff != "" || server.Spec.MTU != 1300 || dialer.Spec.MTU != 1300 {
				t.Errorf("%s, MTU %d of the server, %d of the client", diff, server.Spec.MTU, dialer.Spec.MTU)
			}
		})
	}
}

func TestPeeringNeedsTheRightsOfNetworks(t *testing.T) {
	const missing = "create gatewayservers.networking.liqo.io in namespace liqo-tenant-rome"
	p := newPair(t, &controllers{}, func(consumer, provider *fixture.Options) {
		consumer.Networking, provider.Networking = true, true
		provider.Missing = []string{missing}
	})
	if _, err := peer.Run(t.Context(), p.options()); failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
}
