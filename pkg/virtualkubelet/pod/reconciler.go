package pod

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/registry"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/kube/slots"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/sign"
)

// key names a local pod; its twin has the same name in another namespace.
type key = types.NamespacedName

// pulseKey is no pod: a queue that handles it is alive.
var pulseKey = key{}

type queue = workqueue.TypedRateLimitingInterface[key]

// Reconciler runs the pods of one virtual node. Make it with New.
type Reconciler struct {
	// Signs of life for pods that the provider is to stop without; the caller has them given.
	Signs   *sign.Giver
	options Options
	locals  cache.SharedIndexInformer
	work    queue
	status  queue
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
		options: o, errors: errors, ready: ready,
		work:    newQueue("pods"),
		status:  newQueue("podstatus"),
		workers: slots.New(0), statusWorkers: slots.New(0),
		reconnect: signal.New(),
		memory:    newMemory(o.Local, o.Clock),
		beats:     map[string]time.Time{},
		used:      map[string]bool{},
		budget:    o.Budget,
		Signs:     sign.New(sign.Options{Home: o.Home, Node: o.Node, Peer: o.Peer, Clock: o.Clock}),
	}
	r.locals = newLocalInformer(o.Local, o.Node)
	return r, nil
}

func newQueue(name string) queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](minBackOff, maxBackOff),
		workqueue.TypedRateLimitingQueueConfig[key]{Name: name})
}

// Run reflects until the context ends and everything it started has ended.
func (r *Reconciler) Run(ctx context.Context) error {
	if _, err := r.locals.AddEventHandler(r.localHandler()); err != nil {
		return fmt.Errorf("watching the pods of node %q: %w", r.options.Node, err)
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
	group.Go(func() { r.locals.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), r.locals.HasSynced) {
		return nil
	}
	if r.options.UsesChanged != nil {
		r.options.UsesChanged("", "", "")
	}
	group.Go(func() { r.keepLink(ctx) })
	group.Go(func() { r.beat(ctx) })
	group.Go(func() { r.drain(ctx, r.work, r.workers, "pods", r.reconcileWork) })
	group.Go(func() { r.drain(ctx, r.status, r.statusWorkers, "podstatus", r.reconcileStatus) })
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

// Informed tells whether the node's pods were read.
func (r *Reconciler) Informed() bool { return r.locals.HasSynced() }

// Pods lists the node's pods.
func (r *Reconciler) Pods() []*corev1.Pod {
	list := r.locals.GetStore().List()
	pods := make([]*corev1.Pod, 0, len(list))
	for _, object := range list {
		if pod := localOf(object); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// enqueueLocals has all local pods of a namespace looked at (of all namespaces if it is empty). Fresh starts their back-off
// anew, because whatever failed before may work now.
func (r *Reconciler) enqueueLocals(namespace string, fresh bool) {
	for _, object := range r.locals.GetStore().List() {
		if pod, ok := object.(*packed); ok && (namespace == "" || pod.namespace == namespace) {
			r.enqueue(key{Namespace: pod.namespace, Name: pod.name}, fresh)
		}
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

// drain hands a queue's keys to as many workers as there may be, until it is shut down.
func (r *Reconciler) drain(ctx context.Context, q queue, workers *slots.Slots, name string, handle func(context.Context, key) error) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		k, shutdown := q.Get()
		if shutdown {
			return
		}
		if k == pulseKey {
			r.mu.Lock()
			r.beats[name] = r.options.Clock.Now()
			r.mu.Unlock()
			q.Done(k)
			continue
		}
		if !workers.Acquire() {
			q.Done(k)
			continue
		}
		running.Go(func() {
			defer workers.Release()
			defer q.Done(k)
			r.handle(ctx, q, k, handle)
		})
	}
}

// isolated keeps one pod that breaks the program from taking all others down with it.
func isolated(ctx context.Context, k key, handle func(context.Context, key) error) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("handling pod %s broke the program: %v\n%s", k, broken, debug.Stack())
		}
	}()
	return handle(ctx, k)
}

func (r *Reconciler) handle(ctx context.Context, q queue, k key, handle func(context.Context, key) error) {
	if ctx.Err() != nil {
		return
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KRef(k.Namespace, k.Name))
	err := isolated(klog.NewContext(ctx, logger), k, handle)
	if err == nil {
		q.Forget(k)
		return
	}
	result, retry := reconcile.Result(err)
	switch {
	case result.RequeueAfter > 0:
		q.Forget(k)
		q.AddAfter(k, result.RequeueAfter)
	case retry != nil && reconcile.Classify(err) != reconcile.Terminal:
		q.AddRateLimited(k)
	default:
		q.Forget(k)
	}
	if reconcile.Classify(err) != reconcile.Waiting {
		logger.V(1).Info("A pod could not be brought in step", "class", reconcile.Classify(err).String(), "reason", err.Error())
	}
}
