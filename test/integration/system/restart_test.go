package system

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/test/integration/fixture"
)

const (
	// podCount is how many pods are in place while everything restarts.
	podCount = 200
	// quiet is how long nothing may be written after all components are ready again: several resyncs of what polls.
	quiet = 45 * time.Second
)

// offloaded makes a namespace and offloads it; the twin has the same name.
func offloaded(t *testing.T) string {
	t.Helper()
	return offloadedTo(t, corev1.NodeSelector{})
}

// offloadedTo offloads it to the virtual nodes that are selected.
func offloadedTo(t *testing.T, selector corev1.NodeSelector) string {
	t.Helper()
	return offloadedWith(t, offloadingv1beta1.RemotePodOffloadingStrategyType, selector)
}

// offloadedWith offloads it with a pod offloading strategy.
func offloadedWith(t *testing.T, strategy offloadingv1beta1.PodOffloadingStrategyType, selector corev1.NodeSelector) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("shop")}}
	fixture.Must(t, "creating a namespace", env.Rome.Client.Create(t.Context(), namespace))
	rome, err := target.FromKubeconfig(env.Rome.Kubeconfig, "")
	fixture.Must(t, "opening the kubeconfig of rome", err)
	_, err = offload.Namespace(t.Context(), offload.Options{Cluster: rome, Namespaces: []string{namespace.Name}, Timeout: fixture.Patience,
		Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: offloadingv1beta1.EnforceSameNameMappingStrategyType,
			PodOffloadingStrategy:    strategy,
			ClusterSelector:          selector,
		}})
	fixture.Must(t, "offloading namespace "+namespace.Name, err)
	env.Rome.AwaitServiceAccount(t, namespace.Name)
	return namespace.Name
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
}

// awaitPods waits until all pods of a namespace run and are ready, and returns their UIDs by name.
func awaitPods(t *testing.T, c *fixture.Cluster, namespace string, count int) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	fixture.Await(t, 5*time.Minute, fmt.Sprintf("%d pods to run in namespace %s of %s", count, namespace, c.ID), func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		if err := c.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		clear(uids)
		var other *corev1.Pod
		for i, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				uids[p.Name] = p.UID
			} else {
				other = &pods.Items[i]
			}
		}
		seen := fmt.Sprintf("%d of %d run", len(uids), len(pods.Items))
		if other != nil {
			seen += fmt.Sprintf("; %s is %s on node %q: %s %s %v", other.Name, other.Status.Phase, other.Spec.NodeName, other.Status.Reason, other.Status.Message, other.Status.Conditions)
		}
		return len(uids) == count && len(pods.Items) == count, seen
	})
	return uids
}

// Acceptance 6: with 200 offloaded pods in place, a restart of both controller managers and the virtual kubelet writes nothing
// at either API server, and no pod is replaced.
func TestRestartWritesNothing(t *testing.T) {
	w := peered(t)
	namespace := offloaded(t)
	fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string]string{"a": "b"}}))
	fixture.Must(t, "creating a Secret", env.Rome.Client.Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "password"}, Data: map[string][]byte{"a": []byte("b")}}))
	for i := range podCount {
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod(namespace, fmt.Sprintf("pod-%d", i))))
	}
	awaitPods(t, env.Milan, namespace, podCount)
	before := awaitPods(t, env.Rome, namespace, podCount)
	settled(t)

	// A virtual kubelet that is away for longer than the grace period of nodes has something to write when it is back: it stops last and
	// starts first.
	for _, p := range []*fixture.Process{w.rome.Process, w.milan.Process, w.kubelet.Process} {
		fixture.Must(t, "stopping a component", p.Stop())
	}
	clusters := map[*fixture.Cluster]fixture.Moment{env.Rome: env.Rome.Recorder.Now(t), env.Milan: env.Milan.Recorder.Now(t)}
	w.kubelet.Start(t)
	w.milan.Start(t)
	w.rome.Start(t)
	end := time.Now().Add(quiet)
	fixture.Await(t, 2*quiet, "the quiet time to pass", func(context.Context) (bool, string) { return time.Now().After(end), "it passes" })

	for c, start := range clusters {
		if writes := c.Recorder.Since(t, start, fixture.OfLiqo); len(writes) > 0 {
			t.Errorf("the restart made %d writes at %s:\n%s", len(writes), c.ID, summary(writes))
		}
	}
	after := awaitPods(t, env.Rome, namespace, podCount)
	if !maps.Equal(before, after) {
		t.Error("the restart replaced pods")
	}
}

// settled waits until nothing of ours was written for ten seconds: what was under way is done.
func settled(t *testing.T) {
	t.Helper()
	const stillness = 12 * time.Second
	last, since := map[*fixture.Cluster]fixture.Moment{env.Rome: {}, env.Milan: {}}, time.Now()
	for c := range last {
		last[c] = c.Recorder.Now(t)
	}
	fixture.Await(t, 3*time.Minute, "our components to come to rest", func(context.Context) (bool, string) {
		seen := "nothing"
		for c, start := range last {
			if writes := c.Recorder.Since(t, start, fixture.OfLiqo); len(writes) > 0 {
				seen = fmt.Sprintf("at %s: %s", c.ID, summary(writes))
				last[c], since = c.Recorder.Now(t), time.Now()
			}
		}
		return time.Since(since) > stillness, seen
	})
}

// maxExamples is how many writes of one kind a summary shows.
const maxExamples = 3

// summary counts equal writes whatever their names.
func summary(writes []fixture.Write) string {
	counts := map[string]int{}
	example := map[string]string{}
	for _, w := range writes {
		kind := fmt.Sprintf("%s %s by %s", w.Verb, w.Resource, w.User)
		counts[kind]++
		if counts[kind] <= maxExamples {
			example[kind] += "\n       " + w.Namespace + "/" + w.Name + ": " + w.Body
		}
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%4d × %s, such as%s", counts[kind], kind, example[kind]))
	}
	return strings.Join(lines, "\n")
}
