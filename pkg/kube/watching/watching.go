// Package watching calls somebody with an object, or with all of a namespace, as they are now and whenever they change.
package watching

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/freshness"
	"liqo.io/liqo/pkg/kube/selection"
)

// One calls changed with the one object of that name, at first and on each change, until the context ends. While there
// is none it keeps silent: what was known stays valid.
func One[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, namespace, name string, changed func(T)) {
	notify := func(o any) {
		if typed, ok := o.(T); ok && typed.GetName() == name {
			changed(typed)
		}
	}
	_, informer := newInformer(c, object, list, namespace, selection.Named(name),
		cache.ResourceEventHandlerFuncs{AddFunc: notify, UpdateFunc: func(_, after any) { notify(after) }})
	informer.RunWithContext(ctx)
}

// All calls changed with all objects of a namespace, once they are known and on each change, until the context ends.
func All[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, namespace string, changed func([]T)) {
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
	store, informer = newInformer(c, object, list, namespace, selection.Selector{},
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

func newInformer(c client.WithWatch, object client.Object, list client.ObjectList, namespace string, s selection.Selector,
	handler cache.ResourceEventHandler,
) (cache.Store, cache.Controller) {
	empty := func() client.ObjectList { return list.DeepCopyObject().(client.ObjectList) }
	source := selection.ListerWatcher(s, func(ctx context.Context, o metav1.ListOptions) (client.ObjectList, error) {
		into := empty()
		return into, c.List(ctx, into, &client.ListOptions{Namespace: namespace, Raw: &o})
	}, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return c.Watch(ctx, empty(), &client.ListOptions{Namespace: namespace, Raw: &o})
	}, c)
	// Settings of the past would take copies away that are wanted by now.
	return cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: freshness.ListerWatcher(source), ObjectType: object, Handler: handler})
}
