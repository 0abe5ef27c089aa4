package unpeer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
)

// connected is what a cluster has of the network to a peer.
func connected(peer string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: "liqo-tenant-" + peer, Name: peer, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer}}
	return []client.Object{
		&networkingv1beta1.Configuration{ObjectMeta: meta}, &networkingv1beta1.GatewayServer{ObjectMeta: meta},
		&networkingv1beta1.GatewayClient{ObjectMeta: meta}, &networkingv1beta1.PublicKey{ObjectMeta: meta},
	}
}

// networkOf lists the writes to objects of networks.
func networkOf(writes []string) []string {
	return slices.DeleteFunc(writes, func(write string) bool {
		return !strings.Contains(write, "Gateway") && !strings.Contains(write, "Configuration") && !strings.Contains(write, "PublicKey")
	})
}

func TestUnpeeringTakesTheNetworkBack(t *testing.T) {
	mutual := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}, Spec: authv1beta1.TenantSpec{ClusterID: "milan"}}
	for sentence, test := range map[string]struct {
		more []client.Object
		want int
	}{
		"one way":                         {nil, 4},
		"milan uses rome's resources too": {[]client.Object{mutual}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Networking: true, Objects: slices.Concat(consumer(), connected("milan"), test.more)})
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Networking: true, Objects: append(provider(), connected("rome")...)})
			recorder := &progress.Recorder{}
			if _, err := unpeer.Run(t.Context(), unpeer.Options{Consumer: rome.Cluster, Provider: milan.Cluster, Observer: recorder, Timeout: 20 * time.Second}); err != nil {
				t.Fatal(err)
			}
			for _, cluster := range []*fixture.Cluster{rome, milan} {
				if writes := networkOf(cluster.Writes()); len(writes) != test.want {
					t.Errorf("wrote %v", writes)
				}
				if peers, err := network.Peers(t.Context(), cluster.Cluster); err != nil || len(peers) != 1-test.want/4 {
					t.Error(peers, err)
				}
			}
			lines := recorder.Lines()
			tenant, gateway := slices.Index(lines, "milan: done: Deleted Tenant liqo-tenant-rome/rome"), slices.Index(lines, "milan: done: Deleted GatewayServer liqo-tenant-rome/rome")
			if test.want > 0 && gateway < tenant {
				t.Error(lines)
			}
		})
	}
}

func TestForceTakesTheNetworkBackHere(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append([]client.Object{tenantNamespace("milan"), foreign("milan")}, connected("milan")...)})
	if _, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: rome.Cluster, PeerID: "milan", Timeout: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if writes := networkOf(rome.Writes()); len(writes) != 4 {
		t.Errorf("wrote %v", writes)
	}
}

func TestUnpeeringNeedsTheRightsOfNetworks(t *testing.T) {
	const missing = "delete gatewayservers.networking.liqo.io in namespace liqo-tenant-rome"
	for sentence, test := range map[string]struct {
		objects []client.Object
		code    failure.Code
	}{"there is a network": {connected("rome"), failure.Precondition}, "there is none": {nil, failure.OK}} {
		rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: consumer()})
		milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: append(provider(), test.objects...), Missing: []string{missing}})
		_, err := unpeer.Run(t.Context(), unpeer.Options{Consumer: rome.Cluster, Provider: milan.Cluster, Timeout: 20 * time.Second})
		if failure.CodeOf(err) != test.code || test.code != failure.OK && (!strings.Contains(err.Error(), missing) || len(rome.Writes()) > 0) {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}
