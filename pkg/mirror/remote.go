package mirror

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/view"
	"liqo.io/liqo/pkg/reflection"
)

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
	for _, name := range view.Names() {
		names = append(names, p.kind().Local(p.options().Home, name))
	}
	return names
}

// ready returns the remote view if it is open and in step, else nil.
func (p *pair) ready() *watched {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil || !p.view.Synced() {
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
	var opened *watched
	s := view.Source{
		Client: p.options().Peer.Client, Namespace: p.twin, Bounded: true, Failed: p.remoteFailed,
		Name: p.kind().Ledger, NewObject: func() runtime.Object { return &corev1.ConfigMap{} }, NewList: func() client.ObjectList { return &corev1.ConfigMapList{} },
	}
	o := replica.Options[reflection.Object]{
		Name: "reflection", Slim: strip, Synced: p.enqueueAll,
		Limit: p.options().MaxRemoteObjects, Budget: p.runner.engine.budget, Over: func() { p.overLimit(opened) },
	}
	if p.kind().Ledger != "" {
		o.Event = p.ledgerEvent()
	} else {
		s.Labels, o.Event = p.selector(), p.remoteEvent
		s.NewObject = func() runtime.Object { return p.runner.twin.NewObject() }
		s.NewList = func() client.ObjectList { return p.runner.twin.NewList() }
	}
	opened = view.New(s, o)
	p.view = opened
	opened.Start(p.ctx)
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
	if failure, failing := p.view.Failure(); failing {
		return fmt.Errorf("what is in namespace %q of cluster %q cannot be followed: %s", p.twin, p.options().Remote, failure)
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

func (p *pair) remoteEvent(_, object reflection.Object, deleted bool) {
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
	p.view.Stop()
	p.old = append(slices.DeleteFunc(p.old, (*watched).Ended), p.view)
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
	broken := p.broken()
	p.mu.Unlock()
	if broken != nil {
		p.reopen()
	}
}

// overLimit gives up a remote view that shows more than is accepted; the survey looks again later.
func (p *pair) overLimit(view *watched) {
	p.mu.Lock()
	current := p.view == view
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

// Reflected returns the local object of a kind, such as Service, that is known to stand behind a remote one: both are there,
// and the remote one, or the provider's ledger, carries the UID of the local one. The object must not be changed.
func (e *Engine) Reflected(kind, namespace, name string) (reflection.Object, bool) {
	for _, r := range e.runners {
		if r.kind.GVK.Kind != kind {
			continue
		}
		p := r.pair(namespace)
		if p == nil || !p.objects.Synced() {
			continue
		}
		local, view := p.objects.Of(name), p.ready()
		if local != nil && view != nil && p.represents(view, local) {
			return local, true
		}
	}
	return nil, false
}

// represents tells whether a remote view shows that a local object crossed.
func (p *pair) represents(view *watched, local reflection.Object) bool {
	remoteName := p.kind().Remote(p.options().Home, local.GetName())
	if p.kind().WriteOnly() {
		return ledgerOf(view, p.kind().Ledger).origin(remoteName) == local.GetUID()
	}
	remote := view.Of(remoteName)
	return remote != nil && reflection.IsOurs(remote, p.options().Home, p.options().Remote) &&
		reflection.OriginUID(remote) == string(local.GetUID())
}

// Crossed tells whether anything of a local namespace is known to be at the provider, beside the root CA, which always is.
func (e *Engine) Crossed(namespace string) bool {
	for _, r := range e.runners {
		p := r.pair(namespace)
		if p == nil {
			continue
		}
		for _, name := range p.remoteNames() {
			if name != reflection.RootCAConfigMap {
				return true
			}
		}
	}
	return false
}

// survey looks whether the twin holds anything of the kind that came from here, and opens the view if so. Without it, what
// was deleted at home while nobody watched would stay in the twin.
func (p *pair) survey(ctx context.Context) error {
	p.mu.Lock()
	open, blocked := p.view != nil, p.blocked
	p.blocked = false
	broken := p.broken()
	p.mu.Unlock()
	if blocked {
		p.enqueueLocal()
	}
	if open {
		return broken
	}
	c, err := p.client()
	if err != nil {
		return err
	}
	ctx, cancel := p.call(ctx)
	defer cancel()
	if ledger := p.kind().Ledger; ledger != "" {
		err := c.Get(ctx, client.ObjectKey{Namespace: p.twin, Name: ledger}, &corev1.ConfigMap{})
		switch {
		case apierrors.IsNotFound(err):
			p.foundNothing()
			return nil
		case err != nil:
			return fmt.Errorf("reading ConfigMap %s/%s of cluster %q: %w", p.twin, ledger, p.options().Remote, err)
		}
		p.found()
		return nil
	}
	list := p.runner.twin.NewList()
	err = c.List(ctx, list, &client.ListOptions{Namespace: p.twin, LabelSelector: p.selector(), Limit: 1})
	if err != nil {
		return fmt.Errorf("listing what was reflected into namespace %q of cluster %q: %w", p.twin, p.options().Remote, err)
	}
	if meta.LenList(list) > 0 {
		p.found()
	} else {
		p.foundNothing()
	}
	return nil
}

// found opens the view of a twin that holds something. What stands there is compared with what is here, so the local watch
// comes first.
func (p *pair) found() {
	if p.asleep() {
		p.wake()
		return
	}
	p.open()
}

// mayRemove tells whether a copy may go. It may if its local object is there and stays at home, was seen to be deleted, or goes with its
// namespace. Of one that a list did not show it depends on how many others are missing.
func (t *task) mayRemove(ctx context.Context, origin types.UID) (bool, error) {
	if t.local != nil || t.state.went(origin) || t.options().Removals == nil {
		return true, nil
	}
	leaving, changed := t.runner.engine.namespaces.Leaving(ctx, t.namespace, namespaceFresh)
	if changed {
		t.runner.engine.namespaceChanged(t.namespace)
	}
	if leaving {
		return true, nil
	}
	missing := massremoval.Copy{Kind: t.kind().Name, Namespace: t.namespace, Name: t.name, Origin: origin}
	return t.options().Removals.May(missing, func() (massremoval.Inventory, error) { return t.runner.inventory(), nil }, func(c massremoval.Copy) {
		t.runner.queue.Add(types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	})
}

// inventory takes stock of the kind in all namespaces that are known.
func (r *runner) inventory() massremoval.Inventory {
	all := massremoval.Inventory{All: map[string]int{}}
	for _, p := range r.all() {
		if view := p.ready(); view != nil && p.objects.Synced() {
			p.stock(view, &all)
		}
	}
	return all
}

func (p *pair) stock(view *watched, all *massremoval.Inventory) {
	count := func(remoteName string, origin types.UID) {
		all.All[p.namespace]++
		name := p.kind().Local(p.options().Home, remoteName)
		if p.objects.Of(name) == nil && !p.state(name).went(origin) {
			all.Missing = append(all.Missing, massremoval.Copy{Kind: p.kind().Name, Namespace: p.namespace, Name: name, Origin: origin})
		}
	}
	if p.kind().WriteOnly() {
		entries := ledgerOf(view, p.kind().Ledger)
		for _, name := range entries.names() {
			count(name, entries.origin(name))
		}
		return
	}
	for _, remote := range view.List() {
		if reflection.IsOurs(remote, p.options().Home, p.options().Remote) && remote.GetDeletionTimestamp() == nil {
			count(remote.GetName(), types.UID(reflection.OriginUID(remote)))
		}
	}
}
