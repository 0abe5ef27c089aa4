package mirroring

import (
	"sync"

	"liqo.io/liqo/pkg/reflection"
)

// References tells the reflection engine what the pods on the provider's virtual nodes use: the own Node's, which is all there
// is of them without siblings, and those of the siblings. Without an own Node it has no pods: they use nothing.
type References struct {
	mu       sync.Mutex
	nodeless bool
	mirror   *Reflection
	pods     Uses
	siblings Uses
}

// Uses knows what pods use: a ConfigMap or a Secret of their namespace.
type Uses interface {
	Uses(namespace, kind, name string) (used, known bool)
}

// Prepare says who is to look again when the answers change, who knows the pods of the siblings, and whether there will be pods
// of an own Node.
func (r *References) Prepare(m *Reflection, siblings Uses, nodeless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mirror, r.siblings, r.nodeless = m, siblings, nodeless
}

// Referenced implements mirror.References: one pod that uses an object is enough; that none does must be known of all.
func (r *References) Referenced(namespace, kind, name string) (used, known bool) {
	r.mu.Lock()
	pods, siblings := r.pods, r.siblings
	known = r.nodeless
	r.mu.Unlock()
	if pods != nil {
		used, known = pods.Uses(namespace, kind, name)
	}
	if used && known {
		return true, true
	}
	there, certain := siblings.Uses(namespace, kind, name)
	if there && certain {
		return true, true
	}
	return false, known && certain
}

// Changed has the engine look at an object again, or at all of a namespace, or of all namespaces, if the names are empty.
func (r *References) Changed(namespace, kind, name string) {
	r.mu.Lock()
	m := r.mirror
	r.mu.Unlock()
	if name != "" {
		m.reconsider(kind, namespace, name)
		return
	}
	for _, k := range reflection.Kinds() {
		if k.ByReference {
			m.reconsider(k.Name, namespace)
		}
	}
}

// SetPods says who knows the pods; it does not know them before its cache is filled.
func (r *References) SetPods(pods Uses) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = pods
}
