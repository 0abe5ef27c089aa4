package pod

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/podcache"
)

func (r *Reconciler) localHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, listed bool) {
			r.budget.Expect(expected)
			if pod := podcache.Of(object); pod != nil {
				r.memory.unasked.came(pod, listed)
				r.demand(pod)
				r.await(pod)
				r.Signs.Came(pod)
				r.enqueue(keyOf(pod), false)
				r.tellUses(pod)
			}
		},
		UpdateFunc: func(before, after any) {
			old, new := podcache.Of(before), podcache.Of(after)
			if old == nil || new == nil {
				return
			}
			if old.UID != new.UID {
				r.forget(old)
				r.memory.unasked.came(new, false)
				r.await(new)
				r.Signs.Went(old.UID)
				r.Signs.Came(new)
				r.tellUses(old)
				r.tellUses(new)
			}
			r.arrive(old, new)
			if old.UID != new.UID || specChanged(old, new) || !old.DeletionTimestamp.Equal(new.DeletionTimestamp) ||
				!maps.Equal(old.Labels, new.Labels) || !maps.Equal(old.Annotations, new.Annotations) ||
				len(old.Spec.EphemeralContainers) != len(new.Spec.EphemeralContainers) || ended(old) != ended(new) || len(old.Finalizers) != len(new.Finalizers) ||
				!slices.Equal(reflection.OpenGates(old), reflection.OpenGates(new)) {
				r.work.Add(keyOf(new))
			}
			r.status.Add(keyOf(new))
		},
		DeleteFunc: func(object any) {
			r.budget.Expect(-expected)
			if pod := podcache.Of(object); pod != nil {
				r.goneFor(object, pod)
				r.forget(pod)
				r.Signs.Went(pod.UID)
				r.work.Add(keyOf(pod))
				r.tellUses(pod)
			}
		},
	}
}

func (r *Reconciler) forget(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.forget(pod.UID)
}

// local returns the pod of the cache, which must not be changed, or nil.
func (r *Reconciler) local(k key) *corev1.Pod { return r.Held(k).Unpack() }

// ended tells whether the pod is over. No other phase matters to its ShadowPod.
func ended(pod *corev1.Pod) bool { return reflection.Terminal(pod.Status.Phase) }

// specChanged tells whether the specification of a pod changed. Before Kubernetes 1.34 nothing counts its changes.
func specChanged(old, new *corev1.Pod) bool {
	if old.Generation == 0 && new.Generation == 0 {
		return !apiequality.Semantic.DeepEqual(old.Spec, new.Spec)
	}
	return old.Generation != new.Generation
}

// tellUses tells whoever wants to know that the use of the pod's objects may have changed.
func (r *Reconciler) tellUses(pod *corev1.Pod) {
	if r.options.UsesChanged == nil {
		return
	}
	for _, reference := range reflection.References(&pod.Spec) {
		r.options.UsesChanged(pod.Namespace, reference.Kind, reference.Name)
	}
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

// await remembers a pod that has not started: how long it takes to become ready is known once it is.
func (r *Reconciler) await(pod *corev1.Pod) {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.of(pod.UID).awaited = true
}

// arrive notes that a pod became ready for the first time, or ended.
func (r *Reconciler) arrive(old, new *corev1.Pod) {
	ready := showsReady(&new.Status)
	if ready == showsReady(&old.Status) && ended(new) == ended(old) {
		return
	}
	r.mu.Lock()
	s := r.memory.known(new.UID)
	awaited := s.awaited
	s.awaited = awaited && !ready && !ended(new)
	r.mu.Unlock()
	if awaited && ready {
		r.ready.Observe(max(0, r.options.Clock.Since(new.CreationTimestamp.Time).Seconds()))
	}
}
