// Package replica keeps in memory what a watch of one namespace shows. It does what an informer of client-go does for one
// listener, on client-go's Reflector, with half of its goroutines and without its queues: there is one for each kind in each
// offloaded namespace, most of them of nothing.
package replica

import (
	"context"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Object is what a replica holds.
type Object interface {
	metav1.Object
	runtime.Object
}

// Options of a Replica. All but Slim must be given.
type Options[T Object] struct {
	// Name for logs.
	Name string
	// Namespace is where the objects are. Whatever else the server sends is left out.
	Namespace string
	// Source lists and watches.
	Source cache.ListerWatcher
	// Example makes an object of the type that is watched.
	Example func() T
	// Event is called for each object that comes, changes or goes, one after the other, before the first list is in and after. A
	// list that is read anew shows all objects again. The replica holds what Event is told.
	Event func(object T, deleted bool)
	// Synced is called once, when the first list is in and was told.
	Synced func()
	// Slim drops of an object what nobody reads; nil keeps all.
	Slim func(T)
}

// Replica holds objects by name. They must not be changed. Make it with New; all methods but Run may be called at any time.
type Replica[T Object] struct {
	options Options[T]
	synced  atomic.Bool

	mu      sync.RWMutex
	objects map[string]T
}

// New makes a replica that is empty until it runs.
func New[T Object](o Options[T]) *Replica[T] { return &Replica[T]{options: o} }

// Run lists and watches until the context ends. It runs once.
func (r *Replica[T]) Run(ctx context.Context) {
	reflector := cache.NewReflectorWithOptions(r.options.Source, r.options.Example(), (*sink[T])(r), cache.ReflectorOptions{Name: r.options.Name})
	reflector.RunWithContext(ctx)
}

// Synced tells whether the first list is in.
func (r *Replica[T]) Synced() bool { return r.synced.Load() }

// Get returns an object.
func (r *Replica[T]) Get(name string) (object T, there bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	object, there = r.objects[name]
	return object, there
}

// List returns all objects in any order.
func (r *Replica[T]) List() []T {
	r.mu.RLock()
	defer r.mu.RUnlock()
	objects := make([]T, 0, len(r.objects))
	for _, object := range r.objects {
		objects = append(objects, object)
	}
	return objects
}

// Len is how many objects there are.
func (r *Replica[T]) Len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.objects)
}

// accept tells whether an object belongs here, and drops what nobody reads of it.
func (r *Replica[T]) accept(item any) (object T, belongs bool) {
	object, belongs = item.(T)
	if !belongs || object.GetNamespace() != r.options.Namespace {
		return object, false
	}
	if r.options.Slim != nil {
		r.options.Slim(object)
	}
	return object, true
}

// sink is the replica's face towards client-go.
type sink[T Object] Replica[T]

// Add implements cache.ReflectorStore.
func (s *sink[T]) Add(item any) error {
	object, belongs := (*Replica[T])(s).accept(item)
	if !belongs {
		return nil
	}
	s.mu.Lock()
	if s.objects == nil {
		s.objects = map[string]T{}
	}
	s.objects[object.GetName()] = object
	s.mu.Unlock()
	s.options.Event(object, false)
	return nil
}

// Update implements cache.ReflectorStore.
func (s *sink[T]) Update(item any) error { return s.Add(item) }

// Delete implements cache.ReflectorStore.
func (s *sink[T]) Delete(item any) error {
	object, belongs := (*Replica[T])(s).accept(item)
	if !belongs {
		return nil
	}
	s.mu.Lock()
	delete(s.objects, object.GetName())
	s.mu.Unlock()
	s.options.Event(object, true)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *sink[T]) Replace(items []any, _ string) error {
	var now map[string]T
	for _, item := range items {
		object, belongs := (*Replica[T])(s).accept(item)
		if !belongs {
			continue
		}
		if now == nil {
			now = make(map[string]T, len(items))
		}
		now[object.GetName()] = object
	}
	s.mu.Lock()
	before := s.objects
	s.objects = now
	s.mu.Unlock()
	for name, object := range before {
		if _, stays := now[name]; !stays {
			s.options.Event(object, true)
		}
	}
	for _, object := range now {
		s.options.Event(object, false)
	}
	if !s.synced.Swap(true) {
		s.options.Synced()
	}
	return nil
}

// Resync implements cache.ReflectorStore. It is never called, as no period is set.
func (s *sink[T]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: what a server streams as its first list is made small as it comes.
func (s *sink[T]) Transformer() cache.TransformFunc {
	return func(item any) (any, error) {
		if object, is := item.(T); is && s.options.Slim != nil {
			s.options.Slim(object)
		}
		return item, nil
	}
}
