package mirror

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// Wanted is what an Engine is to reflect, and how, as of now.
type Wanted struct {
	// Mapping says which local namespaces are reflected into which remote ones. Namespaces that leave it are left alone: nothing in their twins is
	// deleted.
	Mapping map[string]string
	// Kinds are the workers and the policy by kind; a kind without uses its own defaults. Zero workers turn it off; what was reflected stays at the
	// provider.
	Kinds map[string]offloadingv1beta1.ReflectorConfig
	// NotReflected is what stays at home of every object.
	NotReflected reflection.NotReflected
	// Provider is what is known of the provider. Who knows nothing yet gives no Mapping: endpoints would cross that the provider has by itself.
	Provider reflection.Provider
	// Skipped is another one whenever the annotations of some namespace are: then those of all are read again.
	Skipped string
}

// inForce is what is wanted, with what the engine notes of changes. Nobody changes one.
type inForce struct {
	Wanted
	// generation counts the changes that Translate depends on.
	generation int64
	// since is when the configuration of a kind changed last; zero if that was before this process.
	since map[string]time.Time
}

// config is that of a kind.
func (f *inForce) config(kind *reflection.Kind) offloadingv1beta1.ReflectorConfig {
	if config, configured := f.Kinds[kind.Name]; configured {
		return config
	}
	return offloadingv1beta1.ReflectorConfig{NumWorkers: kind.DefaultWorkers, Type: kind.DefaultPolicy}
}

// follow takes up what is wanted now, and looks again at what that changes.
func (e *Engine) follow(_, wanted Wanted) {
	before := e.inForce.Load()
	now := &inForce{Wanted: wanted, generation: before.generation, since: maps.Clone(before.since)}
	var configured []*runner
	e.each(func(r *runner) {
		if before.config(&r.kind) != now.config(&r.kind) {
			configured = append(configured, r)
			if now.since == nil {
				now.since = map[string]time.Time{}
			}
			now.since[r.kind.Name] = e.options.Clock.Now()
		}
	})
	translated := !reflect.DeepEqual(before.NotReflected, now.NotReflected) || !reflect.DeepEqual(before.Provider, now.Provider)
	if translated || len(configured) > 0 {
		now.generation++
	}
	e.inForce.Store(now)
	e.remap(before.Mapping, now.Mapping)
	e.each(func(r *runner) { r.follow(now) })
	mapped := !maps.Equal(before.Mapping, now.Mapping)
	e.each(func(r *runner) {
		if translated || mapped && r.kind.SelectsTwins {
			r.reconsider("")
		}
	})
	for _, r := range configured {
		r.rouse()
		r.reconsider("")
		r.usesKnown("")
		for _, child := range r.children {
			child.rouse()
			child.reconsider("")
		}
	}
	if before.Mapping != nil && before.Skipped != now.Skipped {
		e.stale.Raise()
	}
}

// remap forgets namespaces that leave the mapping. Of one that enters it nothing is believed that was known: somebody who still went by an older
// mapping may have read it since it left.
func (e *Engine) remap(before, now map[string]string) {
	for namespace, twin := range before {
		if now[namespace] != twin {
			e.namespaces.Forget(namespace)
			e.reporter.forget(namespace)
		}
	}
	for namespace, twin := range now {
		if before[namespace] != twin {
			e.namespaces.Forget(namespace)
		}
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
