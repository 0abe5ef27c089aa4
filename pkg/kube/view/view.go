// Package view follows the objects of one kind in one namespace by a client of controller-runtime, and says why it does not.
package view

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/selection"
)

// Source says which objects are followed, and by whom.
type Source struct {
	// Client of the cluster, which may change from call to call at a peer; that of this cluster never fails.
	Client    func() (client.WithWatch, error)
	NewObject func() runtime.Object
	NewList   func() client.ObjectList
	Namespace string
	// Name limits the view to one object, Labels to those that carry them.
	Name   string
	Labels labels.Selector
	// Bounded reads page by page what a peer shows, as replica.Options have Page and Watch; otherwise lists may be streamed.
	Bounded bool
	// Failed is called with each failure to list or watch, and with nil once that is over.
	Failed func(error)
}

// View holds the objects by name. Make it with New.
type View[T replica.Object] struct {
	*replica.Replica[T]
	source Source
	// ctx and cancel are there once the view was started; finished is closed when everything that it started has ended.
	ctx      context.Context
	cancel   context.CancelFunc
	finished chan struct{}
	failure  atomic.Pointer[string]
}

// New makes a view that is not followed yet. Until it is it takes next to nothing, because many never are. The options are those of the
// replica beside what the source says.
func New[T replica.Object](s Source, o replica.Options[T]) *View[T] {
	v := &View[T]{source: s}
	o.Namespace, o.Example = s.Namespace, s.NewObject
	if s.Bounded {
		o.Page, o.Watch = v.list, v.watch
	} else {
		local, _ := s.Client()
		o.Source = selection.ListerWatcher(selection.Selector{}, v.list, v.watch, local)
	}
	v.Replica = replica.New(o)
	return v
}

// Start has the view followed, once; it ends with the context or with Stop.
func (v *View[T]) Start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	v.ctx, v.cancel = ctx, cancel
	v.finished = make(chan struct{})
	go func() {
		defer close(v.finished)
		defer cancel()
		v.Run(ctx)
	}()
}

// Stop ends a view that was started, and gives back at once what it holds of its budget. It does not wait.
func (v *View[T]) Stop() {
	v.cancel()
	v.Release()
}

// Wait returns when a view that was started has ended.
func (v *View[T]) Wait() { <-v.finished }

// Ended tells whether it has.
func (v *View[T]) Ended() bool {
	select {
	case <-v.finished:
		return true
	default:
		return false
	}
}

// Failure is why the objects could not be followed the last time; false if they are.
func (v *View[T]) Failure() (why string, failing bool) {
	if failure := v.failure.Load(); failure != nil {
		return *failure, true
	}
	return "", false
}

// Of returns an object, which must not be changed; the zero value if there is none.
func (v *View[T]) Of(name string) T {
	object, _ := v.Get(name)
	return object
}

// Names are those of all objects.
func (v *View[T]) Names() []string {
	var names []string
	for _, object := range v.List() {
		names = append(names, object.GetName())
	}
	return names
}

func (v *View[T]) options(raw metav1.ListOptions) *client.ListOptions {
	s := &v.source
	options := &client.ListOptions{Namespace: s.Namespace, LabelSelector: s.Labels, Raw: &raw, Limit: raw.Limit, Continue: raw.Continue}
	if s.Name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.Name)
	}
	return options
}

func (v *View[T]) list(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
	list := v.source.NewList()
	c, err := v.source.Client()
	if err == nil {
		err = c.List(ctx, list, v.options(raw))
		if err != nil && v.source.Bounded {
			err = fmt.Errorf("listing %T in remote namespace %q: %w", v.source.NewObject(), v.source.Namespace, err)
		}
	}
	switch {
	case errors.Is(err, reconcile.ErrOversized): // less is asked for
	case err == nil && list.GetContinue() != "": // the next page may fail
	default:
		v.note(err)
	}
	return list, err
}

func (v *View[T]) watch(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
	c, err := v.source.Client()
	if err != nil {
		v.note(err)
		return nil, err
	}
	result, err := c.Watch(ctx, v.source.NewList(), v.options(raw))
	v.note(err)
	return result, err
}

// note keeps the last failure, and tells of it.
func (v *View[T]) note(err error) {
	if err == nil {
		if v.failure.Swap(nil) != nil {
			v.source.Failed(nil)
		}
		return
	}
	if v.ctx.Err() != nil {
		return
	}
	message := err.Error()
	v.failure.Store(&message)
	v.source.Failed(err)
}
