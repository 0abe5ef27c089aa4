package mirroring

import (
	"maps"
	"slices"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
)

// Siblings is what knows the pods of a provider's other virtual nodes, as far as it is told things.
type Siblings interface {
	// Follow says which nodes these are, and in which namespaces their pods matter. It does not block.
	Follow(nodes, namespaces []string)
	Uses
}

// attend says whose pods matter to the reflection: those of the other virtual nodes, and only while this process reflects, by
// the policy Referenced. It comes before the engine hears of anything, so that an engine that asks gets no answer from before.
func (m *Reflection) attend() {
	m.attending.Lock()
	defer m.attending.Unlock()
	now := m.options.Wanted.Get()
	if !known(now) {
		return // Without the own virtual node nothing is concluded from the others.
	}
	nodes := slices.DeleteFunc(slices.Sorted(maps.Keys(now.Provider.Nodes)), func(node string) bool { return node == m.options.Node })
	var namespaces []string
	if m.current.Load() != nil && byReference(now) {
		namespaces = slices.Sorted(maps.Keys(now.Mapping))
	}
	m.options.Siblings.Follow(nodes, namespaces)
}

// byReference tells whether what pods use decides about any kind.
func byReference(now mirror.Wanted) bool {
	for _, kind := range reflection.Kinds() {
		if config := now.Kinds[kind.Name]; kind.ByReference && config.NumWorkers > 0 && config.Type == offloadingv1beta1.Referenced {
			return true
		}
	}
	return false
}
