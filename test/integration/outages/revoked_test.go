package outages

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// grant sets what the provider grants the consumer: Active, Cordoned or Drained.
func grant(t *testing.T, condition authv1beta1.TenantCondition) {
	t.Helper()
	tenants := &authv1beta1.TenantList{}
	fixture.Must(t, "listing the Tenants of milan", env.Milan.Client.List(context.WithoutCancel(t.Context()), tenants, client.InNamespace(fixture.ProviderNamespace)))
	if len(tenants.Items) != 1 {
		t.Fatalf("milan has %d Tenants for rome", len(tenants.Items))
	}
	patch := fmt.Sprintf(`{"spec":{"tenantCondition":%q}}`, condition)
	fixture.Must(t, "changing the Tenant", env.Milan.Client.Patch(context.WithoutCancel(t.Context()), &tenants.Items[0],
		client.RawPatch(types.MergePatchType, []byte(patch))))
}

// peering is what rome shows of its peering with milan.
type peering struct {
	node    *corev1.Node
	virtual *offloadingv1beta1.VirtualNode
	foreign *corev1beta1.ForeignCluster
}

func peeringOf(ctx context.Context, w *world.Peering) (*peering, error) {
	p := &peering{node: &corev1.Node{}, virtual: &offloadingv1beta1.VirtualNode{}, foreign: &corev1beta1.ForeignCluster{}}
	return p, errors.Join(
		env.Rome.Client.Get(ctx, client.ObjectKey{Name: w.Node}, p.node),
		env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}, p.virtual),
		env.Rome.Client.Get(ctx, client.ObjectKey{Name: "milan"}, p.foreign))
}

// says is the reason of the Ready condition of the Node and of the VirtualNode, and what the ForeignCluster says: one process knows of the
// provider before the other does.
func (p *peering) says() string {
	node, virtual, api, auth := "none", "none", "none", "none"
	for _, c := range p.node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			node = fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	if c := conditions.Find(p.virtual.Status.All(), corev1beta1.ConditionReady); c != nil {
		virtual = c.Status + " " + c.Reason
	}
	if c := conditions.Find(p.foreign.Status.Conditions, corev1beta1.APIServerStatus); c != nil {
		api = c.Status
	}
	if c := conditions.Find(p.foreign.Status.Modules.Authentication.Conditions, corev1beta1.AuthIdentityControlPlaneStatus); c != nil {
		auth = c.Status + " " + c.Reason
	}
	return fmt.Sprintf("node %s, tainted %t; virtual node %s; API server %s; authentication %s", node, world.Tainted(p.node), virtual, api, auth)
}

func awaitSays(t *testing.T, w *world.Peering, what, want string) {
	t.Helper()
	fixture.Await(t, 3*fixture.Patience, what, func(ctx context.Context) (bool, string) {
		p, err := peeringOf(ctx, w)
		if err != nil {
			return false, err.Error()
		}
		return p.says() == want, p.says()
	})
}

const (
	allIsWell    = "node True VirtualKubeletReady, tainted false; virtual node True VirtualNodeReady; API server Established; authentication Established IdentityReady"
	rightsAreOff = "node False RightsRevoked, tainted true; virtual node False RightsRevoked; API server Established; authentication Error RightsRevoked"
)

// liqoctl runs a command against rome and returns its exit code and what it printed.
func liqoctl(t *testing.T, arguments ...string) (code int, output string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), env.Environment.Binary(t, "liqoctl"), arguments...)
	command.Env = []string{"KUBECONFIG=" + env.Rome.Kubeconfig, "HOME=" + t.TempDir()}
	out, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatalf("running liqoctl: %v", err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

// verdicts checks what 'liqoctl info' and 'liqoctl info peer' make of the peering. Our processes do not run in pods here, which is a
// problem of its own to the former.
func verdicts(t *testing.T, broken bool) {
	t.Helper()
	const words = "a problem with the peering with milan"
	if code, out := liqoctl(t, "info"); strings.Contains(out, words) != broken || broken && code != 4 {
		t.Errorf("info exits with %d, want the peering to be broken: %t:\n%s", code, broken, out)
	}
	want := 0
	if broken {
		want = 4
	}
	if code, out := liqoctl(t, "info", "peer", "milan"); code != want {
		t.Errorf("info peer exits with %d, want %d:\n%s", code, want, out)
	}
}

// A provider drains its tenant, as an administrator does who takes the rights back: at home everything says so, pods that were seen to
// go have failed, nothing new is placed there; when the rights are given back all works again by itself.
func TestRightsTakenBackAndGivenAgain(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	for _, name := range []string{"one", "two"} {
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, name)))
	}
	world.AwaitPods(t, env.Rome, namespace, 2)
	awaitSays(t, w, "all to be well", allIsWell)
	verdicts(t, false)

	grant(t, authv1beta1.TenantDrained)
	t.Cleanup(func() { grant(t, authv1beta1.TenantActive) })
	awaitSays(t, w, "the loss of the rights to show", rightsAreOff)
	verdicts(t, true)
	fixture.Await(t, 2*fixture.Patience, "the pods that the provider removed to fail", func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		err := env.Rome.Client.List(ctx, pods, client.InNamespace(namespace))
		failed, seen := 0, fmt.Sprint(err)
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodFailed && p.Status.Reason == offloadingv1beta1.ReasonRightsRevoked {
				failed++
			}
			seen += fmt.Sprintf(" %s is %s: %s %s %v", p.Name, p.Status.Phase, p.Status.Reason, p.Status.Message, p.Status.Conditions)
		}
		return err == nil && failed == 2, seen
	})
	late := world.Pod(namespace, "late")
	fixture.Must(t, "creating a pod without rights", env.Rome.Client.Create(t.Context(), late))
	env.AwaitPod(t, late, "to find no node", func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				return p.Spec.NodeName == ""
			}
		}
		return false
	})

	grant(t, authv1beta1.TenantActive)
	awaitSays(t, w, "all to be well again by itself", allIsWell)
	env.AwaitPod(t, late, "to run once the rights are back", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	verdicts(t, false)
}
