package mirror

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/reflection"
)

// Reflected returns the local object of a kind, such as Service, that is known to stand behind a remote one: both are there,
// and the remote one, or the provider's ledger, carries the UID of the local one. The object must not be changed.
func (e *Engine) Reflected(kind, namespace, name string) (reflection.Object, bool) {
	for _, r := range e.runners {
		if r.kind.GVK.Kind != kind {
			continue
		}
		p := r.pair(namespace)
		if p == nil || !p.objects.ready() {
			continue
		}
		local, view := p.objects.get(name), p.ready()
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
	remote := view.get(remoteName)
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
