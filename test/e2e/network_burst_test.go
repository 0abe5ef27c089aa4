package e2e

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// burstPods says how many pods start at once; without it there are some.
const burstPods = "LIQO_E2E_BURST"

// TestNetworkBurst shows that a pod at a provider is reached as soon as it is shown as ready at home, however many start at once: nothing is put in
// place for a single pod. That a packet had to be sent again is told: a busy machine may lose one.
func TestNetworkBurst(t *testing.T) {
	the.alone(t)
	const namespace = "burst"
	count, err := strconv.Atoi(cmp.Or(os.Getenv(burstPods), "30"))
	if err != nil {
		t.Fatalf("reading %s: %v", burstPods, err)
	}
	the.offloaded(t, namespace)
	client, server := probing(), probing()
	client.NodeName = the.rome.ownNodes()[0]
	server.NodeSelector = remotely
	the.rome.creates(t, podOf(namespace, "client", client))
	the.rome.ready(t, namespace, "client", 1)
	door := knockAt(t, the.rome, namespace, "client")
	the.rome.creates(t, deployment(namespace, "servers", int32(count), server))
	the.rome.whenReady(t, namespace, "servers", count, func(pod *corev1.Pod) { door.knock(t, addressOf(pod.Status.PodIP)) })
	late := 0
	for _, answer := range door.answers(t, count) {
		if !strings.Contains(answer, " there ") {
			t.Errorf("a pod was shown as ready and was not reached: %s", answer)
		} else if !strings.HasSuffix(answer, " 0") {
			late++
		}
	}
	t.Logf("%d of %d pods were reached by another packet than the first", late, count)
}

// whenReady calls a function once for each pod of an app, as soon as it is shown as ready, until there were a number of them.
func (c *side) whenReady(t *testing.T, namespace, app string, count int, do func(*corev1.Pod)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), forPods(count))
	defer cancel()
	events, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), client.MatchingLabels{appLabel: app})
	if err != nil {
		t.Fatalf("watching the pods of %s/%s at %s: %v", namespace, app, c.name, err)
	}
	defer events.Stop()
	seen := map[string]bool{}
	for len(seen) < count {
		event, ok := <-events.ResultChan()
		if !ok || event.Type == watch.Error {
			t.Fatalf("waited for %d ready pods of %s/%s at %s, saw %d: %v", count, namespace, app, c.name, len(seen), event.Object)
		}
		pod, ok := event.Object.(*corev1.Pod)
		if ok && isReady(pod) && !seen[pod.Name] {
			seen[pod.Name] = true
			do(pod)
		}
	}
}

// door is a prober in a pod that opens connections to the addresses that it is told.
type door struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

func knockAt(t *testing.T, c *side, namespace, pod string) *door {
	t.Helper()
	command := the.kubectlCommand(c, "exec", "-i", "-n", namespace, pod, "--", "/"+proberName, "knock")
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("starting a prober in %s/%s of %s: %v", namespace, pod, c.name, err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return &door{in, bufio.NewScanner(out)}
}

func (d *door) knock(t *testing.T, address string) {
	t.Helper()
	if _, err := fmt.Fprintln(d.in, address); err != nil {
		t.Fatalf("telling the prober of %s: %v", address, err)
	}
}

// answers are what became of all addresses, each of which takes seconds at most.
func (d *door) answers(t *testing.T, count int) (lines []string) {
	t.Helper()
	for len(lines) < count && d.out.Scan() {
		lines = append(lines, d.out.Text())
	}
	if len(lines) < count {
		t.Fatalf("the prober told of %d addresses, want %d: %v", len(lines), count, d.out.Err())
	}
	return lines
}
