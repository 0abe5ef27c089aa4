package storage

import (
	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/reflection"
)

// Reflected returns the local claim that a claim in the twin of a namespace is known to stand for, by the name of the remote
// one, which may be another. Both are there, and the remote one carries the UID of the local one, which must not be changed.
func (r *Reconciler) Reflected(namespace, remoteName string) (*corev1.PersistentVolumeClaim, bool) {
	a, v := r.both(namespace)
	if v == nil {
		return nil, false
	}
	remote := v.remote(remoteName)
	if remote == nil || !reflection.IsOurs(remote, r.options.Home, r.options.Remote) {
		return nil, false
	}
	local := a.local(localKey(a, remote).Name)
	return local, local != nil && reflection.OriginUID(remote) == string(local.UID)
}

// Crossed tells whether a claim of a namespace is known to be at the provider.
func (r *Reconciler) Crossed(namespace string) bool {
	_, v := r.both(namespace)
	return v != nil && v.claims.Len() > 0
}

// both is what is known of a namespace; the view is nil unless both sides are known.
func (r *Reconciler) both(namespace string) (*area, *view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.areas[namespace]
	if a == nil || !a.locals.Synced() || a.view == nil || !a.view.ready() {
		return nil, nil
	}
	return a, a.view
}
