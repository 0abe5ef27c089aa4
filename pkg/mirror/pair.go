package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// pair reflects one kind from one local namespace into its twin.
type pair struct {
	runner          *runner
	namespace, twin string
	ctx             context.Context
	cancel          context.CancelFunc
	objects         *watched

	mu   sync.Mutex
	view *watched
	old  []*watched
	// blocked keeps a view closed that showed too much, until the next survey.
	blocked bool
	// awake tells whether the local watch was started; vacant that it does not have to be: a survey of the twin found nothing.
	awake, vacant bool
	states        map[string]*state
	// uses is what the local objects use, by their name.
	uses map[string][]reflection.Reference
	// met are the objects of which it is known whether their name at the provider is somebody else's.
	met met
}

func openPair(r *runner, namespace, twin string) *pair {
	ctx, cancel := context.WithCancel(r.ctx)
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("namespace", namespace, "twin", twin))
	p := &pair{runner: r, namespace: namespace, twin: twin, ctx: ctx, cancel: cancel, states: map[string]*state{}}
	local := r.engine.options.Local
	here := scope{
		client:    func() (client.WithWatch, error) { return local, nil },
		newObject: r.kind.NewObject,
		newList:   r.kind.NewList,
		namespace: namespace,
		event:     p.localEvent,
		missed:    func(object reflection.Object) { p.localChanged(object, true) },
		synced:    p.localSynced,
		failed:    func(err error) { p.watchFailed("this cluster", namespace, err) },
	}
	if !r.kind.WriteOnly() {
		here.budget = r.engine.budget.Backing()
	}
	p.objects = newWatched(here)
	p.rouse(r.config().StatusBack)
	return p
}

// wake starts the local watch, once.
func (p *pair) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.awake && p.ctx.Err() == nil {
		p.awake = true
		p.objects.start(p.ctx)
	}
}

func (p *pair) asleep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.awake
}

// localEvent takes note of what the watch tells of a local object.
func (p *pair) localEvent(object reflection.Object, deleted bool) {
	if deleted {
		p.state(object.GetName()).goes(object.GetUID())
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
		p.objects.wait()
	}
	p.mu.Lock()
	views := append([]*watched{}, p.old...)
	if p.view != nil {
		views = append(views, p.view)
	}
	p.mu.Unlock()
	for _, view := range views {
		view.wait()
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
	for _, name := range p.objects.names() {
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

// remoteNames are the local names of what the view shows.
func (p *pair) remoteNames() []string {
	view := p.ready()
	if view == nil {
		return nil
	}
	var names []string
	if p.kind().WriteOnly() {
		return ledgerOf(view, p.kind().Ledger).names()
	}
	for _, name := range view.names() {
		names = append(names, p.kind().Local(p.options().Home, name))
	}
	return names
}

// ready returns the remote view if it is open and in step, else nil.
func (p *pair) ready() *watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil || !p.view.ready() {
		return nil
	}
	return p.view
}

// open opens the remote view unless it is open. It queues all objects once it is in step.
func (p *pair) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view != nil || p.blocked || p.ctx.Err() != nil {
		return
	}
	var view *watched
	s := scope{
		client:    p.options().Peer.Client,
		namespace: p.twin,
		limit:     p.options().MaxRemoteObjects,
		budget:    p.runner.engine.budget,
		overLimit: func() { p.overLimit(&view) },
		synced:    p.enqueueAll,
		failed:    p.remoteFailed,
	}
	if ledger := p.kind().Ledger; ledger != "" {
		s.newObject = func() reflection.Object { return &corev1.ConfigMap{} }
		s.newList = func() reflection.ObjectList { return &corev1.ConfigMapList{} }
		s.name = ledger
		s.event = p.ledgerEvent()
	} else {
		s.newObject, s.newList = p.runner.twin.NewObject, p.runner.twin.NewList
		s.labels = p.selector()
		s.event = p.remoteEvent
	}
	view = newWatched(s)
	p.view = view
	view.start(p.ctx)
}

// remoteFailed tells of a remote watch that fails although the peer answers.
func (p *pair) remoteFailed(err error) {
	if connected, _ := p.options().Peer.State(); connected || err == nil {
		p.watchFailed(fmt.Sprintf("cluster %q", p.options().Remote), p.twin, err)
	}
}

// watchFailed makes a failing watch a problem of the whole namespace, which the next survey ends.
func (p *pair) watchFailed(cluster, namespace string, err error) {
	if err == nil {
		p.enqueue("")
		return
	}
	p.runner.trouble(p, types.NamespacedName{Namespace: p.namespace},
		fmt.Errorf("watching objects of kind %s in namespace %q of %s: %w", p.kind().Name, namespace, cluster, err))
}

// unready says why there is no remote view in step.
func (p *pair) unready() error {
	if _, err := p.client(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.broken(); err != nil {
		return err
	}
	return errUnready
}

// broken says why the remote view, if there is one, is not followed at the moment. The caller locks.
func (p *pair) broken() error {
	if p.view == nil {
		return nil
	}
	if failure := p.view.failure.Load(); failure != nil {
		return fmt.Errorf("what is in namespace %q of cluster %q cannot be followed: %s", p.twin, p.options().Remote, *failure)
	}
	return nil
}

// selector selects what came from here.
func (p *pair) selector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{
		offloadingv1beta1.OriginLabel:      p.options().Home,
		offloadingv1beta1.DestinationLabel: p.options().Remote,
	})
}

func (p *pair) remoteEvent(object reflection.Object, deleted bool) {
	name := p.kind().Local(p.options().Home, object.GetName())
	if deleted {
		p.state(name).vanished(object)
	}
	p.enqueue(name)
}

// close ends the remote view, if any; what it knew is forgotten.
func (p *pair) close() (wasOpen bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil {
		return false
	}
	p.view.cancel()
	p.view.replica.Release()
	p.old = append(slices.DeleteFunc(p.old, (*watched).ended), p.view)
	p.view = nil
	return true
}

// reopen starts the remote view anew, for a peer whose credentials changed.
func (p *pair) reopen() {
	if p.close() {
		p.open()
	}
}

// recover starts the remote view anew if it lost the connection, instead of waiting for its back-off.
func (p *pair) recover() {
	p.mu.Lock()
	broken := p.view != nil && p.view.failure.Load() != nil
	p.mu.Unlock()
	if broken {
		p.reopen()
	}
}

// overLimit gives up a remote view that shows more than is accepted; the survey looks again later.
func (p *pair) overLimit(view **watched) {
	p.mu.Lock()
	current := p.view == *view
	p.blocked = p.blocked || current
	p.mu.Unlock()
	if !current || !p.close() {
		return
	}
	err := reconcile.Refuse(offloadingv1beta1.ReasonRemoteOverLimit,
		fmt.Errorf("cluster %q shows more objects of kind %s in namespace %q than are followed (%d of a kind in a namespace, %d MiB of all together); "+
			"they are not followed until there are fewer",
			p.options().Remote, p.kind().Name, p.twin, p.options().MaxRemoteObjects, p.options().Budget.Limit()>>20))
	p.runner.trouble(p, types.NamespacedName{Namespace: p.namespace}, err)
	p.enqueueAfter("", reconcile.RefusedRetry)
}

func (p *pair) isBlocked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blocked
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
	if !p.objects.ready() && (name != "" || !p.asleep()) {
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
