package mirror

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"liqo.io/liqo/pkg/reflection"
)

// SetProvider says what is known of the provider. Whoever knows nothing yet sets the mapping later: without it endpoints
// would cross that the provider has by itself.
func (e *Engine) SetProvider(provider reflection.Provider) {
	provider.Nodes = maps.Clone(provider.Nodes)
	e.mu.Lock()
	before := e.provider
	e.provider = provider
	e.mu.Unlock()
	same := before.IngressClass == provider.IngressClass && before.LoadBalancerClass == provider.LoadBalancerClass &&
		maps.Equal(before.Nodes, provider.Nodes) && before.AddressPlan == provider.AddressPlan &&
		(before.Addresses == nil) == (provider.Addresses == nil) && (before.Ranges == nil) == (provider.Ranges == nil)
	if !same {
		e.bump()
		e.each(func(r *runner) { r.reconsider("") })
	}
}

// Reconsider looks again at the named local objects of a kind in a namespace, or at all of them if none are named, because
// what pods use has changed. An empty namespace stands for all. Namespaces that are not reflected have none.
func (e *Engine) Reconsider(kind, namespace string, names ...string) error {
	r, ok := e.runners[kind]
	if !ok {
		return fmt.Errorf("reconsidering objects of kind %q: there is no such kind; kinds are %s",
			kind, strings.Join(slices.Sorted(maps.Keys(e.runners)), ", "))
	}
	if len(names) == 0 {
		r.reconsider(namespace)
		return nil
	}
	if p := r.pair(namespace); p != nil {
		for _, name := range names {
			p.enqueue(name)
		}
	}
	return nil
}
