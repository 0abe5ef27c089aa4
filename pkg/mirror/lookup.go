package mirror

import (
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
