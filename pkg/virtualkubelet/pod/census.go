package pod

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/reflection"
)

// Phases are those that a Census counts.
var Phases = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown}

// Census is what the pods of a node are, and take.
type Census struct {
	// Phases counts the pods in each phase.
	Phases map[corev1.PodPhase]int
	// Requests are those of the pods that have not ended, of the resources that capacity.Measured lists.
	Requests corev1.ResourceList
}

// readyBuckets are the upper bounds of the time that pods take to become ready, in seconds: a creation is told in whole seconds, an
// image may take minutes.
var readyBuckets = []float64{1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800}

func newReadyHistogram(o Options) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "liqo_virtual_kubelet_pod_ready_duration_seconds", Buckets: readyBuckets,
		ConstLabels: prometheus.Labels{"cluster_id": o.Remote, "node_name": o.Node},
		Help:        "Time from the creation of a pod to its first being ready at home, of pods that had not started when they were first seen.",
	})
}

// counted is what a Census takes of one pod: its phase, and what it requests in the order of capacity.Measured.
type counted struct {
	phase    corev1.PodPhase
	requests [len(capacity.Measured)]int64
}

// countedOf looks at a pod. CPU is in thousandths.
func countedOf(pod *corev1.Pod) counted {
	c := counted{phase: corev1.PodPending}
	for _, phase := range Phases {
		if pod.Status.Phase == phase {
			c.phase = phase // not the pod's own text, which lies in memory for each pod
		}
	}
	if reflection.Terminal(pod.Status.Phase) {
		return c
	}
	requests := capacity.PodRequests(&pod.Spec)
	for i, name := range capacity.Measured {
		quantity := requests[name]
		c.requests[i] = quantity.Value()
		if name == corev1.ResourceCPU {
			c.requests[i] = quantity.MilliValue()
		}
	}
	return c
}

// Census counts the node's pods as the cache shows them.
func (r *Reconciler) Census() Census {
	census := Census{Phases: map[corev1.PodPhase]int{}, Requests: corev1.ResourceList{}}
	var sums [len(capacity.Measured)]int64
	for _, object := range r.locals.GetStore().List() {
		held, ok := object.(*packed)
		if !ok {
			continue
		}
		census.Phases[held.counted.phase]++
		for i, amount := range held.counted.requests {
			sums[i] += amount
		}
	}
	for i, name := range capacity.Measured {
		census.Requests[name] = *resource.NewQuantity(sums[i], resource.DecimalSI)
		if name == corev1.ResourceCPU {
			census.Requests[name] = *resource.NewMilliQuantity(sums[i], resource.DecimalSI)
		}
	}
	return census
}

// await remembers a pod that has not started: how long it takes to become ready is known once it is.
func (r *Reconciler) await(pod *corev1.Pod) {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.awaited[pod.UID] = true
}

// arrive notes that a pod became ready for the first time, or ended.
func (r *Reconciler) arrive(old, new *corev1.Pod) {
	ready := showsReady(new)
	if ready == showsReady(old) && ended(new) == ended(old) {
		return
	}
	r.mu.Lock()
	awaited := r.memory.awaited[new.UID]
	if ready || ended(new) {
		delete(r.memory.awaited, new.UID)
	}
	r.mu.Unlock()
	if awaited && ready {
		r.ready.Observe(max(0, r.options.Clock.Since(new.CreationTimestamp.Time).Seconds()))
	}
}

func showsReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
