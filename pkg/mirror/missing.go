package mirror

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/reflection"
)

// mayRemove tells whether a copy may go. It may if its local object is there and stays at home, was seen to be deleted, or goes with its
// namespace. Of one that a list did not show it depends on how many others are missing.
func (t *task) mayRemove(ctx context.Context, origin types.UID) (bool, error) {
	if t.local != nil || t.state.went(origin) || t.options().Removals == nil {
		return true, nil
	}
	if t.runner.engine.namespaces.leaving(ctx, t.namespace) {
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
		if view := p.ready(); view != nil && p.objects.ready() {
			p.stock(view, &all)
		}
	}
	return all
}

func (p *pair) stock(view *watched, all *massremoval.Inventory) {
	count := func(remoteName string, origin types.UID) {
		all.All[p.namespace]++
		name := p.kind().Local(p.options().Home, remoteName)
		if p.objects.get(name) == nil && !p.state(name).went(origin) {
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
	for _, remote := range view.all() {
		if reflection.IsOurs(remote, p.options().Home, p.options().Remote) && remote.GetDeletionTimestamp() == nil {
			count(remote.GetName(), types.UID(reflection.OriginUID(remote)))
		}
	}
}
