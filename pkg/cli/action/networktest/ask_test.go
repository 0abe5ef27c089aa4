package networktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	fabric := map[string]string{target.ComponentLabel: fabricComponent}
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
