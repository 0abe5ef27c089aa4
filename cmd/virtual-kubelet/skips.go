package main

import (
	"sync"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// skips notices when a namespace is kept at home, or not any more. A right to watch namespaces would be one to watch all of
// them, so the controller manager says on the NamespaceMap that something changed, and what changed is read one by one.
type skips struct {
	refresh func()

	mu   sync.Mutex
	seen bool
	last string
}

// see looks at a version of the NamespaceMap. The first says nothing: what was not read yet will be read anyway.
func (s *skips) see(m *offloadingv1beta1.NamespaceMap) {
	s.mu.Lock()
	now := m.Annotations[offloadingv1beta1.SkippedNamespacesAnnotation]
	changed := s.seen && now != s.last
	s.seen, s.last = true, now
	s.mu.Unlock()
	if changed {
		s.refresh()
	}
}
