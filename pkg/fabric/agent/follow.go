package agent

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"liqo.io/liqo/pkg/kube/freshness"
)

// Follower follows objects of one kind.
type Follower interface {
	// Run follows until the context ends.
	Run(ctx context.Context)
	// Synced tells whether the objects have been listed once.
	Synced() bool
}

// Objects are objects of one kind that are followed.
type Objects[T any] struct {
	store    cache.Store
	informer cache.Controller
}

// object is a pointer to a T that the API knows.
type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// Follow prepares to follow the objects of a resource in a namespace ("": all), or the one of a name. Changed is called after each change.
func Follow[T any, P object[T]](c *Cluster, resource schema.GroupVersionResource, namespace, name string, changed func()) *Objects[T] {
	source := cache.NewFilteredListWatchFromClient(c.clients[resource.GroupVersion()], resource.Resource, namespace, selecting(name))
	told := func(any) { changed() }
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: freshness.ListerWatcher(source),
		ObjectType:    P(new(T)),
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: told, UpdateFunc: func(_, after any) { told(after) }, DeleteFunc: told},
		Transform:     strip,
	})
	return &Objects[T]{store, informer}
}

// strip takes out what no agent looks at.
func strip(o any) (any, error) {
	if accessor, err := meta.Accessor(o); err == nil {
		accessor.SetManagedFields(nil)
		accessor.SetAnnotations(nil)
	}
	return o, nil
}

// Run follows until the context ends.
func (o *Objects[T]) Run(ctx context.Context) { o.informer.RunWithContext(ctx) }

// Synced tells whether the objects have been listed once.
func (o *Objects[T]) Synced() bool { return o.informer.HasSynced() }

// All are the objects, in the order of their namespaces and names. They are not to be changed.
func (o *Objects[T]) All() []T {
	stored := o.store.List()
	all := make([]T, 0, len(stored))
	for _, one := range slices.SortedFunc(slices.Values(stored), byName) {
		if typed, ok := one.(*T); ok {
			all = append(all, *typed)
		}
	}
	return all
}

// One is the object, where one is followed; nil if there is none. It is not to be changed.
func (o *Objects[T]) One() *T {
	for _, one := range o.store.List() {
		if typed, ok := one.(*T); ok {
			return typed
		}
	}
	return nil
}

func byName(a, b any) int {
	one, _ := meta.Accessor(a)
	other, _ := meta.Accessor(b)
	if one == nil || other == nil {
		return 0
	}
	return cmp.Or(cmp.Compare(one.GetNamespace(), other.GetNamespace()), cmp.Compare(one.GetName(), other.GetName()))
}
