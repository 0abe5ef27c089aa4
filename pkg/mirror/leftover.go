package mirror

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/reflection"
)

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
