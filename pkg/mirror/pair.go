package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/kube/view"
	"liqo.io/liqo/pkg/reflection"
)

// pair reflects one kind from one local namespace into its twin.
type pair struct {
	runner          *runner
	namespace, twin string
	ctx             context.Context
	cancel          context.CancelFunc
	objects         *watched

	mu sync.Mutex
	// view is what the twin holds of the kind, old are those before it that have not ended yet.
	view *watched
	old  []*watched
	// blocked keeps a view closed that showed too much, until the next survey.
	blocked bool
	// awake tells whether the local watch was started; vacant that it does not have to be: a survey of the twin found nothing.
	awake, vacant bool
	states        map[string]*state
}

// watched holds the objects of one kind in one namespace of either cluster.
type watched = view.View[reflection.Object]

func openPair(r *runner, namespace, twin string) *pair {
	ctx, cancel := context.WithCancel(r.ctx)
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("namespace", namespace, "twin", twin))
	p := &pair{runner: r, namespace: namespace, twin: twin, ctx: ctx, cancel: cancel, states: map[string]*state{}}
	here := view.Source{
		Client:    func() (client.WithWatch, error) { return r.engine.options.Local, nil },
		NewObject: func() runtime.Object { return r.kind.NewObject() },
		NewList:   func() client.ObjectList { return r.kind.NewList() },
		Namespace: namespace,
		Failed:    func(err error) { p.watchFailed("this cluster", namespace, err) },
	}
	o := replica.Options[reflection.Object]{
		Name: "reflection", Slim: strip, Event: p.localEvent, Synced: p.localSynced,
		Missed: func(object reflection.Object) { p.localChanged(object, true) },
	}
	if !r.kind.WriteOnly() {
		// An unbounded view says how much a bounded one is expected to hold.
		o.Budget = r.engine.budget.Backing()
	}
	p.objects = view.New(here, o)
	p.rouse(r.config().StatusBack)
	return p
}

// wake starts the local watch, once.
func (p *pair) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.awake && p.ctx.Err() == nil {
		p.awake = true
		p.objects.Start(p.ctx)
	}
}

func (p *pair) asleep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.awake
}

// localEvent takes note of what the watch tells of a local object.
func (p *pair) localEvent(_, object reflection.Object, deleted bool) {
	if deleted {
		s := p.state(object.GetName())
		s.mu.Lock()
		s.gone = object.GetUID()
		s.mu.Unlock()
	}
	p.localChanged(object, deleted)
}

// localChanged queues a local object that changed, or is not there any more. One that was just written waits until it is calm.
func (p *pair) localChanged(object reflection.Object, deleted bool) {
	name := object.GetName()
	if calm := p.kind().Calm; calm > 0 && !deleted {
		p.enqueueAfter(name, p.state(name).unrest(calm, p.options().Clock.Now()))
	} else {
		p.enqueue(name)
	}
	p.usesChanged(object, deleted)
	p.tellChildren(func(child *pair) { child.parentChanged(name, deleted) })
}

func (p *pair) localSynced() {
	p.enqueue("")
	p.enqueueLocal()
	p.runner.usesKnown(p.namespace)
	p.tellChildren(func(child *pair) { child.parentsSynced(p) })
	wakeNaming(p, "")
}

// wait returns when everything that the pair started has ended; it must have been cancelled.
func (p *pair) wait() {
	if !p.asleep() {
		p.objects.Wait()
	}
	p.mu.Lock()
	views := slices.Clone(p.old)
	if p.view != nil {
		views = append(views, p.view)
	}
	p.mu.Unlock()
	for _, view := range views {
		view.Wait()
	}
}

func (p *pair) options() *Options { return &p.runner.engine.options }

func (p *pair) kind() *reflection.Kind { return &p.runner.kind }

func (p *pair) enqueue(name string) {
	p.runner.queue.Add(types.NamespacedName{Namespace: p.namespace, Name: name})
}

func (p *pair) enqueueAfter(name string, after time.Duration) {
	p.runner.queue.AddAfter(types.NamespacedName{Namespace: p.namespace, Name: name}, after)
}

func (p *pair) enqueueLocal() {
	for _, name := range p.objects.Names() {
		p.enqueue(name)
	}
}

// enqueueAll queues what there is on either side.
func (p *pair) enqueueAll() {
	p.enqueueLocal()
	for _, name := range p.remoteNames() {
		p.enqueue(name)
	}
}

// client returns the peer's client, if it is connected and did not ask for patience.
func (p *pair) client() (client.WithWatch, error) {
	if connected, _ := p.options().Peer.State(); !connected {
		return nil, errDisconnected
	}
	c, err := p.options().Peer.Client()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDisconnected, err)
	}
	if p.runner.engine.throttling() > 0 {
		return nil, errThrottled
	}
	return c, nil
}

// call bounds a call.
func (p *pair) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, p.options().RequestTimeout)
}

// process brings one object in step; an empty name surveys the twin.
func (p *pair) process(ctx context.Context, name string) error {
	if !p.objects.Synced() && (name != "" || !p.asleep()) {
		return nil
	}
	if name == "" {
		return p.survey(ctx)
	}
	err := p.converge(ctx, name)
	if errors.Is(err, errUnready) {
		return nil
	}
	meet(p, name, err)
	return err
}

// state is what is remembered of one object beyond the caches. Losing it costs at most a request. Only the worker that has the object in
// hand reads and changes it, but for what the lock guards.
type state struct {
	shared
	// written is what was written last, and when the same was written before.
	written string
	times   restraint.Writes
	// sending is what was written of an object that can only be written, imprint what is known of it; nil if nothing is.
	sending
	imprint *imprint
	// removed is the remote object that was deleted last; until then no other delete of it is sent.
	removed      types.UID
	removedUntil time.Time
	// inStep is what was wanted when the live object held it.
	inStep string
	// reverted is when a change that was put back was told last.
	reverted time.Time
	// broughtBack is when the status of the local object was written lately.
	broughtBack restraint.Writes
	// refused is what the provider refused, so that it is not asked for again.
	refused refusal
	// kept is what stays of the remote object although it would not be made like that.
	kept string
	// dropped is what the provider does not keep, so that it is not written again.
	dropped dropped
	// warned is the last failure that was told, lacked what the object was last told to lack at the provider.
	warned, lacked told
}

// told is what was told last, and when.
type told struct {
	what string
	at   time.Time
}

// shared is what others than the object's worker read or change, too.
type shared struct {
	mu sync.Mutex
	// last is when anything was written last.
	last time.Time
	// answer is what the peer answered to the last write, believed until the cache caught up or until expires.
	answer  reflection.Object
	expires time.Time
	// at is when what the ledger does not show yet was written; only the worker changes it.
	at time.Time
	// gone is the local object that was seen to be deleted last.
	gone types.UID
	// remarked is what was last found to be wrong with the local object, empty if nothing was.
	remarked string
	// met says that it is known whether the object's name at the provider is somebody else's, taken that it is.
	met, taken bool
	// uses is what the local object uses.
	uses []reflection.Reference
}

// state returns the memory of a local object.
func (p *pair) state(name string) *state {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.states[name] == nil {
		p.states[name] = &state{}
	}
	return p.states[name]
}

// forget drops the memory of an object that is gone on both sides.
func (p *pair) forget(name string) {
	p.options().Removals.Settle(p.kind().Name, p.namespace, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, name)
}

// remember takes note of the peer's answer to a write.
func (s *state) remember(answer reflection.Object, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.expires = answer, now.Add(overlayLife)
}

// vanished takes note of a deletion that the cache saw.
func (s *state) vanished(object reflection.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil && s.answer.GetUID() == object.GetUID() {
		s.answer = nil
	}
}

// went tells whether the local object of that UID was seen to be deleted.
func (s *state) went(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone != "" && s.gone == uid
}

// newest returns the cached object or, while the cache lags behind it, the answer to the last write; wait is how long the
// answer will be believed at most.
func (s *state) newest(cached reflection.Object, now time.Time) (live reflection.Object, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer == nil {
		return cached, 0
	}
	if !now.Before(s.expires) || cached != nil && !older(cached, s.answer) {
		s.answer = nil
		return cached, 0
	}
	return s.answer, s.expires.Sub(now)
}

func older(a, b reflection.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// wrote takes note of a successful write.
func (s *state) wrote(what string, now time.Time) {
	if s.written != what {
		s.written, s.times = what, nil
	}
	s.times.Add(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = now
}

// unrest is how long the object is to be left alone so that no two writes come closer than calm.
func (s *state) unrest(calm time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.last.Add(calm).Sub(now))
}

// again tells whether something is to be told now: not what was told last, a while ago at most.
func (t *told) again(what string, now time.Time) bool {
	if t.what == what && !restraint.Due(t.at, now) {
		return false
	}
	t.what, t.at = what, now
	return true
}

// remarks takes note of what is wrong with the local object, and tells whether that is news.
func (s *state) remarks(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.remarked != what
	s.remarked = what
	return news
}

// strip drops what is never compared nor reflected, to save memory.
func strip(o reflection.Object) {
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
}
