// Package replica keeps in memory what a watch of one namespace shows. It does what an informer of client-go does for one
// listener, on client-go's Reflector, with half of its goroutines and without its queues: there is one for each kind in each
// offloaded namespace, most of them of nothing.
package replica

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Object is what a replica holds: the objects that are watched, or what Options.Hold makes of them.
type Object interface {
	GetName() string
	GetNamespace() string
}

// Options of a Replica. All but Missed, Hold, Slim, PageSize and the bounds must be given.
type Options[T Object] struct {
	// Name for logs.
	Name string
	// Namespace is where the objects are. Whatever else the server sends is left out.
	Namespace string
	// Source lists and watches. In its place, Page and Watch follow a server that is not trusted: it is read as by Pages.
	Source cache.ListerWatcher
	Page   func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch  func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Streams lets the server of Page and Watch stream the first list, if it can: what it streams is counted as it comes.
	Streams bool
	// Soon has what fails tried again within ten seconds in place of a minute. It is for this cluster, where rights in a new namespace may
	// come late.
	Soon bool
	// PageSize is how many objects are read at a time; zero means 100.
	PageSize int64
	// Example makes an object of the type that is watched.
	Example func() runtime.Object
	// Event is called for each object that comes, changes or goes, one after the other, before the first list is in and after. A
	// list that is read anew shows all objects again. The replica holds what Event is told; before is what it held of the object
	// until then, the zero value if it did not.
	Event func(before, object T, deleted bool)
	// Missed is called in place of Event for each object that was held and that a list does not show any more: nobody saw it go. Nil has
	// Event told of it as of one that was deleted.
	Missed func(object T)
	// Synced is called once, when the first list is in and was told.
	Synced func()
	// Hold makes of an object that is watched what is held of it, unless it cannot; nil holds the object itself.
	Hold func(watched any) (held T, ok bool)
	// Slim drops of an object what nobody reads; nil keeps all.
	Slim func(T)
	// Limit is how many objects are held at most, and Budget how many bytes, together with all others that share it; zero and nil set
	// no bounds. With either, Over is called when there are more: those are not held, so who made the replica is to end it.
	Limit  int
	Budget *Budget
	Over   func()
}

// Replica holds objects by name. They must not be changed. Make it with New; all methods but Run may be called at any time.
type Replica[T Object] struct {
	options Options[T]
	synced  atomic.Bool

	mu      sync.RWMutex
	objects map[string]T
	// charged is what the budget was charged for the objects.
	charged int64
}

// New makes a replica that is empty until it runs.
func New[T Object](o Options[T]) *Replica[T] {
	r := &Replica[T]{options: o}
	if o.Source == nil {
		r.options.Source = paged{&cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: o.Watch}, o.Streams}
	}
	return r
}

// Run lists and watches until the context ends. It runs once.
func (r *Replica[T]) Run(ctx context.Context) {
	defer r.Release()
	options := cache.ReflectorOptions{Name: r.options.Name}
	if r.options.Soon {
		options.Backoff = &wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 6, Cap: 5 * time.Second}
	}
	reflector := cache.NewReflectorWithOptions(r.options.Source, r.options.Example(), (*sink[T])(r), options)
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

// accept tells whether an object belongs here, and makes what is held of it.
func (r *Replica[T]) accept(item any) (object T, belongs bool) {
	object, belongs = r.held(item)
	return object, belongs && object.GetNamespace() == r.options.Namespace
}

// held is what is held of an object, or of what was made so before.
func (r *Replica[T]) held(item any) (object T, is bool) {
	item = unbox(item)
	if object, is = item.(T); !is && r.options.Hold != nil {
		object, is = r.options.Hold(item)
	}
	if is && r.options.Slim != nil {
		r.options.Slim(object)
	}
	return object, is
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
	before, there := s.objects[object.GetName()]
	fits := (*Replica[T])(s).charge(before, there, object)
	if fits {
		s.objects[object.GetName()] = object
	}
	s.mu.Unlock()
	if !fits {
		s.options.Over()
		return nil
	}
	s.options.Event(before, object, false)
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
	before, there := s.objects[object.GetName()]
	if there && s.options.Budget != nil {
		(*Replica[T])(s).take(-weight(before))
	}
	delete(s.objects, object.GetName())
	s.mu.Unlock()
	s.options.Event(before, object, true)
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
	fits := (*Replica[T])(s).chargeAll(now)
	if fits {
		s.objects = now
	}
	s.mu.Unlock()
	if !fits {
		s.options.Over()
		return ErrOverLimit
	}
	for name, object := range before {
		switch _, stays := now[name]; {
		case stays:
		case s.options.Missed != nil:
			s.options.Missed(object)
		default:
			s.options.Event(object, object, true)
		}
	}
	for name, object := range now {
		s.options.Event(before[name], object, false)
	}
	if !s.synced.Swap(true) {
		s.options.Synced()
	}
	return nil
}

// Resync implements cache.ReflectorStore. It is never called, as no period is set.
func (s *sink[T]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: what a server streams as its first list is made small as it comes, and counted,
// because it takes the place of what is held only once it is complete.
func (s *sink[T]) Transformer() cache.TransformFunc {
	r := (*Replica[T])(s)
	var objects int
	var weighs int64
	return func(item any) (any, error) {
		object, is := r.held(item)
		if !is {
			return item, nil
		}
		if objects++; r.options.Budget != nil {
			weighs += weight(object)
		}
		if !r.room(objects, weighs) {
			r.options.Over()
			return nil, ErrOverLimit
		}
		return object, nil
	}
}
