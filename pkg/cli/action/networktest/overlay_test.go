package networktest

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// overlays plays the agents of two clusters: which nodes their gateway does not answer, and which cannot be asked.
type overlays map[string]string

func (o overlays) Exec(_ context.Context, _, pod string, command []string, _ io.Reader, out io.Writer) error {
	address := command[len(command)-1]
	switch said := o[pod]; {
	case address != "10.70.255.254" || command[1] != reachCommand:
		return errors.New("asked for something else")
	case said == "deaf":
		return errors.New("the kubelet does not answer")
	case said != "":
		_, err := io.WriteString(out, address+" silent i/o timeout\n")
		return err
	default:
		_, err := io.WriteString(out, address+" reached\n")
		return err
	}
}

// Who may not look for the agents peers all the same.
func TestWhoMayNotSeeAgentsIsNotHeldUp(t *testing.T) {
	own := func(id, peer string) *target.Cluster {
		return fixture.New(t, fixture.Options{Name: "kind-" + id, ClusterID: id, Networking: true, PodsForbidden: true, Objects: []client.Object{
			&networkingv1beta1.InternalFabric{ObjectMeta: metav1.ObjectMeta{
				Namespace: "liqo-tenant-" + peer, Name: "gw", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer},
			}},
		}}).Cluster
	}
	pair, err := target.RequirePair(t.Context(), own("rome", "milan"), own("milan", "rome"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := Overlay(t.Context(), pair, nil, progress.Discard); err != nil {
		t.Error(err)
	}
}

// Two clusters are connected once their nodes reach the gateways. A node that does not is told by name and cluster; where none does, nothing passes.
func TestNodesReachTheirGateways(t *testing.T) {
	fabric := map[string]string{target.ComponentLabel: target.FabricComponent}
	own := func(id, peer string) *target.Cluster {
		broken := agentPodOf("liqo", id+"-4", id+"-4", fabric)
		broken.(*corev1.Pod).Status.Conditions = nil
		return fixture.New(t, fixture.Options{Name: "kind-" + id, ClusterID: id, Networking: true, Objects: []client.Object{
			agentPodOf("liqo", id+"-1", id+"-1", fabric), agentPodOf("liqo", id+"-2", id+"-2", fabric), agentPodOf("liqo", id+"-3", id+"-3", fabric), broken,
			&networkingv1beta1.InternalFabric{
				ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + peer, Name: "gw", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer}},
				Spec: networkingv1beta1.InternalFabricSpec{Interface: networkingv1beta1.InternalFabricSpecInterface{
					Gateway: networkingv1beta1.InternalFabricSpecInterfaceGateway{IP: "10.70.255.254"},
				}},
			},
		}}).Cluster
	}
	for name, test := range map[string]struct {
		agents overlays
		line   string
		err    string
	}{
		"all": {overlays{}, "done: The nodes reach the gateways", ""},
		"some": {
			overlays{"rome-2": "silent", "milan-1": "silent", "milan-3": "silent"},
			"warned: the gateway to milan does not answer 1 of 3 nodes of cluster rome through the overlay (UDP 6091): rome-2; " +
				"the gateway to rome does not answer 2 of 3 nodes of cluster milan through the overlay (UDP 6091): milan-1, milan-3", "",
		},
		"none of a cluster": {
			overlays{"milan-1": "silent", "milan-2": "silent", "milan-3": "silent"}, "failed: Asking the nodes whether they reach the gateways",
			"the gateway to rome does not answer 3 of 3 nodes of cluster milan through the overlay (UDP 6091): milan-1, milan-2, milan-3",
		},
		"those that cannot be asked are left out": {overlays{"rome-2": "deaf", "milan-3": "deaf"}, "done: The nodes reach the gateways", ""},
		"nobody can be asked": {
			overlays{"rome-1": "deaf", "rome-2": "deaf", "rome-3": "deaf", "milan-1": "deaf", "milan-2": "deaf", "milan-3": "deaf"},
			"done: No node could be asked whether it reaches its gateway", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := target.RequirePair(t.Context(), own("rome", "milan"), own("milan", "rome"), false)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				recorder := &progress.Recorder{}
				err := Overlay(t.Context(), pair, func(*target.Cluster) Streams { return test.agents }, recorder)
				text, next := "", ""
				if err != nil {
					text, next = failure.NextOf(err)
				}
				if text != test.err || err != nil && (failure.CodeOf(err) != failure.Timeout || !strings.Contains(next, "networking.genevePort, 6091")) {
					t.Errorf("got %v", err)
				}
				if lines := strings.Join(recorder.Lines(), "\n"); !strings.Contains(lines, test.line) {
					t.Errorf("said %s", lines)
				}
			})
		})
	}
}
