// Package selection follows some of the objects of a resource: those that the API server selects, so that nothing else is sent and,
// where a selector is what a role or an authorizer asks for, nothing else is asked for.
package selection

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Selector says which objects are followed, in Kubernetes' words. An empty one selects all.
type Selector struct{ Labels, Fields string }

// Named selects the one object of a name.
func Named(name string) Selector { return Where(metav1.ObjectNameField, name) }

// Where selects the objects whose field has a value.
func Where(field, value string) Selector {
	return Selector{Fields: fields.OneTermEqualSelector(field, value).String()}
}

// Labelled selects by labels.
func Labelled(selector string) Selector { return Selector{Labels: selector} }

// Lister lists objects, as the List of a typed or dynamic client does.
type Lister[L runtime.Object] func(context.Context, metav1.ListOptions) (L, error)

// Watcher watches them, as its Watch does.
type Watcher func(context.Context, metav1.ListOptions) (watch.Interface, error)

// ListerWatcher lists and watches the selected objects. Client is the one that both are of: it says whether lists can be streamed.
func ListerWatcher[L runtime.Object](s Selector, list Lister[L], follow Watcher, client any) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: List(s, list), WatchFuncWithContext: Watch(s, follow)}, client)
}

// List lists the selected objects.
func List[L runtime.Object](s Selector, list Lister[L]) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.LabelSelector, o.FieldSelector = s.Labels, s.Fields
		return list(ctx, o)
	}
}

// Watch watches them.
func Watch(s Selector, follow Watcher) func(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector, o.FieldSelector = s.Labels, s.Fields
		return follow(ctx, o)
	}
}
