package network_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
)

// exposed is what is told apart of a gateway server and its client.
type exposed struct {
	Endpoint    networkingv1beta1.Endpoint
	Annotations map[string]string
	MTU         [2]networkingv1beta1.MTU
	Secret      string
}

// Whoever had the networks connected through a node port has them so again, without a word.
func TestAGatewayIsMadeAsTheFormerOneWas(t *testing.T) {
	asked := network.Settings{ServiceType: corev1.ServiceTypeNodePort, NodePort: ptr.To[int32](30100), Port: 5000, MTU: ptr.To[int32](1300)}
	former := exposed{
		Endpoint:    networkingv1beta1.Endpoint{ServiceType: corev1.ServiceTypeNodePort, NodePort: 30100, Port: 5000},
		Annotations: map[string]string{networkingv1beta1.OverrideAddressAnnotation: "198.51.100.1"}, MTU: [2]networkingv1beta1.MTU{1300, 1300},
	}
	balanced := former
	balanced.Endpoint = networkingv1beta1.Endpoint{ServiceType: corev1.ServiceTypeLoadBalancer, Port: 5000}
	usual := exposed{Endpoint: networkingv1beta1.Endpoint{ServiceType: corev1.ServiceTypeLoadBalancer, Port: networkingv1beta1.Port(network.DefaultPort)}}
	disconnect := func(ctx context.Context, o network.Options) error { _, err := network.Disconnect(ctx, o); return err }
	note := func(text string) func(*testing.T, *fixture.Cluster, string) {
		return func(t *testing.T, cluster *fixture.Cluster, peer string) {
			t.Helper()
			configuration := get(t, cluster, peer, &networkingv1beta1.Configuration{})
			metav1.SetMetaDataAnnotation(&configuration.ObjectMeta, networkingv1beta1.FormerGatewayAnnotation, text)
			if err := cluster.Client.Update(t.Context(), configuration); err != nil {
				t.Fatal(err)
			}
		}
	}
	for sentence, test := range map[string]struct {
		part   func(context.Context, network.Options) error
		change func(t *testing.T, cluster *fixture.Cluster, peer string)
		again  network.Settings
		want   exposed
	}{
		"after a disconnect": {part: disconnect, want: former},
		"after one that was run twice": {part: func(ctx context.Context, o network.Options) error {
			return errors.Join(disconnect(ctx, o), disconnect(ctx, o))
		}, want: former},
		"unless settings say otherwise": {part: disconnect, want: balanced,
			again: network.Settings{ServiceType: corev1.ServiceTypeLoadBalancer, NodePort: ptr.To[int32](0)}},
		"not after a reset":              {part: func(ctx context.Context, o network.Options) error { _, err := network.Reset(ctx, o); return err }, want: usual},
		"not if the note cannot be read": {part: disconnect, change: note(`{"server": {"mtu": 1300`), want: usual},
		"nor if it is of another form":   {part: disconnect, change: note(`{"server": {"mtu": 1300, "endpoint": true}}`), want: usual},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newWorld(t, nil)
			o := w.options()
			o.Settings = asked
			if _, err := network.Connect(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			server := get(t, w.milan, "rome", &networkingv1beta1.GatewayServer{})
			server.Spec.SecretRef.Name, server.Spec.ServiceAnnotations = "stolen", former.Annotations
			if err := w.milan.Client.Update(t.Context(), server); err != nil {
				t.Fatal(err)
			}
			collect(t, w.rome, w.milan)
			if err := test.part(t.Context(), w.options()); err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(t, w.rome, "milan")
				test.change(t, w.milan, "rome")
			}
			o = w.options()
			o.Settings = test.again
			if _, err := network.Connect(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			made, dialer := get(t, w.milan, "rome", &networkingv1beta1.GatewayServer{}).Spec, get(t, w.rome, "milan", &networkingv1beta1.GatewayClient{}).Spec
			got := exposed{made.Endpoint, made.ServiceAnnotations, [2]networkingv1beta1.MTU{made.MTU, dialer.MTU}, made.SecretRef.Name}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A gateway of the other kind in the same cluster ends what was noted of the one before.
func TestTheLastGatewayIsNoted(t *testing.T) {
	w := newWorld(t, nil)
	for _, here := range []bool{true, false} {
		o := w.options()
		o.Settings.ServerHere = here
		if _, err := network.Connect(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		collect(t, w.rome, w.milan)
		if _, err := network.Disconnect(t.Context(), w.options()); err != nil {
			t.Fatal(err)
		}
		note := get(t, w.rome, "milan", &networkingv1beta1.Configuration{}).Annotations[networkingv1beta1.FormerGatewayAnnotation]
		if strings.Contains(note, `"server":`) != here || strings.Contains(note, `"client":`) == here {
			t.Errorf("with the server here: %t, noted %s", here, note)
		}
		if strings.Contains(note, `"addresses":[`) {
			t.Errorf("noted where the former server was: %s", note)
		}
	}
}

// A node port that the former gateway had is tried before anything is written, as one that a flag says.
func TestTheNodePortOfTheFormerGatewayIsTried(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := network.Connect(t.Context(), w.options()); err != nil {
		t.Fatal(err)
	}
	collect(t, w.rome, w.milan)
	if _, err := network.Disconnect(t.Context(), w.options()); err != nil {
		t.Fatal(err)
	}
	configuration := get(t, w.milan, "rome", &networkingv1beta1.Configuration{})
	metav1.SetMetaDataAnnotation(&configuration.ObjectMeta, networkingv1beta1.FormerGatewayAnnotation, `{"server":{"endpoint":{"nodePort":80}}}`)
	if err := w.milan.Client.Update(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	before := len(w.writes())
	_, err := network.Connect(t.Context(), w.options())
	if err == nil || failure.CodeOf(err) != failure.Precondition || !strings.HasSuffix(err.Error(), "--gw-server-service-nodeport 0") {
		t.Errorf("%v", err)
	}
	if writes := w.writes()[before:]; len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
	o := w.options()
	o.Settings.NodePort = ptr.To[int32](0)
	if _, err := network.Connect(t.Context(), o); err != nil {
		t.Errorf("with the way out: %v", err)
	}
}

// unpatchable is a client whose API server lets nobody patch.
type unpatchable struct{ client.Client }

func (unpatchable) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errors.New("no")
}

func TestATunnelIsCutAlthoughNothingCanBeNoted(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := network.Connect(t.Context(), w.options()); err != nil {
		t.Fatal(err)
	}
	collect(t, w.rome, w.milan)
	w.milan.Client = unpatchable{w.milan.Client}
	if _, err := network.Part(t.Context(), network.Parting{Cluster: w.milan.Cluster, PeerID: "rome", Observer: w.recorder}); err != nil {
		t.Fatal(err)
	}
	if there, err := network.HasTunnel(t.Context(), w.milan.Cluster, "rome"); err != nil || there {
		t.Errorf("the tunnel is there: %t, %v", there, err)
	}
	const want = "milan: warning: how the gateway to rome is made is not remembered: give its --gw- flags again: changing Configuration liqo-tenant-rome/rome (cluster milan): no"
	if lines := strings.Join(w.recorder.Lines(), "\n"); !strings.Contains(lines, want) {
		t.Errorf("told %s", lines)
	}
}
