package restarts

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// handOver bounds the time in which a node has no virtual kubelet: its lease is good for 40 s.
const handOver = 25 * time.Second

// Two virtual kubelets of one node: the second one stands by, ready, and takes over when the first one is told to end. The Node is
// ready all the time and has the address of the one that works, its pods show that as their host's, none is replaced, and nothing else is written.
func TestHandOver(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	for i := range 20 {
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, fmt.Sprintf("pod-%d", i))))
	}
	before := world.AwaitPods(t, env.Rome, namespace, 20)
	second := secondKubelet(t, w)
	defer scaleKubelet(t, w, 1)
	logs := "/containerLogs/" + namespace + "/pod-0/a"
	if code, body := ask(t, second, logs); code != http.StatusBadGateway || !strings.Contains(body, "this virtual kubelet stands by for another one") {
		t.Errorf("the replica that stands by answered %d: %s", code, body)
	}
	seen := watchNode(t, w.Node)
	hand := func(from, to *fixture.Kubelet) {
		t.Helper()
		env.Settled(t)
		start, began := env.Rome.Recorder.Now(t), time.Now()
		fixture.Must(t, "stopping a virtual kubelet", from.Stop())
		fixture.Await(t, handOver, "the Node to have the address of the virtual kubelet that took over", func(ctx context.Context) (bool, string) {
			address := addressOf(t, w.Node)
			return address == to.Environment["POD_IP"], "its address is " + address
		})
		// Its pods are read, which may take a moment more, and their nodes are simulated: the provider has no logs of them.
		fixture.Await(t, handOver, "the virtual kubelet that took over to know its pods", func(context.Context) (bool, string) {
			code, body := ask(t, to, logs)
			return code == http.StatusBadGateway && strings.Contains(body, "at the provider cluster"), fmt.Sprint(code, " ", body)
		})
		t.Logf("taken over after %s", time.Since(began))
		fixture.Await(t, handOver, "all pods to show the new address as their host's", func(ctx context.Context) (bool, string) {
			pods, others := &corev1.PodList{}, 0
			err := env.Rome.Client.List(ctx, pods, client.InNamespace(namespace))
			for i := range pods.Items {
				if s := &pods.Items[i].Status; s.HostIP != to.Environment["POD_IP"] || len(s.HostIPs) != 1 || s.HostIPs[0].IP != s.HostIP {
					others++
				}
			}
			return err == nil && others == 0, fmt.Sprint(others, " of ", len(pods.Items), " do not, ", err)
		})
		env.Settled(t)
		statuses := map[string]int{}
		for _, write := range env.Rome.Recorder.Since(t, start, fixture.OfLiqo) {
			switch write.Resource {
			case "nodes/status":
			case "pods/status":
				if statuses[write.Name]++; statuses[write.Name] > 1 {
					t.Errorf("the hand-over wrote the status of pod %s %d times", write.Name, statuses[write.Name])
				}
			default:
				t.Errorf("the hand-over made a write: %+v", write)
			}
		}
	}
	hand(w.Kubelet, second)
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "late")))
	world.AwaitPods(t, env.Rome, namespace, 21)
	fixture.Must(t, "deleting a pod", env.Rome.Client.Delete(t.Context(), world.Pod(namespace, "late")))
	world.AwaitPods(t, env.Rome, namespace, 20)

	standBy(t, w.Kubelet)
	hand(second, w.Kubelet)
	if after := world.AwaitPods(t, env.Rome, namespace, 20); !maps.Equal(before, after) {
		t.Error("the hand-over replaced pods")
	}
	if bad := seen(); len(bad) > 0 {
		t.Errorf("the Node was not ready: %v", bad)
	}
}

// secondKubelet stands by for the node as a second pod of its Deployment, with some more arguments.
func secondKubelet(t *testing.T, w *world.Peering, more ...string) *fixture.Kubelet {
	t.Helper()
	scaleKubelet(t, w, 2)
	rolledOut(t, w, 2)
	first := w.Kubelet.Environment["POD_NAME"]
	var other *corev1.Pod
	fixture.Await(t, fixture.Patience, "a second pod of the virtual kubelet", func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		if err := env.Rome.Client.List(ctx, pods, client.InNamespace(fixture.ConsumerNamespace), client.MatchingLabels{offloadingv1beta1.VirtualNodeLabel: w.Node}); err != nil {
			return false, err.Error()
		}
		for i := range pods.Items {
			if pods.Items[i].Name != first && pods.Items[i].Status.PodIP != "" && pods.Items[i].DeletionTimestamp == nil {
				other = &pods.Items[i]
			}
		}
		return other != nil, fmt.Sprintf("%d pods", len(pods.Items))
	})
	folder := filepath.Join(env.Environment.Dir, other.Name)
	k := &fixture.Kubelet{Node: w.Node, PKI: filepath.Join(folder, "pki"), Environment: maps.Clone(w.Kubelet.Environment)}
	k.Environment["POD_IP"], k.Environment["POD_NAME"] = other.Status.PodIP, other.Name
	// Later ones win.
	k.Args = append(append(k.Args, w.Kubelet.Args...), fmt.Sprintf("--listen-port=%d", fixture.FreePort(t)),
		"--certificate-dir="+k.PKI, "--heartbeat-file="+filepath.Join(folder, "heartbeat"))
	k.Args = append(k.Args, more...)
	standBy(t, k)
	return k
}

// ask asks the process as the API server does for kubectl.
func ask(t *testing.T, k *fixture.Kubelet, path string) (code int, answer string) {
	t.Helper()
	var port string
	for _, arg := range k.Args {
		if number, ok := strings.CutPrefix(arg, "--listen-port="); ok {
			port = number // the last one counts
		}
	}
	config := rest.CopyConfig(env.Rome.Config)
	config.Host, config.CAData, config.CAFile, config.Insecure = "https://127.0.0.1:"+port, nil, "", true
	caller, err := rest.HTTPClientFor(config)
	fixture.Must(t, "making a client of the virtual kubelet", err)
	defer caller.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	fixture.Must(t, "making a request", err)
	response, err := caller.Do(request)
	fixture.Must(t, "asking the virtual kubelet", err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	fixture.Must(t, "reading the answer", err)
	return response.StatusCode, string(body)
}

func scaleKubelet(t *testing.T, w *world.Peering, replicas int) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = fixture.ConsumerNamespace, w.Node
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	fixture.Must(t, "scaling the virtual kubelet", env.Rome.Client.Patch(context.WithoutCancel(t.Context()), deployment, patch))
}

// rolledOut returns when the Deployment has so many pods, and none that an update of its template is about to replace: the address of a pod that
// goes is given no certificate any more.
func rolledOut(t *testing.T, w *world.Peering, pods int32) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "the pods of the virtual kubelet to be the last ones", func(ctx context.Context) (bool, string) {
		d := &appsv1.Deployment{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}, d); err != nil {
			return false, err.Error()
		}
		s := d.Status
		return s.ObservedGeneration == d.Generation && s.Replicas == pods && s.UpdatedReplicas == pods && s.AvailableReplicas == pods, fmt.Sprintf("%+v", s)
	})
}

// standBy starts the process and returns when it says that it is ready to take over.
func standBy(t *testing.T, k *fixture.Kubelet) {
	t.Helper()
	var file string
	for _, arg := range k.Args {
		if path, ok := strings.CutPrefix(arg, "--heartbeat-file="); ok {
			file = path
		}
	}
	_ = os.Remove(file) // that of an earlier run
	k.Process = env.Environment.Start(t, "virtual-kubelet", "virtual-kubelet", k.Environment, k.Args...)
	fixture.Await(t, fixture.Patience, "the virtual kubelet to be ready to take over", func(context.Context) (bool, string) {
		if !k.Running() {
			t.Fatalf("the virtual kubelet ended:\n%s", k.Tail(30))
		}
		content, err := os.ReadFile(file)
		return strings.HasPrefix(string(content), "prepared"), fmt.Sprintf("%s %v", content, err)
	})
}

func addressOf(t *testing.T, name string) string {
	node := &corev1.Node{}
	if err := env.Rome.Client.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		return err.Error()
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return "none"
}

// watchNode records each state of the Node in which it is not ready; the function it returns tells them.
func watchNode(t *testing.T, name string) (bad func() []string) {
	t.Helper()
	watcher, err := env.Rome.Client.Watch(t.Context(), &corev1.NodeList{}, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name)})
	fixture.Must(t, "watching the Node", err)
	t.Cleanup(watcher.Stop)
	var mu sync.Mutex
	var states []string
	go func() {
		for event := range watcher.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok && !fixture.NodeReady(node) {
				mu.Lock()
				states = append(states, fmt.Sprint(node.Status.Conditions))
				mu.Unlock()
			}
		}
	}()
	return func() []string { mu.Lock(); defer mu.Unlock(); return states }
}
