package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/bench/floor"
	"liqo.io/liqo/test/integration/fixture"
)

const (
	burstTimeout = 5 * time.Minute
	writers      = 8
)

// Burst is what many pods at once took, in one round.
type Burst struct {
	System  string `json:"system"`
	Pods    int    `json:"pods"`
	Bare    bool   `json:"bare,omitempty"`
	Limited bool   `json:"limited,omitempty"`
	// Ready is from the request to the last pod ready, Gone from the request for deletion to the last pod gone everywhere; seconds.
	// What was not measured, because the round was not finished, is below 0: Gone and DeleteWrites.
	Ready float64 `json:"readySeconds"`
	Gone  float64 `json:"goneSeconds"`
	// Stages of a pod's way, in milliseconds.
	Stages map[string]Quantiles `json:"stages"`
	// Writes per pod, for creation and for deletion; Conflicts per 100 pods, OwnConflicts those of Liqo's writes.
	CreateWrites float64   `json:"createWrites"`
	DeleteWrites float64   `json:"deleteWrites"`
	Conflicts    float64   `json:"conflictsPer100"`
	OwnConflicts float64   `json:"ownConflictsPer100"`
	Events       float64   `json:"eventsAtHome"`
	CreateRows   []Request `json:"createRequests"`
	DeleteRows   []Request `json:"deleteRequests"`
	// CPU seconds of each process, from the request until all was quiet again.
	CreateCPU map[string]float64 `json:"createCPU"`
	DeleteCPU map[string]float64 `json:"deleteCPU"`
	// CPUPerPod is all of CreateCPU in milliseconds per pod.
	CPUPerPod float64 `json:"createCPUMillisecondsPerPod"`
	// Peak memory of our processes in MB.
	Peak map[string]float64 `json:"peakMB"`
	Load Load               `json:"load"`
}

func podSpec(s *system) corev1.PodSpec {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1m")}}}}}
	if s.node != "" {
		spec.NodeSelector = map[string]string{floor.Label: "true"}
		spec.Tolerations = []corev1.Toleration{{Key: floor.Label, Operator: corev1.TolerationOpExists}}
	}
	return spec
}

func (b *bench) deployment(s *system, n int) *appsv1.Deployment {
	replicas, labels := int32(n), map[string]string{"app": fixture.Unique("burst")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: labels["app"]},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(s)}},
	}
}

func barePod(s *system, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{"app": "bare"}}, Spec: podSpec(s)}
}

// round has n pods come and go again.
func (b *bench) round(s *system, n int, bare bool) Burst {
	result := Burst{System: s.name, Pods: n, Bare: bare, Limited: !b.lifted, Gone: -1, DeleteWrites: -1}
	t := b.watchPods(s)
	defer t.close()
	b.gauge()
	b.resetPeaks()
	before, from, cpu := b.readLoad(), b.mark(), b.cpuSeconds()
	if s.name == liqo {
		b.profile(fmt.Sprintf("burst-%d", n), "profile?seconds=8")
	}
	remove := b.bring(s, t, n, bare, &result)
	b.settle(15)
	requests, used := b.since(from), b.cpuSeconds()
	result.CreateCPU, result.Peak = difference(cpu, used), b.resident("VmHWM")
	result.CPUPerPod = round(1000 * total(result.CreateCPU) / float64(n))
	result.count(requests, n)
	defer func() {
		if result.Gone < 0 || result.DeleteWrites < 0 {
			b.report.Bursts = append(b.report.Bursts, result) // the scenario ends here, but the creation was measured
		}
	}()

	from, cpu = b.mark(), b.cpuSeconds()
	start := time.Now()
	remove()
	b.await(t, gone, n, "gone", burstTimeout)
	if s.away != nil {
		b.await(t, awayGone, n, "gone from the provider", burstTimeout)
	}
	result.Gone = round(max(t.last(gone).Sub(start), t.last(awayGone).Sub(start)).Seconds())
	b.settle(15)
	requests = b.since(from)
	result.DeleteCPU = difference(cpu, b.cpuSeconds())
	result.DeleteWrites, result.DeleteRows = round(float64(requests.sum(kind.write))/float64(n)), requests.rows(n, counts)
	result.Load = b.readLoad().since(before)
	return result
}

// bring creates the pods and waits until they are ready; the function that it returns removes them.
func (b *bench) bring(s *system, t *timeline, n int, bare bool, result *Burst) (remove func()) {
	start := time.Now()
	if bare {
		b.parallel(n, func(i int) {
			name := fmt.Sprintf("bare-%d", i)
			t.begin(name)
			fixture.Must(b.w, "creating a pod", s.home.Client.Create(b.w.ctx, barePod(s, name)))
		})
		remove = func() {
			fixture.Must(b.w, "deleting the pods", s.home.Client.DeleteAllOf(b.w.ctx, &corev1.Pod{}, client.InNamespace(s.namespace), client.MatchingLabels{"app": "bare"}))
		}
	} else {
		deployment := b.deployment(s, n)
		fixture.Must(b.w, "creating a Deployment", s.home.Client.Create(b.w.ctx, deployment))
		remove = func() {
			fixture.Must(b.w, "deleting a Deployment", s.home.Client.Delete(b.w.ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		}
	}
	b.await(t, ready, n, "ready", burstTimeout)
	result.Ready = round(t.last(ready).Sub(start).Seconds())
	result.Stages = stages(s, t)
	return remove
}

// stages are the steps of a pod's way in the system.
func stages(s *system, t *timeline) map[string]Quantiles {
	out := map[string]Quantiles{}
	steps := []struct {
		name     string
		from, to moment
	}{{"created → ready", created, ready}, {"created → bound", created, bound}, {"bound → ready", bound, ready}}
	if s.away != nil {
		steps = append(steps, []struct {
			name     string
			from, to moment
		}{{"bound → remote pod", bound, awayCreated}, {"remote pod → remote ready", awayCreated, awayReady}, {"remote ready → local ready", awayReady, ready}}...)
	}
	if s.shadows {
		steps = append(steps, []struct {
			name     string
			from, to moment
		}{{"bound → ShadowPod", bound, shadowed}, {"ShadowPod → remote pod", shadowed, awayCreated}}...)
	}
	for _, step := range steps {
		out[step.name] = quantiles(t.between(step.from, step.to))
	}
	return out
}

// counts tells which requests are listed: writes of everybody, and all requests of Liqo.
func counts(k kind) bool { return k.write() || k.ofLiqo() }

func (r *Burst) count(requests tally, n int) {
	r.CreateWrites, r.CreateRows = round(float64(requests.sum(kind.write))/float64(n)), requests.rows(n, counts)
	r.Conflicts = round(100 * float64(requests.sum(func(k kind) bool { return k.Conflict })) / float64(n))
	r.OwnConflicts = round(100 * float64(requests.sum(func(k kind) bool { return k.Conflict && k.ofLiqo() })) / float64(n))
	home := "rome"
	if r.System == vanilla {
		home = "milan"
	}
	r.Events = round(float64(requests.sum(func(k kind) bool {
		return k.Cluster == home && k.Resource == "events" && slices.Contains([]string{"create", "patch", "update"}, k.Verb)
	})) / float64(n))
}

// parallel calls f for 0 to n-1 from several writers.
func (b *bench) parallel(n int, f func(i int)) {
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			defer b.w.survive()
			for i := writer; i < n; i += writers {
				f(i)
			}
		})
	}
	group.Wait()
	if b.w.Failed() {
		b.w.Fatalf("%s", b.w.reason())
	}
}

// bursts runs all systems in turn, forwards and backwards, so that none always comes after the same other.
func (b *bench) bursts(systems []*system, n int, bare bool) {
	for r := range b.options.turns(n, !b.lifted) {
		order := slices.Clone(systems)
		if r%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			result := b.round(s, n, bare)
			b.w.Logf("%s: %d pods ready in %.1f s, gone in %.1f s; %.1f + %.1f writes and %.0f ms CPU per pod", s.name, n,
				result.Ready, result.Gone, result.CreateWrites, result.DeleteWrites, result.CPUPerPod)
			b.report.Bursts = append(b.report.Bursts, result)
			b.save()
		}
	}
}

// Trickle is how long lone pods take, one after the other.
type Trickle struct {
	System string    `json:"system"`
	Ready  Quantiles `json:"createdToReady"`
}

// trickle creates four pods a second.
func (b *bench) trickle(perRound int) {
	took := map[string][]float64{}
	for r := range b.options.rounds {
		order := slices.Clone(b.systems)
		if r%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			took[s.name] = append(took[s.name], b.drip(s, perRound)...)
			b.report.Trickles = trickles(b.systems, took)
			b.save()
		}
	}
	for _, s := range b.systems {
		b.w.Logf("%s: lone pod ready after %.0f ms (p50), %.0f ms (p99)", s.name, quantiles(took[s.name]).P50, quantiles(took[s.name]).P99)
	}
}

// trickles are those of the rounds so far.
func trickles(systems []*system, took map[string][]float64) []Trickle {
	var list []Trickle
	for _, s := range systems {
		if len(took[s.name]) > 0 {
			list = append(list, Trickle{s.name, quantiles(took[s.name])})
		}
	}
	return list
}

func (b *bench) drip(s *system, n int) []float64 {
	t := b.watchPods(s)
	defer t.close()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for i := range n {
		<-ticker.C
		name := fmt.Sprintf("lone-%d", i)
		t.begin(name)
		fixture.Must(b.w, "creating a pod", s.home.Client.Create(b.w.ctx, barePod(s, name)))
	}
	b.await(t, ready, n, "ready", burstTimeout)
	took := t.between(created, ready)
	fixture.Must(b.w, "deleting the pods", s.home.Client.DeleteAllOf(b.w.ctx, &corev1.Pod{}, client.InNamespace(s.namespace)))
	b.await(t, gone, n, "gone", burstTimeout)
	b.settle(10)
	return took
}
