package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// program is one of ours, running in a container.
type program struct{ cluster, name string }

// killed are the programs of acceptance point 3.
var killed = []program{{consumer, "virtual-kubelet"}, {consumer, "liqo-controller-manager"}, {provider, "liqo-controller-manager"}}

// TestRestarts is acceptance point 3: whatever of ours is killed during a rolling update, every pod runs once (B1).
func TestRestarts(t *testing.T) {
	the.alone(t)
	the.settled(t)
	t.Run("once", func(t *testing.T) { killedDuringUpdate(t, "rolling", 6, 1) })
	t.Run("again and again", func(t *testing.T) { killedDuringUpdate(t, "rolling-on", 20, 2) })
}

// killedDuringUpdate updates a number of pods, and kills each of our programs meanwhile, a number of times.
func killedDuringUpdate(t *testing.T, namespace string, replicas int32, rounds int) {
	twin := the.offloaded(t, namespace)
	object := deployment(namespace, "app", replicas, script(forever))
	few := intstr.FromInt32(4)
	object.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &few, MaxUnavailable: &few}
	watched := watchRuns(t, twin)
	the.rome.creates(t, object)
	old := pairs(t, remoteOf(t, twin, the.rome.ready(t, namespace, "app", int(replicas))))

	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed of the moments of the kills is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	the.rome.changes(t, object, func() {
		object.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "GENERATION", Value: "2"}}
	})
	for round := range rounds {
		for _, i := range random.Perm(len(killed)) {
			far := progressed(t, object)
			waitProgress(t, object, min(far+int32(random.IntN(3)), replicas))
			the.kill(t, killed[i])
			t.Logf("round %d: killed %s of %s when %d of %d pods were new", round, killed[i].name, killed[i].cluster, progressed(t, object), replicas)
		}
	}

	// Five waves of pods, and what is killed again and again is started again later and later.
	eventually(t, 10*time.Minute, "the rolling update to complete", func(ctx context.Context) (bool, string) {
		if err := the.rome.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		s := object.Status
		return s.ObservedGeneration == object.Generation && s.UpdatedReplicas == replicas && s.ReadyReplicas == replicas && s.Replicas == replicas,
			fmt.Sprintf("%d replicas, %d updated, %d ready", s.Replicas, s.UpdatedReplicas, s.ReadyReplicas)
	})
	local := the.rome.ready(t, namespace, "app", int(replicas))
	var remote []corev1.Pod
	eventually(t, forPods(int(replicas)), "exactly the new pods at the provider", func(ctx context.Context) (bool, string) {
		list := &corev1.PodList{}
		if err := the.milan.List(ctx, list, client.InNamespace(twin)); err != nil {
			return false, err.Error()
		}
		remote = list.Items
		return len(remote) == int(replicas), describe(remote)
	})
	now := pairs(t, remote)
	for i := range local {
		if now[string(local[i].UID)] == "" {
			t.Errorf("pod %s (%s) runs nowhere", local[i].Name, local[i].UID)
		}
		if old[string(local[i].UID)] != "" {
			t.Errorf("pod %s is of the old generation", local[i].Name)
		}
		if restarts := local[i].Status.ContainerStatuses[0].RestartCount; restarts != 0 {
			t.Errorf("pod %s was restarted %d times", local[i].Name, restarts)
		}
	}
	for uid, runs := range watched.all() {
		if len(runs) != 1 {
			t.Errorf("the pod with UID %s ran %d times: %v", uid, len(runs), runs)
		}
	}
	the.everyProgramRuns(t)
}

// remoteOf waits until the provider has the pods, and returns them.
func remoteOf(t *testing.T, twin string, local []corev1.Pod) []corev1.Pod {
	t.Helper()
	return the.milan.ready(t, twin, local[0].Labels[appLabel], len(local))
}

// progressed is how many pods of a Deployment are of its last generation.
func progressed(t *testing.T, object *appsv1.Deployment) int32 {
	t.Helper()
	now := &appsv1.Deployment{ObjectMeta: named(object.Namespace, object.Name)}
	the.rome.reads(t, now)
	return updated(now)
}

func updated(object *appsv1.Deployment) int32 {
	// Kubernetes has not counted yet: what it says is about the generation before.
	if object.Status.ObservedGeneration < object.Generation {
		return 0
	}
	return object.Status.UpdatedReplicas
}

// waitProgress waits until the update went on, but not when what was killed keeps it from doing so: that is a moment as well.
func waitProgress(t *testing.T, object *appsv1.Deployment, wanted int32) {
	t.Helper()
	poll(t.Context(), 15*time.Second, func(ctx context.Context) (bool, string) {
		now := &appsv1.Deployment{}
		if err := the.rome.Get(ctx, client.ObjectKeyFromObject(object), now); err != nil {
			return false, err.Error()
		}
		return updated(now) >= wanted, ""
	})
}

// runs records every pod of the provider that was there at any time, by the pod that it stands for.
type runs struct {
	mu   sync.Mutex
	seen map[string]map[string]bool
}

func (r *runs) add(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[origin(pod)] == nil {
		r.seen[origin(pod)] = map[string]bool{}
	}
	r.seen[origin(pod)][string(pod.UID)] = true
}

func (r *runs) all() map[string]map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// watchRuns records the pods of a namespace of the provider until the test ends. It starts before there are any.
func watchRuns(t *testing.T, twin string) *runs {
	t.Helper()
	r := &runs{seen: map[string]map[string]bool{}}
	watcher, err := the.milan.Watch(t.Context(), &corev1.PodList{}, client.InNamespace(twin))
	if err != nil {
		t.Fatalf("watching the pods of %s: %v", twin, err)
	}
	t.Cleanup(watcher.Stop)
	go func() {
		for event := range watcher.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				r.add(pod)
			}
		}
	}()
	return r
}

// kill ends a program as kill -9 does; its kubelet starts it again.
func (s *suite) kill(t *testing.T, p program) {
	t.Helper()
	s.solitary(t, "killing "+p.name)
	var pids []int
	eventually(t, patience, fmt.Sprintf("%s of %s to run", p.name, p.cluster), func(context.Context) (bool, string) {
		var err error
		if pids, err = s.processes(p); err != nil {
			return false, err.Error()
		}
		return len(pids) > 0, "no such process"
	})
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("killing %s (process %d): %v", p.name, pid, err)
		}
	}
}

// others are what the controller manager's program does besides: probes, which end by themselves, and certificates, whose process is another one.
var others = []string{"check", "certificates"}

// processes finds a program's processes in the containers of a cluster of this lab, without others.
func (s *suite) processes(p program) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	group := "/" + s.lab.Spec().Name + "/" + p.cluster + "/"
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Processes end while they are looked at: what cannot be read is none of ours.
		program, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if err != nil || filepath.Base(program) != p.name {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if args := strings.Split(string(line), "\x00"); err != nil || len(args) < 2 || slices.Contains(others, args[1]) {
			continue
		}
		groups, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		if err == nil && strings.Contains(string(groups), group) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// everyProgramRuns waits until what was killed is ready again, so that the next test starts from a sound pair.
func (s *suite) everyProgramRuns(t *testing.T) {
	t.Helper()
	for _, c := range []struct {
		side     *side
		selector client.ListOption
	}{
		{s.rome, client.InNamespace("liqo")},
		{s.milan, client.InNamespace("liqo")},
		{s.rome, client.MatchingLabels{offloadingv1beta1.ComponentLabel: offloadingv1beta1.VirtualKubeletComponent}},
	} {
		eventually(t, 3*time.Minute, "Liqo's pods at "+c.side.name+" to be ready", c.side.allReady(c.selector))
	}
}

// allReady checks that there are some pods, all of them ready.
func (c *side) allReady(selector client.ListOption) check {
	return func(ctx context.Context) (bool, string) {
		list := &corev1.PodList{}
		if err := c.List(ctx, list, selector); err != nil {
			return false, err.Error()
		}
		notReady := func(pod corev1.Pod) bool { return !isReady(&pod) }
		return len(list.Items) > 0 && !slices.ContainsFunc(list.Items, notReady), describe(list.Items)
	}
}

// recovers waits until a cluster whose API server was away is sound again: its nodes have said since then that they live and are not
// taken for lost, and Liqo's pods, which answer the API server, are ready. Kubernetes may think otherwise at first, so it has to last.
func (c *side) recovers(t *testing.T, since time.Time) {
	t.Helper()
	const rest = 10
	looks := 0
	sound := c.allReady(client.InNamespace("liqo"))
	eventually(t, 3*time.Minute, c.name+" to be sound again", func(ctx context.Context) (bool, string) {
		ok, seen := c.nodesLive(ctx, since)
		if ok {
			ok, seen = sound(ctx)
		}
		if looks++; !ok {
			looks = 0
		}
		return looks >= rest, seen
	})
}

// nodesLive checks that the cluster's own nodes are ready and have renewed their leases since a time.
func (c *side) nodesLive(ctx context.Context, since time.Time) (bool, string) {
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes); err != nil {
		return false, err.Error()
	}
	for i := range nodes.Items {
		node, lease := &nodes.Items[i], &coordinationv1.Lease{}
		if node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType {
			continue
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node.Name}, lease); err != nil {
			return false, err.Error()
		}
		if _, seen := readyCondition(node); !takesPods(node) || lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(since) {
			return false, fmt.Sprintf("%s, lease renewed at %v", seen, lease.Spec.RenewTime)
		}
	}
	return true, "its nodes live"
}
