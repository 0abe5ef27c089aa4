package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// decideUse translates an object with what is known of its use. known is false if the result depends on a use that nobody here
// can tell: then the object is neither made nor removed.
func (t *task) decideUse(ctx context.Context, in *reflection.Input) (result reflection.Result, known bool) {
	if in.Policy != offloadingv1beta1.Referenced {
		return t.kind().Translate(*in), true
	}
	in.Referenced, known = t.use(ctx, in)
	result = t.kind().Translate(*in)
	if known {
		return result, true
	}
	// Annotations may decide whatever pods use.
	used := *in
	used.Referenced = true
	other := t.kind().Translate(used)
	same := result.Apply == nil && other.Apply == nil && result.Skip != nil && other.Skip != nil && *result.Skip == *other.Skip
	return result, same || result.Apply != nil
}

// use tells whether pods or other objects use the task's own.
//
// While it is not known what other objects use, that nothing known uses an object says little: what stands at the provider already is
// kept in step, because somebody there may use it.
func (t *task) use(ctx context.Context, in *reflection.Input) (used, known bool) {
	known = true
	if references := t.options().References; references != nil {
		used, known = references.Referenced(t.namespace, t.kind().Name, t.name)
	}
	if used && known {
		return true, true
	}
	here, certain := t.usedHere(ctx, in.NamespaceAnnotations)
	switch {
	case here:
		return true, true
	case !known:
		return used, false
	case certain:
		return false, true
	}
	view := t.ready()
	stands := view != nil && t.represents(view, t.local)
	return stands, stands
}

// usedHere tells whether a reflected object of another kind uses the task's own, as an Ingress does a Secret with its
// certificate. Objects of a kind that is off do not cross, but what it left at the provider may use it. known is false while nobody
// can tell.
func (t *task) usedHere(ctx context.Context, namespaceAnnotations map[string]string) (used, known bool) {
	known = true
	wanted := reflection.Reference{Kind: t.kind().Name, Name: t.name}
	for _, runner := range t.runner.engine.runners {
		if runner.kind.Names == nil || runner.kind.UsesKind != t.kind().Name {
			continue
		}
		if runner.off() {
			there, certain := t.usedThere(ctx, runner)
			if there {
				return true, true
			}
			known = known && certain
			continue
		}
		users := runner.pair(t.namespace)
		if users == nil || !users.known() {
			known = false
			continue
		}
		for _, object := range users.objects.List() {
			if slices.Contains(runner.kind.Names(object), wanted) && users.crosses(object, namespaceAnnotations) {
				return true, true
			}
		}
	}
	return false, known
}

// crosses tells whether the user's policy lets an object cross.
func (p *pair) crosses(object reflection.Object, namespaceAnnotations map[string]string) bool {
	in := reflection.Input{Local: object, NamespaceAnnotations: namespaceAnnotations, Policy: p.runner.config().Type}
	return reflection.WhyNotReflected(in, p.kind().DefaultPolicy) == nil
}

// usesChanged looks again at what an object uses, and at what it used before it changed.
func (p *pair) usesChanged(object reflection.Object, gone bool) {
	if p.kind().Names == nil {
		return
	}
	var now []reflection.Reference
	if !gone {
		now = p.kind().Names(object)
	}
	s := p.state(object.GetName())
	s.mu.Lock()
	before := s.uses
	s.uses = now
	s.mu.Unlock()
	for _, reference := range slices.Concat(before, now) {
		if runner := p.runner.engine.runners[reference.Kind]; runner != nil {
			if used := runner.pair(p.namespace); used != nil {
				used.enqueue(reference.Name)
			}
		}
	}
}

// usesKnown looks again at all objects that the runner's kind may use, in one namespace or, if it is empty, in all.
func (r *runner) usesKnown(namespace string) {
	if r.kind.Names == nil {
		return
	}
	if used := r.engine.runners[r.kind.UsesKind]; used != nil {
		used.reconsider(namespace)
	}
}

// pageSize bounds how much of a list the peer sends at a time.
const pageSize = 100

// leftover is what the copies that a kind left in a twin when it was turned off use there.
type leftover struct {
	uses map[reflection.Reference]bool
	// read is when they were listed, under the settings of one generation.
	read       time.Time
	generation int64
}

// usedThere tells whether a copy that a kind left at the provider when it was turned off uses the task's object there. Nothing is made
// of such a kind, so what does not use it now will not. What does stays until somebody there removes it, so it is looked at again later.
func (t *task) usedThere(ctx context.Context, users *runner) (used, known bool) {
	now := t.options().Clock.Now()
	settings := t.runner.engine.inForce.Load()
	// A write that was on its way when the kind was turned off may still arrive.
	if wait := settings.since[users.kind.Name].Add(t.options().RequestTimeout).Sub(now); wait > 0 {
		t.enqueueAfter(t.name, wait)
		return false, false
	}
	found, err := users.findLeft(t.namespace, now, settings.generation, func() (map[reflection.Reference]bool, error) { return t.listUses(ctx, users) })
	if err != nil {
		klog.FromContext(t.ctx).V(1).Info("Could not look for copies of a kind that is off; what they may use stays", "kind", users.kind.Name, "err", err)
		t.enqueueAfter(t.name, namespaceFresh)
		return false, false
	}
	if !found.uses[reflection.Reference{Kind: t.kind().Name, Name: t.remoteName}] {
		return false, true
	}
	t.enqueueAfter(t.name, namespaceRefresh)
	return true, true
}

// listUses lists what the copies of a kind in the twin use.
func (t *task) listUses(ctx context.Context, users *runner) (map[reflection.Reference]bool, error) {
	if users.twin.GVK != users.kind.GVK {
		return nil, fmt.Errorf("copies of kind %s are of another kind: what they use cannot be told", users.kind.Name)
	}
	c, err := t.client()
	if err != nil {
		return nil, err
	}
	uses := map[reflection.Reference]bool{}
	options := &client.ListOptions{Namespace: t.twin, LabelSelector: t.selector(), Limit: pageSize}
	for count := 0; ; {
		page := users.twin.NewList()
		call, cancel := t.call(ctx)
		err := c.List(call, page, options)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("listing the copies of kind %s in namespace %q of cluster %q: %w", users.kind.Name, t.twin, t.options().Remote, err)
		}
		objects, err := meta.ExtractList(page)
		if err != nil {
			return nil, fmt.Errorf("reading the list of the copies of kind %s: %w", users.kind.Name, err)
		}
		// An empty page that says that there are more counts, too, and so does what one object uses.
		if count += max(1, len(objects)); max(count, len(uses)) > t.options().MaxRemoteObjects {
			return nil, fmt.Errorf("cluster %q shows more than %d copies of kind %s in namespace %q",
				t.options().Remote, t.options().MaxRemoteObjects, users.kind.Name, t.twin)
		}
		for _, object := range objects {
			if copied, ok := object.(reflection.Object); ok {
				for _, reference := range users.kind.Names(copied) {
					uses[reference] = true
				}
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return uses, nil
		}
	}
}

// findLeft returns what is known of the kind in the twin of a namespace, and looks if that is old. Who asks meanwhile gets the same answer:
// the objects of a namespace mostly ask at the same time.
func (r *runner) findLeft(namespace string, now time.Time, generation int64, look func() (map[reflection.Reference]bool, error)) (leftover, error) {
	found, err, _ := r.looking.Do(namespace, func() (any, error) {
		found := r.left(namespace)
		if found.uses != nil && found.generation == generation && now.Sub(found.read) < namespaceRefresh {
			return found, nil
		}
		uses, err := look()
		if err != nil {
			return leftover{}, err
		}
		found = leftover{uses: uses, read: now, generation: generation}
		r.leaves(namespace, found)
		return found, nil
	})
	if err != nil {
		return leftover{}, err
	}
	return found.(leftover), nil
}

// left returns what was found of the kind in the twin of a namespace.
func (r *runner) left(namespace string) leftover {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leftovers[namespace]
}

// leaves takes note of what was found.
func (r *runner) leaves(namespace string, found leftover) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leftovers == nil {
		r.leftovers = map[string]leftover{}
	}
	r.leftovers[namespace] = found
}
