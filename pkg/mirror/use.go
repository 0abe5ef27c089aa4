package mirror

import (
	"context"
	"slices"

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
		for _, object := range users.objects.all() {
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
	p.mu.Lock()
	before := p.uses[object.GetName()]
	if p.uses == nil {
		p.uses = map[string][]reflection.Reference{}
	}
	if p.uses[object.GetName()] = now; len(now) == 0 {
		delete(p.uses, object.GetName())
	}
	p.mu.Unlock()
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
