package networktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/fabric/agent"
)

// pods plays the agents: what each answers to a command, by pod.
type pods struct {
	mu     sync.Mutex
	differ map[string]string
	deaf   string
	asked  []string
}

func (p *pods) Exec(_ context.Context, _, pod string, command []string, _ io.Reader, out io.Writer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, pod+": "+strings.Join(command, " "))
	switch {
	case pod == p.deaf:
		return fmt.Errorf("running it: %w the agent does not answer", exec.CodeExitError{Err: errors.New("command terminated with exit code 1"), Code: 1})
	case command[1] == "repair":
		delete(p.differ, pod)
	case command[1] == obstaclesCommand:
		_, err := io.WriteString(out, "net.ipv4.conf.eth0.forwarding is 0\n")
		return err
	case command[1] == "diff" && p.differ[pod] != "":
		_, err := io.WriteString(out, p.differ[pod])
		return errors.Join(err, exec.CodeExitError{Err: agent.ErrDiffers, Code: agent.ExitDiffers})
	}
	return nil
}

func agentPodOf(namespace, name, node string, labels map[string]string) client.Object {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "agent", Args: []string{"--health-port=99"}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

// What differs is told, of all agents, and put right if that is asked for; an agent that does not answer is told, too.
func TestDifferencesAreToldAndPutRight(t *testing.T) {
	fabric := map[string]string{target.ComponentLabel: target.FabricComponent}
	cluster := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Networking: true, Objects: []client.Object{
		agentPodOf("liqo", "liqo-fabric-1", "node-1", fabric), agentPodOf("liqo", "liqo-fabric-2", "node-2", fabric),
		agentPodOf("liqo-tenant-milan", "gw-milan-1", "node-1", map[string]string{networkingv1beta1.GatewayComponentLabel: gatewayComponent}),
		agentPodOf("liqo", "something-else", "node-1", nil),
	}})
	agents := &pods{differ: map[string]string{"liqo-fabric-2": "- a rule\n", "gw-milan-1": "+ a route\n"}, deaf: "liqo-fabric-1"}
	o := Options{Local: cluster.Cluster, Streams: func(*target.Cluster) Streams { return agents }}
	deaf := Difference{Cluster: "rome", Pod: "liqo/liqo-fabric-1", Node: "node-1", Unknown: "the agent does not answer"}
	want := []Difference{
		deaf, {Cluster: "rome", Pod: "liqo/liqo-fabric-2", Node: "node-2", Lines: "- a rule\n"},
		{Cluster: "rome", Pod: "liqo-tenant-milan/gw-milan-1", Node: "node-1", Lines: "+ a route\n"},
	}
	got, err := Diff(t.Context(), o)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, asked := range agents.asked {
		if !strings.HasSuffix(asked, "--health-port=99") || strings.Contains(asked, "repair") {
			t.Errorf("asked %s", asked)
		}
	}
	o.Repair = true
	if got, err = Diff(t.Context(), o); err != nil || len(got) != 1 || got[0].Pod != deaf.Pod {
		t.Errorf("after the repair: %v, %+v", err, got)
	}
}

// What stands for a peer is found by its label, whatever its name; of several the oldest.
func TestWhatCountsForThePeer(t *testing.T) {
	named := func(name, peer string, age time.Duration) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age)),
			Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer}}
	}
	server := &networkingv1beta1.GatewayServer{ObjectMeta: named("server", "milan", 0)}
	server.Status.SecretRef = &corev1.ObjectReference{Name: "keys"}
	cluster := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Networking: true, Objects: []client.Object{
		server, &corev1.Secret{ObjectMeta: named("keys", "", 0), Data: map[string][]byte{networkingv1beta1.PublicKeyKey: []byte("own")}},
		&networkingv1beta1.Configuration{ObjectMeta: named("milan", "", time.Hour)}, &networkingv1beta1.Configuration{ObjectMeta: named("milan-net", "milan", 0)},
		&networkingv1beta1.PublicKey{ObjectMeta: named("milan", "milan", 0), Spec: networkingv1beta1.PublicKeySpec{PublicKey: []byte("later")}},
		&networkingv1beta1.PublicKey{ObjectMeta: named("my-key", "milan", time.Hour), Spec: networkingv1beta1.PublicKeySpec{PublicKey: []byte("theirs")}},
		&networkingv1beta1.Connection{ObjectMeta: named("server", "milan", 0)},
		agentPodOf("liqo", "liqo-fabric-1", "node-1", map[string]string{target.ComponentLabel: target.FabricComponent}),
		agentPodOf("liqo-tenant-milan", "gw-server-1", "node-1", map[string]string{
			networkingv1beta1.GatewayComponentLabel: gatewayComponent, networkingv1beta1.GatewayNameLabel: "server", corev1beta1.RemoteClusterIDLabel: "milan",
		}),
	}})
	f, err := gather(t.Context(), cluster.Cluster, &pods{}, "milan")
	if err != nil {
		t.Fatal(err)
	}
	if f.configuration == nil || f.server == nil || f.peerKey == nil || f.connection == nil || len(f.gateways) != 1 {
		t.Fatalf("found %+v", f)
	}
	got := []string{f.configuration.Name, f.server.Name, string(f.key), f.peerKey.Name, f.connection.Name, f.gateways[0].pod.Name}
	if diff := cmp.Diff([]string{"milan-net", "server", "own", "my-key", "server", "gw-server-1"}, got); diff != "" || !f.knows([]byte("theirs")) {
		t.Error(diff)
	}
	if len(f.agents) != 1 || f.blocked("node-1") == nil {
		t.Errorf("the agents are %+v", f.agents)
	}
	if f, err = gather(t.Context(), cluster.Cluster, &pods{}, "turin"); err != nil || f.configuration != nil || f.peerKey != nil || len(f.gateways) > 0 {
		t.Errorf("of another peer: %v, %+v", err, f)
	}
}
