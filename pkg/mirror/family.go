package mirror

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// adopt tells each runner which kinds hang on its own.
func (e *Engine) adopt() {
	for _, child := range e.runners {
		if parent := e.runners[child.kind.Parent]; parent != nil && parent != child {
			parent.children = append(parent.children, child)
		}
	}
}

// tellChildren calls tell with each pair of the namespace whose objects hang on those of this one.
func (p *pair) tellChildren(tell func(child *pair)) {
	for _, runner := range p.runner.children {
		if child := runner.pair(p.namespace); child != nil {
			tell(child)
		}
	}
}

// parents is the pair of the parent's kind if its local watch is in step, nil if not. off tells that the parent's kind is not
// reflected.
func (p *pair) parents() (parents *pair, off bool) {
	runner := p.runner.engine.runners[p.kind().Parent]
	if runner == nil || runner.off() {
		return nil, true
	}
	parents = runner.pair(p.namespace)
	if parents == nil || !parents.objects.Synced() {
		return nil, false
	}
	return parents, false
}

// rouse starts the local watch if there is a reason to already. A kind that hangs on parents waits for one, unless nobody would
// tell of it, or what came back to objects whose copies are gone may still be there.
func (p *pair) rouse(statusBack bool) {
	parents, off := p.parents()
	switch {
	case p.kind().Parent == "", p.kind().ParentName == nil && (off || statusBack):
		p.wake()
	case parents != nil:
		p.parentsSynced(parents)
	}
}

// rouse starts local watches for which a change of configuration is a reason.
func (r *runner) rouse() {
	for _, p := range r.all() {
		if p.asleep() {
			p.rouse(r.config().StatusBack)
		}
	}
}

// foundNothing takes note that the twin holds nothing of the kind. While the local watch is closed as well nothing of it crosses:
// then it is known what its objects use.
func (p *pair) foundNothing() {
	p.mu.Lock()
	news := !p.awake && !p.vacant
	p.vacant = true
	p.mu.Unlock()
	if news {
		p.runner.usesKnown(p.namespace)
	}
}

// known tells whether it is known which local objects there are that may cross.
func (p *pair) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.objects.Synced() || p.vacant && !p.awake
}

// parentsSynced looks at everything again, now that the parents are known. Without any of them the local watch stays
// closed, unless the twin holds something from earlier.
func (p *pair) parentsSynced(parents *pair) {
	if len(parents.objects.Names()) > 0 {
		p.wake()
	}
	p.enqueue("")
	p.enqueueLocal()
}

// parentChanged looks again at the children of one parent.
func (p *pair) parentChanged(parent string, gone bool) {
	if !gone {
		p.wake()
	}
	for _, object := range p.objects.List() {
		if p.parentName(object) == parent {
			p.enqueue(object.GetName())
		}
	}
}

func (p *pair) parentName(object reflection.Object) string {
	if p.kind().ParentName == nil {
		return ""
	}
	return p.kind().ParentName(object)
}

// findParent fills in what Translate has to know of the parent. It fails with errUnready until the parents are known: then
// everything is queued again.
func (t *task) findParent(in *reflection.Input) error {
	t.parent, t.orphaned = nil, false
	name := t.parentName(t.local)
	if t.kind().Parent == "" || name == "" {
		return nil
	}
	parents, off := t.parents()
	switch {
	case off:
		t.orphaned = true
		return nil
	case parents == nil:
		return errUnready
	}
	in.ParentPolicy = parents.runner.config().Type
	if parent := parents.objects.Of(name); parent != nil {
		t.parent, in.Parent = parent, parent
		t.remark(*in, parents.state(name))
	}
	return nil
}

// remark tells the user what is wrong with the parent, once until it is right.
func (t *task) remark(in reflection.Input, told *state) {
	if t.kind().Remark == nil || !t.objects.Synced() {
		return
	}
	reason, message := t.kind().Remark(in, func() []reflection.Object {
		return slices.DeleteFunc(t.objects.List(), func(o reflection.Object) bool { return t.parentName(o) != t.parent.GetName() })
	})
	what := reason
	if reason != "" {
		what += " " + string(t.parent.GetUID())
	}
	if told.remarks(what) && reason != "" {
		t.runner.engine.reporter.event(t.parent, corev1.EventTypeWarning, reason, message)
	}
}

// confirmParent reads the parent live before something is deleted because of what the cache says of it.
func (t *task) confirmParent(ctx context.Context) error {
	name := t.parentName(t.local)
	parents := t.runner.engine.runners[t.kind().Parent]
	if parents == nil || name == "" {
		return nil
	}
	live, err := readLocal(ctx, t.pair, &parents.kind, name)
	switch {
	case err != nil:
		return err
	case live == nil && t.parent == nil:
		return nil
	case live != nil && t.parent != nil && live.GetResourceVersion() == t.parent.GetResourceVersion():
		return nil
	default:
		return lags(&parents.kind, t.namespace, name)
	}
}

// meet takes note of what came of a try, and has those looked at again that lead to the object by name. What failed for the moment says
// nothing.
func meet(p *pair, name string, err error) {
	if p.objects.Of(name) == nil || err != nil && reconcile.Classify(err) == reconcile.Transient {
		return
	}
	s, taken := p.state(name), reconcile.ReasonOf(err) == offloadingv1beta1.ReasonNameConflict
	s.mu.Lock()
	news := !s.met || s.taken != taken
	s.met, s.taken = true, taken
	s.mu.Unlock()
	if news {
		wakeNaming(p, name)
	}
}

// namesOf is what an object leads to by name.
func namesOf(p *pair, object reflection.Object) (names []reflection.Reference) {
	if parent := p.parentName(object); parent != "" {
		names = append(names, reflection.Reference{Kind: p.kind().Parent, Name: parent})
	}
	if p.kind().Names != nil {
		names = append(names, p.kind().Names(object)...)
	}
	return names
}

// wakeNaming looks again at what leads to an object of a pair by name, or to any of them if the name is empty.
func wakeNaming(p *pair, name string) {
	of := func(r reflection.Reference) bool { return r.Kind == p.kind().Name && (name == "" || r.Name == name) }
	for _, runner := range p.runner.engine.runners {
		if runner.kind.Names == nil && runner.kind.ParentName == nil {
			continue
		}
		naming := runner.pair(p.namespace)
		if naming == nil {
			continue
		}
		for _, object := range naming.objects.List() {
			if slices.ContainsFunc(namesOf(naming, object), of) {
				naming.enqueue(object.GetName())
			}
		}
	}
}

// whyNotNamed fails while something that an object leads to by name is somebody else's at the provider: what the object does would be done to
// that. Until that is known it fails with errUnready. What is not there, or has not to cross, leads nowhere.
func whyNotNamed(t *task) error {
	for _, name := range namesOf(t.pair, t.local) {
		runner := t.runner.engine.runners[name.Kind]
		if runner == nil || runner.off() {
			continue
		}
		named := runner.pair(t.namespace)
		if named == nil || !named.objects.Synced() {
			return errUnready
		}
		local := named.objects.Of(name.Name)
		if local == nil {
			continue
		}
		s := named.state(name.Name)
		s.mu.Lock()
		known, taken := s.met, s.taken
		s.mu.Unlock()
		switch {
		case taken:
			return reconcile.NotOursAt(t.options().Remote, offloadingv1beta1.ReasonNameConflict, runner.twin.GVK.Kind,
				client.ObjectKey{Namespace: t.twin, Name: runner.kind.Remote(t.options().Home, name.Name)})
		case !known:
			return errUnready
		}
	}
	return nil
}
