// Package watch says, for the watches of controllers, which events count, and which objects are looked at because of them.
//
// Where, Labelled, Changed and Later are predicates. One, Each and All are handlers: the first finds one object by its key, the others find
// all objects of a list, or those that options select. Beside the API's own options there is If, which looks at the whole object.
package watch

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Later leaves out objects that come, as all do when a controller starts.
var Later predicate.Predicate = predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}

// Where passes the objects of which is is true; of an update it asks the new state.
func Where[T client.Object](is func(T) bool) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return holds(is, o) })
}

// Labelled passes the objects that have a label with a value.
func Labelled(key, value string) predicate.Predicate {
	return Where(func(o client.Object) bool { return o.GetLabels()[key] == value })
}

// Changed passes changes of what read returns of an object, compared as API objects are. An object of which it returns nil is as good as none:
// nobody is told when it comes or goes.
func Changed[T client.Object](read func(T) any) predicate.Predicate {
	passes := Where(func(o T) bool { return read(o) != nil })
	return predicate.Funcs{
		CreateFunc: passes.Create, DeleteFunc: passes.Delete, GenericFunc: passes.Generic,
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(T)
			after, typed := e.ObjectNew.(T)
			return ok && typed && !equality.Semantic.DeepEqual(read(before), read(after))
		},
	}
}

// One looks at the object whose key of returns; at none if it has no name.
func One[T client.Object](of func(T) client.ObjectKey) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		if typed, ok := o.(T); ok {
			if key := of(typed); key.Name != "" {
				return []ctrl.Request{{NamespacedName: key}}
			}
		}
		return nil
	})
}

// Each looks at the objects of a list that the options select which of returns; at none if it returns none.
func Each[T client.Object](reader client.Reader, list client.ObjectList, of func(T) []client.ListOption) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		if typed, ok := o.(T); ok {
			if options := of(typed); len(options) > 0 {
				return Requests(ctx, reader, list, options...)
			}
		}
		return nil
	})
}

// All looks at the objects of a list that the options select, whatever it was that changed.
func All(reader client.Reader, list client.ObjectList, options ...client.ListOption) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request {
		return Requests(ctx, reader, list, options...)
	})
}

// Requests are those for the objects of a list that the options select. If they cannot be listed, the log says so, and there are none.
func Requests(ctx context.Context, reader client.Reader, list client.ObjectList, options ...client.ListOption) (requests []ctrl.Request) {
	found := list.DeepCopyObject().(client.ObjectList)
	// The objects are only looked at.
	if err := reader.List(ctx, found, append(slices.Clip(options), client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the objects that are concerned", "list", fmt.Sprintf("%T", found))
		return nil
	}
	_ = meta.EachListItem(found, func(item runtime.Object) error {
		if o := item.(client.Object); selected(o, options) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
		return nil
	})
	return requests
}

// If selects the objects of which is is true, which must not change them. It is an option of this package's functions alone.
func If[T client.Object](is func(T) bool) client.ListOption {
	return condition(func(o client.Object) bool { return holds(is, o) })
}

// condition is an option that the API does not have.
type condition func(client.Object) bool

// ApplyToList implements client.ListOption.
func (condition) ApplyToList(*client.ListOptions) {}

func selected(o client.Object, options []client.ListOption) bool {
	return !slices.ContainsFunc(options, func(option client.ListOption) bool {
		is, ok := option.(condition)
		return ok && !is(o)
	})
}

func holds[T client.Object](is func(T) bool, o client.Object) bool {
	typed, ok := o.(T)
	return ok && is(typed)
}
