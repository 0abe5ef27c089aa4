package mirror

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/slots"
	"liqo.io/liqo/pkg/reflection"
)

// errDisconnected parks an object until the peer is connected.
var errDisconnected = errors.New("the provider is not connected")

// Problem is an object that could not be brought in step.
type Problem struct {
	// Kind is the reflection kind's name, such as configmap.
	Kind string
	// Namespace and Name are those of the local object. An empty name stands for the whole namespace.
	Namespace, Name string
	// Reason for machines.
	Reason string
	// Message for people.
	Message string
	// Since is when the problem with this reason began.
	Since time.Time
	// failures counts the tries since then.
	failures int
}

// runner reflects one kind in all namespaces. Its queue holds local objects; an empty name stands for the survey of what
// the twin holds of the kind.
type runner struct {
	engine *Engine
	kind   reflection.Kind
	// queue is there once the runner was started.
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// refusals knows how long what was refused is left alone.
	refusals workqueue.TypedRateLimiter[types.NamespacedName]
	slots    *slots.Slots
	// twin is what the remote objects are.
	twin reflection.Twin
	// children are the kinds whose parent is this one.
	children []*runner

	mu    sync.Mutex
	ctx   context.Context
	pairs map[string]*pair
	// leftovers is what was found at the provider of a kind that is off, by local namespace.
	leftovers map[string]leftover
	looking   singleflight.Group
	closing   sync.WaitGroup
	troubled  map[types.NamespacedName]Problem
	parked    map[types.NamespacedName]bool
}

func newRunner(e *Engine, kind reflection.Kind) *runner {
	return &runner{
		engine:   e,
		kind:     kind,
		slots:    slots.New(0),
		twin:     kind.RemoteKind(),
		refusals: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minRefused, maxRefused),
		pairs:    map[string]*pair{},
		troubled: map[types.NamespacedName]Problem{},
		parked:   map[types.NamespacedName]bool{},
	}
}

// start makes the runner ready to follow a mapping; run then does the work.
func (r *runner) start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minBackOff, maxBackOff)
	r.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: r.kind.GVR.Resource, Clock: r.engine.options.Clock})
	r.ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("kind", r.kind.Name))
}

// run hands queued objects to as many workers as are configured, until the context ends.
func (r *runner) run() {
	stop := context.AfterFunc(r.ctx, func() {
		r.queue.ShutDown()
		r.slots.Close()
	})
	defer stop()
	slots.Drain(r.queue, r.slots, func(key types.NamespacedName) { r.handle(r.ctx, key) })
	r.follow(&inForce{})
	r.closing.Wait()
}

// config is the workers and the policy of the kind.
func (r *runner) config() offloadingv1beta1.ReflectorConfig {
	return r.engine.inForce.Load().config(&r.kind)
}

// off tells whether the kind is not reflected at all.
func (r *runner) off() bool { return r.config().NumWorkers <= 0 }

// follow opens and closes pairs so that they are those of the mapping, or none if the kind is off.
func (r *runner) follow(now *inForce) {
	workers, mapping := now.config(&r.kind).NumWorkers, now.Mapping
	r.slots.Resize(int(workers))
	r.mu.Lock()
	defer r.mu.Unlock()
	if workers <= 0 || r.ctx.Err() != nil {
		mapping = nil
	}
	for namespace, p := range r.pairs {
		if mapping[namespace] != p.twin {
			delete(r.pairs, namespace)
			p.cancel()
			r.closing.Go(p.wait)
			r.clear(namespace)
		}
	}
	for namespace, twin := range mapping {
		if r.pairs[namespace] == nil && namespace != "" && twin != "" {
			r.pairs[namespace] = openPair(r, namespace, twin)
		}
	}
}

// clear forgets the troubles of a namespace that is no longer reflected.
func (r *runner) clear(namespace string) {
	delete(r.leftovers, namespace)
	for key := range r.troubled {
		if key.Namespace == namespace {
			delete(r.troubled, key)
			r.forgive(key)
		}
	}
	for key := range r.parked {
		if key.Namespace == namespace {
			delete(r.parked, key)
		}
	}
}

func (r *runner) pair(namespace string) *pair {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pairs[namespace]
}

func (r *runner) all() []*pair {
	r.mu.Lock()
	defer r.mu.Unlock()
	pairs := make([]*pair, 0, len(r.pairs))
	for _, p := range r.pairs {
		pairs = append(pairs, p)
	}
	return pairs
}

// reconsider queues all objects of a namespace, or of all if it is empty.
func (r *runner) reconsider(namespace string) {
	for _, p := range r.all() {
		if namespace == "" || namespace == p.namespace {
			p.enqueueAll()
		}
	}
}

// reopen starts the remote watches anew, with the peer's present client.
func (r *runner) reopen() {
	for _, p := range r.all() {
		p.reopen()
	}
}

// resume queues at once what was parked or failed.
func (r *runner) resume() {
	r.mu.Lock()
	keys := make([]types.NamespacedName, 0, len(r.parked)+len(r.troubled))
	for key := range r.parked {
		keys = append(keys, key)
	}
	for key := range r.troubled {
		keys = append(keys, key)
	}
	clear(r.parked)
	r.mu.Unlock()
	for _, p := range r.all() {
		p.recover()
	}
	for _, key := range keys {
		r.forgive(key)
		r.queue.Add(key)
	}
}

// handle works on one object and decides by the class of the error when to look at it again.
func (r *runner) handle(ctx context.Context, key types.NamespacedName) {
	p := r.pair(key.Namespace)
	if p == nil {
		r.settle(key)
		return
	}
	err := p.process(ctx, key.Name)
	if err == nil {
		r.settle(key)
		return
	}
	if ctx.Err() != nil || p.ctx.Err() != nil {
		return
	}
	if connected, _ := r.engine.options.Peer.State(); errors.Is(err, errDisconnected) || !connected && reconcile.Classify(err) == reconcile.Transient {
		r.park(key)
		return
	}
	if errors.Is(err, errThrottled) {
		r.putOff(key)
		return
	}
	r.trouble(p, key, err)
	result, retry := reconcile.Result(err)
	switch class := reconcile.Classify(err); {
	case class == reconcile.Terminal:
		r.forgive(key)
	case class == reconcile.Refused:
		r.queue.AddAfter(key, r.refusals.When(key))
	case retry != nil:
		r.queue.AddRateLimited(key)
	default:
		r.forgive(key)
		r.queue.AddAfter(key, result.RequeueAfter)
	}
}

// forgive has the next failure of an object waited for as for the first.
func (r *runner) forgive(key types.NamespacedName) {
	r.queue.Forget(key)
	r.refusals.Forget(key)
}

// park puts an object aside until the connection is back; if it came back meanwhile nobody would say so again.
func (r *runner) park(key types.NamespacedName) {
	r.mu.Lock()
	r.parked[key] = true
	r.mu.Unlock()
	r.forgive(key)
	if connected, _ := r.engine.options.Peer.State(); connected {
		r.queue.AddRateLimited(key)
	}
}

// settle takes note that all is well with an object, or with a namespace, unless its view was given up meanwhile: what overLimit told must
// not be taken back.
func (r *runner) settle(key types.NamespacedName) {
	r.mu.Lock()
	if p := r.pairs[key.Namespace]; key.Name != "" || p == nil || !p.isBlocked() {
		delete(r.troubled, key)
	}
	delete(r.parked, key)
	r.mu.Unlock()
	r.forgive(key)
}

// trouble records a failure and tells it where the user looks.
func (r *runner) trouble(p *pair, key types.NamespacedName, err error) {
	problem := Problem{
		Kind: r.kind.Name, Namespace: key.Namespace, Name: key.Name,
		Reason: reconcile.ReasonOf(err), Message: reconcile.MessageOf(err), Since: r.engine.options.Clock.Now(),
		failures: 1,
	}
	r.mu.Lock()
	if before, again := r.troubled[key]; again && before.Reason == problem.Reason {
		problem.Since, problem.failures = before.Since, before.failures+1
	}
	r.troubled[key] = problem
	r.mu.Unlock()
	r.engine.reporter.failed(r.kind.Name, key.Namespace, problem.Reason)
	class := reconcile.Classify(err)
	klog.FromContext(p.ctx).V(1).Info("An object is not in step", "object", key, "class", class.String(), "reason", problem.Reason, "err", err)
	if class != reconcile.Transient || problem.failures >= warnAfter && r.engine.options.Clock.Since(problem.Since) >= warnPatience {
		p.warn(key.Name, problem)
	}
}

func (r *runner) problems() []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := make([]Problem, 0, len(r.troubled))
	for _, problem := range r.troubled {
		problems = append(problems, problem)
	}
	return problems
}

// throttle takes note of a provider that asks for patience: nothing at all is asked of it until then. It can ask for a
// minute at most, and then again.
func (e *Engine) throttle(err error) {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if !asked || !apierrors.IsTooManyRequests(err) {
		return
	}
	until := e.options.Clock.Now().Add(min(time.Duration(max(0, seconds))*time.Second, maxBackOff))
	e.throttled.Change(func(before *time.Time) {
		if until.After(*before) {
			*before = until
		}
	})
}

// errThrottled puts an object off until the provider may be asked again.
var errThrottled = errors.New("the provider asked for patience")

// throttling is how long the provider is to be left alone still.
func (e *Engine) throttling() time.Duration {
	return max(0, e.throttled.Get().Sub(e.options.Clock.Now()))
}

// putOff looks at an object again when the provider may be asked again, and not at all objects at the same moment. It is no
// failure of the object: nobody is told.
func (r *runner) putOff(key types.NamespacedName) {
	r.queue.Forget(key)
	r.queue.AddAfter(key, r.engine.throttling()+wait.Jitter(time.Second/2, 1))
}
