package greed

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// flips has the provider say of a pod, as fast as it can and until the context ends, that it is ready and that it is not. It returns how often it did.
func flips(ctx context.Context, namespace, name string) int {
	said := 0
	for ; ctx.Err() == nil; said++ {
		status := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"N%d"}]}}`, []string{"True", "False"}[said%2], said)
		if err := env.Milan.Client.Status().Patch(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
			client.RawPatch(types.StrategicMergePatchType, []byte(status))); err != nil {
			break
		}
	}
	return said
}

// What a provider says of a pod that runs is written at home as often as it may be of use to somebody, not as often as the provider says it. A virtual
// kubelet writes as a node, in the priority level of all nodes.
func TestAProviderThatKeepsChangingItsMindDoesNotMakeHomeWrite(t *testing.T) {
	env.Peered(t)
	namespace := env.Offloaded(t)
	const pods, lasts = 5, 10 * time.Second
	for i := range pods {
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, fmt.Sprintf("web-%d", i))))
	}
	world.AwaitPods(t, env.Rome, namespace, pods)
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	changes, err := env.Rome.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	fixture.Must(t, "watching the pods at home", err)
	written := make(chan int)
	go func() {
		n := 0
		for event := range changes.ResultChan() {
			if event.Type == watch.Modified {
				n++
			}
		}
		written <- n
	}()
	var all sync.WaitGroup
	said := make([]int, pods)
	for i := range pods {
		all.Go(func() { said[i] = flips(ctx, namespace, fmt.Sprintf("web-%d", i)) })
	}
	all.Wait()
	n := <-written
	t.Logf("in %s the provider said of %d pods so much: %v, and home wrote %d times", lasts, pods, said, n)
	if most := pods * int(lasts/time.Second); n > most {
		t.Errorf("home wrote %d times in %s what a provider says of %d pods that run, more than once a second for each (%d)", n, lasts, pods, most)
	}
	// What was said last arrives.
	fixture.Await(t, fixture.Patience, "what the provider says to be shown at home", func(ctx context.Context) (bool, string) {
		for i := range pods {
			key := client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("web-%d", i)}
			here, there := &corev1.Pod{}, &corev1.Pod{}
			if err := env.Rome.Client.Get(ctx, key, here); err != nil {
				return false, err.Error()
			}
			if err := env.Milan.Client.Get(ctx, key, there); err != nil {
				return false, err.Error()
			}
			if is, said := reasonOf(here), reasonOf(there); is != said {
				return false, fmt.Sprintf("pod %s shows %q, the provider says %q", key.Name, is, said)
			}
		}
		return true, ""
	})
}

// reasonOf is why a pod is ready, or not.
func reasonOf(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return pod.Status.Conditions[i].Reason
		}
	}
	return ""
}
