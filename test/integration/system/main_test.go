package system

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/test/integration/fixture"
)

var env fixture.Environment

func TestMain(m *testing.M) { fixture.Main(m, &env, fixture.Options{Nodes: 3, Linked: true}) }

// peeringTimeout is long, because real certificates are issued and two processors may be shared with other tests.
const peeringTimeout = 4 * time.Minute

// world is what the tests of this package share: both controller managers, and rome peered with milan.
type world struct {
	rome, milan *fixture.Manager
	kubelet     *kubelet
	// node is the name of the VirtualNode and of its Node.
	node string
}

var (
	theWorld world
	once     sync.Once
	// broken says that the world could not be made, so that later tests do not wait for it again.
	broken = true
)

const consumerNamespace = corev1beta1.TenantNamespacePrefix + "milan"
const providerNamespace = corev1beta1.TenantNamespacePrefix + "rome"

// peered returns the world, made by the first test that asks.
func peered(t *testing.T) *world {
	t.Helper()
	env.Explain(t)
	once.Do(func() {
		theWorld.rome, theWorld.milan = env.StartManager(t, env.Rome), env.StartManager(t, env.Milan)
		theWorld.peer(t)
		broken = false
	})
	if broken {
		t.Fatal("the clusters could not be peered; the first test that failed says why")
	}
	return &theWorld
}

func (w *world) peer(t *testing.T) {
	t.Helper()
	type outcome struct {
		report *peer.Report
		err    error
	}
	done := make(chan outcome, 1)
	env.Binary(t, "virtual-kubelet") // It takes time to build, which is not peering's.
	ctx, cancel := context.WithTimeout(t.Context(), peeringTimeout)
	defer cancel()
	consumer, err := target.FromKubeconfig(env.Rome.Kubeconfig, "")
	fixture.Must(t, "opening the kubeconfig of rome", err)
	provider, err := target.FromKubeconfig(env.Milan.Kubeconfig, "")
	fixture.Must(t, "opening the kubeconfig of milan", err)
	go func() {
		report, err := peer.Run(ctx, peer.Options{Consumer: consumer, Provider: provider, SkipValidation: true, Timeout: peeringTimeout,
			Resources: corev1.ResourceList{"cpu": resource.MustParse("1000"), "memory": resource.MustParse("1000Gi"), "pods": resource.MustParse("500")}})
		done <- outcome{report, err}
	}()
	w.node = "milan"
	fixture.Await(t, peeringTimeout, "the simulated pod of the virtual kubelet", func(ctx context.Context) (bool, string) {
		select {
		case early := <-done:
			t.Fatalf("peering ended before there was a virtual kubelet: %+v, %v", early.report, early.err)
		default:
		}
		nodes := &offloadingv1beta1.VirtualNodeList{}
		if err := env.Rome.Client.List(ctx, nodes, client.InNamespace(consumerNamespace)); err != nil || len(nodes.Items) == 0 {
			return false, fmt.Sprintf("%d VirtualNodes, error %v", len(nodes.Items), err)
		}
		w.node = nodes.Items[0].Name
		pod, seen := kubeletPod(ctx, w.node)
		return pod != nil && pod.Status.PodIP != "", seen
	})
	w.kubelet = startKubelet(t, w.node)
	result := <-done
	fixture.Must(t, "peering rome with milan", result.err)
}

// kubelet is the virtual kubelet in the place of its simulated pod.
type kubelet struct {
	*fixture.Process
	env  map[string]string
	args []string
	// pki is the folder with its certificates as a node.
	pki string
}

func kubeletPod(ctx context.Context, node string) (pod *corev1.Pod, seen string) {
	pods := &corev1.PodList{}
	err := env.Rome.Client.List(ctx, pods, client.InNamespace(consumerNamespace), client.MatchingLabels{offloadingv1beta1.VirtualNodeLabel: node})
	if err != nil || len(pods.Items) == 0 {
		return nil, fmt.Sprintf("%d pods of VirtualNode %s, error %v", len(pods.Items), node, err)
	}
	return &pods.Items[0], fmt.Sprintf("pod %s is %s with address %q", pods.Items[0].Name, pods.Items[0].Status.Phase, pods.Items[0].Status.PodIP)
}

func startKubelet(t *testing.T, node string) *kubelet {
	t.Helper()
	pod, seen := kubeletPod(t.Context(), node)
	if pod == nil {
		t.Fatal(seen)
	}
	virtualNode := &offloadingv1beta1.VirtualNode{}
	fixture.Must(t, "reading the VirtualNode", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: consumerNamespace, Name: node}, virtualNode))
	api, err := url.Parse(env.Rome.Config.Host)
	fixture.Must(t, "reading the address of rome's API server", err)
	k := &kubelet{
		pki: filepath.Join(env.Dir, node, "pki"),
		env: map[string]string{"POD_IP": pod.Status.PodIP, "POD_NAME": pod.Name, "POD_NAMESPACE": pod.Namespace},
		args: []string{
			"--home-kubeconfig=" + env.AccountKubeconfig(t, env.Rome, consumerNamespace, pod.Spec.ServiceAccountName),
			"--home-cluster-id=rome", "--foreign-cluster-id=milan", "--nodename=" + node,
			"--tenant-namespace=" + consumerNamespace, "--liqo-namespace=" + fixture.Namespace,
			"--foreign-kubeconfig-secret-name=" + virtualNode.Spec.KubeconfigSecretRef.Name,
			fmt.Sprintf("--listen-port=%d", fixture.FreePort(t)), "--allow-loopback-provider",
			"--enable-apiserver-support", "--home-api-server-host=" + api.Hostname(), "--home-api-server-port=" + api.Port(),
			"--heartbeat-file=" + filepath.Join(env.Dir, node, "heartbeat"), "--vk-lease-enabled=true",
		},
	}
	k.args = append(k.args, "--certificate-dir="+k.pki)
	k.start(t, node)
	return k
}

// start runs the process (again) and returns when the Node is Ready by its word.
func (k *kubelet) start(t *testing.T, node string) {
	t.Helper()
	begin := time.Now().Add(-time.Second)
	k.Process = env.Start(t, "virtual-kubelet", "virtual-kubelet", k.env, k.args...)
	fixture.Await(t, 2*fixture.Patience, "Node "+node+" to be Ready", func(ctx context.Context) (bool, string) {
		if !k.Running() {
			t.Fatalf("the virtual kubelet ended:\n%s", k.Tail(30))
		}
		lease := &coordinationv1.Lease{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node}, lease); err != nil {
			return false, err.Error()
		}
		live := &corev1.Node{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: node}, live); err != nil {
			return false, err.Error()
		}
		renewed := lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(begin)
		return renewed && ready(live), fmt.Sprintf("lease renewed: %v, conditions: %v", renewed, live.Status.Conditions)
	})
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
