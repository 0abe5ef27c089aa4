package restarts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// frozen is how long a virtual kubelet may go unnoticed that stands still.
const frozen = 90 * time.Second

// shortLease is good for 30 s.
var shortLease = []string{"--vk-lease-duration=30s", "--vk-lease-renew-interval=20s", "--vk-lease-retry-period=10s"}

// B2 and B3: the virtual kubelet that works stands still for longer than its lease is good, and another one takes over. What wakes up then
// ends, and nothing was written, or run, twice.
func TestB2AVirtualKubeletThatStoodStillEnds(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	arguments := w.Kubelet.Args
	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	w.Kubelet.Args = slices.Concat(arguments, shortLease)
	w.Kubelet.Start(t)
	world.Each(t, "creating pods", 10, func(ctx context.Context, i int) error {
		return env.Rome.Client.Create(ctx, world.Pod(namespace, fmt.Sprintf("pod-%d", i)))
	})
	world.AwaitPods(t, env.Rome, namespace, 10)
	before := world.AwaitPods(t, env.Milan, namespace, 10)
	second := secondKubelet(t, w)
	defer scaleKubelet(t, w, 1)
	env.Settled(t)

	fixture.Must(t, "freezing the virtual kubelet", syscall.Kill(w.Kubelet.PID(), syscall.SIGSTOP))
	// What it is in the middle of when it wakes up.
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "meanwhile")))
	fixture.Must(t, "deleting a pod", env.Rome.Client.Delete(t.Context(), world.Pod(namespace, "pod-0")))
	fixture.Await(t, frozen, "the Node to have the address of the virtual kubelet that took over", func(context.Context) (bool, string) {
		address := addressOf(t, w.Node)
		return address == second.Environment["POD_IP"], "its address is " + address
	})
	world.AwaitPods(t, env.Rome, namespace, 10)
	world.AwaitPods(t, env.Milan, namespace, 10)
	env.AwaitNode(t, true)
	env.Settled(t)
	marks := map[*fixture.Cluster]fixture.Moment{env.Rome: env.Rome.Recorder.Now(t), env.Milan: env.Milan.Recorder.Now(t)}
	fixture.Must(t, "waking the virtual kubelet", syscall.Kill(w.Kubelet.PID(), syscall.SIGCONT))
	fixture.Await(t, fixture.Patience, "the virtual kubelet that was deposed to end", func(context.Context) (bool, string) {
		return !w.Kubelet.Running(), "it runs"
	})
	if log := w.Kubelet.Tail(20); !strings.Contains(log, "another virtual kubelet took over this node") {
		t.Errorf("it does not say why it ends:\n%s", log)
	}
	env.Settled(t)
	for c, start := range marks {
		for _, write := range c.Recorder.Since(t, start, fixture.OfLiqo) {
			t.Errorf("a write at %s after it woke up: %+v", c.ID, write)
		}
	}
	if address := addressOf(t, w.Node); address != second.Environment["POD_IP"] {
		t.Errorf("the address of the Node is %s, not that of the virtual kubelet that works", address)
	}
	after := world.AwaitPods(t, env.Milan, namespace, 10)
	delete(before, "pod-0")
	for name, uid := range before {
		if after[name] != uid {
			t.Errorf("the remote pod of %s was replaced", name)
		}
	}
	env.OnePodEach(t, namespace)

	w.Kubelet.Args = arguments
	standBy(t, w.Kubelet)
	fixture.Must(t, "stopping the second virtual kubelet", second.Stop())
	fixture.Await(t, handOver, "the Node to have the address of the first virtual kubelet", func(context.Context) (bool, string) {
		address := addressOf(t, w.Node)
		return address == w.Kubelet.Environment["POD_IP"], "its address is " + address
	})
}
