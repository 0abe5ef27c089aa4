package main

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/freshness"
)

// watchOne calls changed with the one object of that name, at first and on each change, until the context ends. While there
// is none it keeps silent: what was known stays valid.
func watchOne[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, namespace, name string, changed func(T)) {
	notify := func(o any) {
		if typed, ok := o.(T); ok && typed.GetName() == name {
			changed(typed)
		}
	}
	_, informer := newInformer(c, object, list, namespace, fields.OneTermEqualSelector(metav1.ObjectNameField, name),
		cache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, after any) { notify(after) }})
	informer.RunWithContext(ctx)
}

// watchAll calls changed with all objects of a namespace, once they are known and on each change, until the context ends.
func watchAll[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, namespace string, changed func([]T)) {
	var store cache.Store
	var informer cache.Controller
	var mu sync.Mutex
	tell := func(any) {
		mu.Lock()
		defer mu.Unlock()
		if !informer.HasSynced() {
			return
		}
		all := make([]T, 0, len(store.List()))
		for _, o := range store.List() {
			all = append(all, o.(T))
		}
		changed(all)
	}
	mu.Lock()
	store, informer = newInformer(c, object, list, namespace, fields.Everything(),
		cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, after any) { tell(after) }, DeleteFunc: tell})
	mu.Unlock()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		select {
		case <-ctx.Done():
		case <-informer.HasSyncedChecker().Done():
			tell(nil)
		}
	})
	informer.RunWithContext(ctx)
}

func newInformer(c client.WithWatch, object client.Object, list client.ObjectList, namespace string, selector fields.Selector,
	handler cache.ResourceEventHandler,
) (cache.Store, cache.Controller) {
	options := func(o *metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: namespace, FieldSelector: selector, Raw: o}
	}
	return cache.NewInformerWithOptions(cache.InformerOptions{
		// Settings of the past would take copies away that are wanted by now.
		ListerWatcher: freshness.ListerWatcher(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				into := list.DeepCopyObject().(client.ObjectList)
				return into, c.List(ctx, into, options(&o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), options(&o))
			},
		}, c)),
		ObjectType: object,
		Handler:    handler,
	})
}
