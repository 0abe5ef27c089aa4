package pod

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/kube/registry"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/kube/slots"
	"liqo.io/liqo/pkg/kube/work"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/podcache"
	"liqo.io/liqo/pkg/virtualkubelet/sign"
)

// key names a local pod; its twin has the same name in another namespace.
type key = types.NamespacedName

// pulseKey is no pod: a queue that handles it is alive.
var pulseKey = key{}

// Reconciler runs the pods of one virtual node. Make it with New.
type Reconciler struct {
	// Signs of life for pods that the provider is to stop without; the caller has them given.
	Signs   *sign.Giver
	options Options
	*podcache.Cache
	work   work.Queue
	status work.Queue
	// workers and statusWorkers bound how many pods of either queue are handled at a time.
	workers, statusWorkers *slots.Slots
	// reconnect wakes the loop that keeps the link.
	reconnect signal.Signal
	// errors counts refusals, by namespace, kind and reason.
	errors *prometheus.CounterVec
	// ready is how long pods take to become ready.
	ready prometheus.Histogram

	mu sync.Mutex
	// changes is how often the settings changed.
	changes int
	link    *link
	memory  memory
	beats   map[string]time.Time
	// budget bounds what the caches of all twins hold.
	budget *replica.Budget
	// used are the namespaces of all pods that were ever bound to the node in this life.
	used map[string]bool
}

// New checks the options. Nothing happens before Run.
func New(o Options) (*Reconciler, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	errors, err := mirror.NewErrorCounter(o.Registerer, o.Remote, o.Node)
	if err != nil {
		return nil, err
	}
	ready, err := registry.Ensure(o.Registerer, newReadyHistogram(o))
	if err != nil {
		return nil, fmt.Errorf("timing pods: %w", err)
	}
	r := &Reconciler{
		Cache:   podcache.New(o.Local, o.Node),
		options: o, errors: errors, ready: ready,
		work:    work.NewQueue("pods", minBackOff, maxBackOff),
		status:  work.NewQueue("podstatus", minBackOff, maxBackOff),
		workers: slots.New(0), statusWorkers: slots.New(0),
		reconnect: signal.New(),
		memory:    newMemory(o.Local, o.Clock),
		beats:     map[string]time.Time{},
		used:      map[string]bool{},
		budget:    o.Budget,
		Signs:     sign.New(sign.Options{Home: o.Home, Node: o.Node, Peer: o.Peer, Clock: o.Clock}),
	}
	return r, nil
}

// Run reflects until the context ends and everything it started has ended.
func (r *Reconciler) Run(ctx context.Context) error {
	if err := r.Follow(r.localHandler()); err != nil {
		return err
	}
	cancel := r.options.Peer.Subscribe(func(state peer.State) {
		r.reconnect.Raise()
		if state.Lost() || state.Revoked() {
			r.enqueueLocals("", false)
		}
	})
	defer cancel()
	defer r.options.Wanted.Follow(r.follow)()
	var group sync.WaitGroup
	defer group.Wait()
	defer r.work.ShutDown()
	defer r.status.ShutDown()
	group.Go(func() { r.Cache.Run(ctx) })
	if !r.Filled(ctx) {
		return nil
	}
	if r.options.UsesChanged != nil {
		r.options.UsesChanged("", "", "")
	}
	group.Go(func() { r.keepLink(ctx) })
	group.Go(func() { r.beat(ctx) })
	group.Go(func() {
		work.Loop{Queue: r.work, Workers: r.workers, What: "pod", Handle: r.beating("pods", r.reconcileWork)}.Run(ctx)
	})
	group.Go(func() {
		work.Loop{Queue: r.status, Workers: r.statusWorkers, What: "pod", Handle: r.beating("podstatus", r.reconcileStatus)}.Run(ctx)
	})
	<-ctx.Done()
	r.workers.Close()
	r.statusWorkers.Close()
	return nil
}

// follow takes up what is wanted: how many pods are handled at a time comes before which.
func (r *Reconciler) follow(before, now Wanted) {
	r.workers.Resize(now.Workers)
	r.statusWorkers.Resize(now.Workers)
	changed, same := before.Mapping.changes(now.Mapping), reflect.DeepEqual(before.Settings, now.Settings)
	r.mu.Lock()
	if !same {
		r.changes++
	}
	maps.DeleteFunc(r.memory.went, func(_ types.UID, k key) bool { return now.Mapping.Known && now.Mapping.Desired[k.Namespace] == "" })
	r.mu.Unlock()
	if len(changed) > 0 {
		r.reconnect.Raise()
	}
	if !same {
		changed = []string{""}
	}
	// Pods of other namespaces are left alone: what the provider refuses of them is not to be tried again because of this.
	for _, namespace := range changed {
		r.enqueueLocals(namespace, false)
	}
}

// changes lists the namespaces about which another mapping says something else; an empty name stands for all of them.
func (m Mapping) changes(other Mapping) []string {
	if m.Known != other.Known {
		return []string{""}
	}
	changed := map[string]bool{}
	for _, leaving := range []map[string]bool{m.Leaving, other.Leaving} {
		for namespace := range leaving {
			if m.Leaving[namespace] != other.Leaving[namespace] {
				changed[namespace] = true
			}
		}
	}
	for _, pair := range [][2]map[string]string{{m.Desired, other.Desired}, {m.Effective, other.Effective}} {
		for _, names := range pair {
			for namespace := range names {
				before, was := pair[0][namespace]
				if after, is := pair[1][namespace]; was != is || before != after {
					changed[namespace] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// Alive tells whether both queues handled something since the given time. Without workers nothing is expected of them.
func (r *Reconciler) Alive(since time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.options.Wanted.Get().Workers <= 0 || r.beats["pods"].After(since) && r.beats["podstatus"].After(since)
}

// enqueueLocals has all local pods of a namespace looked at (of all namespaces if it is empty). Fresh starts their back-off
// anew, because whatever failed before may work now.
func (r *Reconciler) enqueueLocals(namespace string, fresh bool) {
	for _, held := range r.All(namespace) {
		r.enqueue(held.Key(), fresh)
	}
}

func (r *Reconciler) enqueue(k key, fresh bool) {
	if fresh {
		r.work.Forget(k)
		r.status.Forget(k)
	}
	r.work.Add(k)
	r.status.Add(k)
}

func keyOf(pod *corev1.Pod) key { return key{Namespace: pod.Namespace, Name: pod.Name} }

// beat sends a pulse through both queues.
func (r *Reconciler) beat(ctx context.Context) {
	ticker := r.options.Clock.NewTicker(pulse)
	defer ticker.Stop()
	for {
		r.work.Add(pulseKey)
		r.status.Add(pulseKey)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// beating handles a queue's keys, and notes when its pulse came through.
func (r *Reconciler) beating(queue string, handle func(context.Context, key) error) func(context.Context, key) error {
	return func(ctx context.Context, k key) error {
		if k != pulseKey {
			return handle(ctx, k)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.beats[queue] = r.options.Clock.Now()
		return nil
	}
}
