package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// calm is how long is listened for writes after a restart.
const calm = 12 * time.Second

// Restart is what a killed virtual kubelet costs, in one round.
type Restart struct {
	Pods int `json:"pods"`
	// Writes of Liqo in both clusters while nothing differed.
	Writes int       `json:"writes"`
	Rows   []Request `json:"requests"`
	// NewPod is from the start of the process until a pod created at that moment is ready; StatusHome until a change of a
	// remote pod's status, made half a second after the start, is shown at home. Seconds.
	NewPod     float64 `json:"newPodReadySeconds"`
	StatusHome float64 `json:"statusHomeSeconds"`
	// Idle, Loaded and Fresh are the virtual kubelet's memory without pods, with them, and with them after a restart; MB.
	Idle   float64 `json:"idleMB"`
	Loaded float64 `json:"loadedMB"`
	Fresh  float64 `json:"freshMB"`
	// IdleOwn and LoadedOwn leave out the pages of the program file, which all virtual kubelets of a machine share.
	IdleOwn   float64 `json:"idleOwnMB"`
	LoadedOwn float64 `json:"loadedOwnMB"`
	// RestIdleOwn and RestLoadedOwn are the same after some minutes of rest, when Go has given back what a burst took; 0 where that
	// was not awaited.
	RestIdleOwn   float64 `json:"restIdleOwnMB,omitempty"`
	RestLoadedOwn float64 `json:"restLoadedOwnMB,omitempty"`
}

// restarts kills the virtual kubelet with many pods in place.
func (b *bench) restarts(n int) {
	s := b.systems[2]
	k := b.kubelets[mainNode]
	for turn := range b.options.rounds {
		result := Restart{Pods: n}
		b.renew(k)
		b.settle(15)
		result.Idle, result.IdleOwn = b.held(k)
		if turn == 0 {
			b.w.pause(b.options.rest)
			_, result.RestIdleOwn = b.held(k)
		}
		t := b.watchPods(s)
		remove := b.bring(s, t, n, false, &Burst{System: liqo})
		b.settle(15)
		result.Loaded, result.LoadedOwn = b.held(k)
		if turn == 0 {
			b.w.pause(b.options.rest)
			_, result.RestLoadedOwn = b.held(k)
		}
		b.profile("loaded", "heap?gc=1")

		from := b.mark()
		b.renew(k)
		b.w.pause(calm)
		requests := b.since(from)
		ours := func(k kind) bool { return k.ofLiqo() && k.write() }
		result.Writes, result.Rows = requests.sum(ours), requests.rows(1, kind.ofLiqo)
		result.Fresh, _ = b.held(k)

		start := time.Now()
		b.renew(k)
		fixture.Must(b.w, "creating a pod", s.home.Client.Create(b.w.ctx, barePod(s, "fresh")))
		result.StatusHome = b.changeStatus(s)
		b.await(t, ready, n+1, "ready", burstTimeout)
		result.NewPod = round(t.last(ready).Sub(start).Seconds())
		b.w.Logf("restart with %d pods: %d writes; a new pod is ready after %.1f s, a status is home after %.1f s; %.0f → %.0f MB",
			n, result.Writes, result.NewPod, result.StatusHome, result.Idle, result.Loaded)
		b.report.Restarts = append(b.report.Restarts, result)
		b.save()

		remove()
		fixture.Must(b.w, "deleting a pod", s.home.Client.Delete(b.w.ctx, barePod(s, "fresh")))
		b.await(t, gone, n+1, "gone", burstTimeout)
		b.await(t, awayGone, n+1, "gone from the provider", burstTimeout)
		t.close()
		b.settle(10)
	}
}

// held is a virtual kubelet's memory in MB, and what of it is its own and not the program file's.
func (b *bench) held(k *kubelet) (all, own float64) {
	pid := b.own[k.process()].PID()
	return memory(pid, "VmRSS"), memory(pid, "RssAnon")
}

// renew kills a virtual kubelet and starts it again.
func (b *bench) renew(k *kubelet) {
	b.gauge()
	fixture.Must(b.w, "killing the virtual kubelet", b.own[k.process()].Kill())
	b.launch(k)
}

// changeStatus changes a remote pod's status half a second after it is called, and says how long after the call the local pod shows it.
func (b *bench) changeStatus(s *system) float64 {
	start := time.Now()
	b.w.pause(half)
	pods := &corev1.PodList{}
	fixture.Must(b.w, "listing pods", s.away.Client.List(b.w.ctx, pods, client.InNamespace(s.namespace), client.Limit(1)))
	if len(pods.Items) == 0 {
		b.w.Fatalf("there is no pod at the provider")
	}
	pod := &pods.Items[0]
	message := fixture.Unique("changed")
	patch := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","message":%q}]}}`, message))
	fixture.Must(b.w, "changing a pod's status", s.away.Client.Status().Patch(b.w.ctx, pod, patch))
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		local := &corev1.Pod{}
		fixture.Must(b.w, "reading a pod", s.home.Client.Get(b.w.ctx, types.NamespacedName{Namespace: s.namespace, Name: pod.Name}, local))
		for i := range local.Status.Conditions {
			if local.Status.Conditions[i].Message == message {
				return round(time.Since(start).Seconds())
			}
		}
		b.w.pause(20 * time.Millisecond)
	}
	b.w.Fatalf("waited a minute for the status of pod %s to come home", pod.Name)
	return 0
}

// Idle is what Liqo does while nothing happens.
type Idle struct {
	Seconds float64 `json:"seconds"`
	// PerMinute are Liqo's requests.
	PerMinute []Request          `json:"perMinute"`
	CPU       map[string]float64 `json:"cpuSeconds"`
	// Memory of each process, and what of it is not the program file's.
	Memory map[string]float64 `json:"memoryMB"`
	Own    map[string]float64 `json:"ownMemoryMB"`
}

// idle listens for a while.
func (b *bench) idle(d time.Duration) {
	from, cpu := b.mark(), b.cpuSeconds()
	b.w.pause(d)
	b.profile("idle", "heap?gc=1")
	b.w.pause(2 * half) // the end of the log
	rows := b.since(from).rows(1, kind.ofLiqo)
	for i := range rows {
		rows[i].Count = round(rows[i].Count * 60 / d.Seconds())
	}
	b.report.Idle = &Idle{Seconds: d.Seconds(), PerMinute: rows, CPU: difference(cpu, b.cpuSeconds()), Memory: b.resident("VmRSS"), Own: b.resident("RssAnon")}
	for _, r := range rows {
		b.w.Logf("idle, per minute: %.0f × %s %s by %s at %s", r.Count, r.Verb, r.Resource, r.Agent, r.Cluster)
	}
}
