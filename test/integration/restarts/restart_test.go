package restarts

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

const (
	// podCount is how many pods are in place while everything restarts.
	podCount = 200
	// quiet is how long nothing may be written after all components are ready again: several resyncs of what polls.
	quiet = 45 * time.Second
)

// Acceptance 6: with 200 offloaded pods in place, a restart of both controller managers and the virtual kubelet writes nothing
// at either API server, and no pod is replaced.
func TestRestartWritesNothing(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string]string{"a": "b"}}))
	fixture.Must(t, "creating a Secret", env.Rome.Client.Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "password"}, Data: map[string][]byte{"a": []byte("b")}}))
	for i := range podCount {
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, fmt.Sprintf("pod-%d", i))))
	}
	world.AwaitPods(t, env.Milan, namespace, podCount)
	before := world.AwaitPods(t, env.Rome, namespace, podCount)
	env.Settled(t)

	// A virtual kubelet that is away for longer than the grace period of nodes has something to write when it is back: it stops last and
	// starts first.
	for _, p := range []*fixture.Process{w.Rome.Process, w.Milan.Process, w.Kubelet.Process} {
		fixture.Must(t, "stopping a component", p.Stop())
	}
	clusters := map[*fixture.Cluster]fixture.Moment{env.Rome: env.Rome.Recorder.Now(t), env.Milan: env.Milan.Recorder.Now(t)}
	w.Kubelet.Start(t)
	w.Milan.Start(t)
	w.Rome.Start(t)
	end := time.Now().Add(quiet)
	fixture.Await(t, 2*quiet, "the quiet time to pass", func(context.Context) (bool, string) { return time.Now().After(end), "it passes" })

	for c, start := range clusters {
		if writes := c.Recorder.Since(t, start, fixture.OfLiqo); len(writes) > 0 {
			t.Errorf("the restart made %d writes at %s:\n%s", len(writes), c.ID, world.Summary(writes))
		}
	}
	after := world.AwaitPods(t, env.Rome, namespace, podCount)
	if !maps.Equal(before, after) {
		t.Error("the restart replaced pods")
	}
}
