package main

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// moment is a point in a pod's life, at home unless it says away.
type moment int

const (
	created moment = iota
	bound
	shadowed
	awayCreated
	awayReady
	ready
	awayGone
	gone
	moments
)

// timeline notes when the pods of a namespace reach each moment.
type timeline struct {
	stop chan struct{}

	mu    sync.Mutex
	pods  map[string]*[moments]time.Time
	count [moments]int
}

// watchPods starts a timeline; at is when pods come into being there.
func (b *bench) watchPods(s *system) *timeline {
	t := &timeline{stop: make(chan struct{}), pods: map[string]*[moments]time.Time{}}
	synced := []cache.InformerSynced{b.watchSide(t, s.home, s.namespace, created, ready, gone)}
	if s.away != nil {
		synced = append(synced, b.watchSide(t, s.away, s.namespace, awayCreated, awayReady, awayGone))
	}
	if s.shadows {
		client, err := metadata.NewForConfig(s.away.Config)
		fixture.Must(b.w, "making a client of metadata", err)
		informer := metadatainformer.NewFilteredMetadataInformer(client, offloadingv1beta1.GroupVersion.WithResource("shadowpods"),
			s.namespace, 0, cache.Indexers{}, nil).Informer()
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { t.note(o.(metav1.Object).GetName(), shadowed) }})
		fixture.Must(b.w, "watching ShadowPods", err)
		go informer.Run(t.stop)
		synced = append(synced, informer.HasSynced)
	}
	if !cache.WaitForCacheSync(b.w.ctx.Done(), synced...) {
		b.w.Fatalf("told to stop")
	}
	return t
}

func (b *bench) watchSide(t *timeline, c *fixture.Cluster, namespace string, there, isReady, isGone moment) cache.InformerSynced {
	factory := informers.NewSharedInformerFactoryWithOptions(c.Kube, 0, informers.WithNamespace(namespace),
		informers.WithTransform(func(o any) (any, error) {
			if pod, ok := o.(*corev1.Pod); ok {
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
					Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName}, Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions}}, nil
			}
			return o, nil
		}))
	informer := factory.Core().V1().Pods().Informer()
	seen := func(o any) {
		pod := o.(*corev1.Pod)
		t.note(pod.Name, there)
		if there == created && pod.Spec.NodeName != "" {
			t.note(pod.Name, bound)
		}
		if podReady(pod) {
			t.note(pod.Name, isReady)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(_, o any) { seen(o) },
		DeleteFunc: func(o any) {
			if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			t.note(o.(*corev1.Pod).Name, isGone)
		},
	})
	fixture.Must(b.w, "watching pods", err)
	go informer.Run(t.stop)
	return informer.HasSynced
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func (t *timeline) note(name string, m moment) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.pods[name]
	if at == nil {
		at = &[moments]time.Time{}
		t.pods[name] = at
	}
	if at[m].IsZero() {
		at[m] = now
		t.count[m]++
	}
}

// begin notes a moment that the caller brings about, before the watch shows it.
func (t *timeline) begin(name string) { t.note(name, created) }

func (t *timeline) reached(m moment) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count[m]
}

// last is when the last pod reached the moment.
func (t *timeline) last(m moment) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	var at time.Time
	for _, times := range t.pods {
		if times[m].After(at) {
			at = times[m]
		}
	}
	return at
}

// between lists, in seconds, how long each pod took from one moment to another.
func (t *timeline) between(from, to moment) []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var took []float64
	for _, times := range t.pods {
		if !times[from].IsZero() && !times[to].IsZero() {
			took = append(took, max(0, times[to].Sub(times[from]).Seconds()))
		}
	}
	return took
}

func (t *timeline) close() { close(t.stop) }

// await waits until n pods reached the moment.
func (b *bench) await(t *timeline, m moment, n int, what string, atMost time.Duration) {
	deadline := time.Now().Add(atMost)
	for t.reached(m) < n {
		if time.Now().After(deadline) {
			b.w.Fatalf("waited %s for %d pods to be %s: %d are", atMost, n, what, t.reached(m))
		}
		b.w.pause(5 * time.Millisecond)
	}
}
