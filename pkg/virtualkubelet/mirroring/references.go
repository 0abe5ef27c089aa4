package mirroring

import "liqo.io/liqo/pkg/reflection"

// Uses knows what pods use: a ConfigMap or a Secret of their namespace.
type Uses interface {
	Uses(namespace, kind, name string) (used, known bool)
}

// Referenced implements mirror.References: one pod that uses an object is enough; that none does must be known of all, the pods of the own
// Node and those of the siblings.
func (m *Reflection) Referenced(namespace, kind, name string) (used, known bool) {
	known = m.options.Nodeless
	if m.options.Pods != nil {
		if pods := m.options.Pods(); pods != nil {
			used, known = pods.Uses(namespace, kind, name)
		}
	}
	if used && known {
		return true, true
	}
	there, certain := m.options.Siblings.Uses(namespace, kind, name)
	if there && certain {
		return true, true
	}
	return false, known && certain
}

// UsesChanged has the engine look at an object again, or at all of a namespace, or of all namespaces, if the names are empty.
func (m *Reflection) UsesChanged(namespace, kind, name string) {
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
