package main

import (
	"sync"

	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

// references tells the reflection engine what the node's pods use. Without a Node there are no pods: nothing is used.
type references struct {
	nodeless bool

	mu     sync.Mutex
	pods   *pod.Reconciler
	engine *mirror.Engine
}

// Referenced implements mirror.References.
func (r *references) Referenced(namespace, kind, name string) (used, known bool) {
	r.mu.Lock()
	pods := r.pods
	r.mu.Unlock()
	if pods == nil {
		return false, r.nodeless
	}
	return pods.Uses(namespace, kind, name)
}

// changed has the engine look at an object again, or at all of them if the name is empty.
func (r *references) changed(namespace, kind, name string) {
	r.mu.Lock()
	engine := r.engine
	r.mu.Unlock()
	if engine == nil {
		return // Whoever starts later looks at everything.
	}
	if name != "" {
		// The kinds are those of the table, which the engine knows.
		_ = engine.Reconsider(kind, namespace, name)
		return
	}
	for _, k := range reflection.Kinds() {
		if k.ByReference {
			_ = engine.Reconsider(k.Name, "")
		}
	}
}

// setPods says who knows the pods; it does not know them before its cache is filled.
func (r *references) setPods(pods *pod.Reconciler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods = pods
}

func (r *references) setEngine(engine *mirror.Engine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.engine = engine
}
