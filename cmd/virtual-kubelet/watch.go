package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchOne calls changed with the one object of that name, at first and on each change, until the context ends. While there
// is none it keeps silent: what was known stays valid.
func watchOne[T client.Object](ctx context.Context, c client.WithWatch, object T, list client.ObjectList, namespace, name string, changed func(T)) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name)
	options := func(o *metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: namespace, FieldSelector: selector, Raw: o}
	}
	notify := func(o any) {
		if typed, ok := o.(T); ok && typed.GetName() == name {
			changed(typed)
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				into := list.DeepCopyObject().(client.ObjectList)
				return into, c.List(ctx, into, options(&o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), options(&o))
			},
		}, c),
		ObjectType: object,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: notify, UpdateFunc: func(_, after any) { notify(after) },
		},
	})
	informer.RunWithContext(ctx)
}
