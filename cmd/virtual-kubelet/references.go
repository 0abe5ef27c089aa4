package main

import (
	"sync"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

// references tells the reflection engine what the node's pods use. Without a Node there are no pods: nothing is used.
type references struct {
	mu       sync.Mutex
	nodeless bool
	mirror   *mirroring
	pods     *pod.Reconciler
}

// prepare says who is to look again when the answers change, and whether there will be pods.
func (r *references) prepare(m *mirroring, nodeless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mirror, r.nodeless = m, nodeless
}

// Referenced implements mirror.References.
func (r *references) Referenced(namespace, kind, name string) (used, known bool) {
	r.mu.Lock()
	pods, nodeless := r.pods, r.nodeless
	r.mu.Unlock()
	if pods == nil {
		return false, nodeless
	}
	return pods.Uses(namespace, kind, name)
}

// changed has the engine look at an object again, or at all of them if the name is empty.
func (r *references) changed(namespace, kind, name string) {
	r.mu.Lock()
	m := r.mirror
	r.mu.Unlock()
	if name != "" {
		m.reconsider(kind, namespace, name)
		return
	}
	for _, k := range reflection.Kinds() {
		if k.ByReference {
			m.reconsider(k.Name, "")
		}
	}
}

// setPods says who knows the pods; it does not know them before its cache is filled.
func (r *references) setPods(pods *pod.Reconciler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = pods
}
