package mirror

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/watchlist"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/reflection"
)

// scope says which objects are watched, and by whom.
type scope struct {
	client    func() (client.WithWatch, error)
	newObject func() reflection.Object
	newList   func() reflection.ObjectList
	namespace string
	// name limits the watch to one object, labels to those that carry them.
	name   string
	labels labels.Selector
	// limit is how many objects are accepted; zero sets none and lets the server stream the first list.
	limit int
	// budget bounds with it how many bytes all bounded watches hold; that of an unbounded one says how much they are expected to hold.
	budget *replica.Budget
	// overLimit is called when there are more.
	overLimit func()
	// event is called for each event, one after the other, before the first list is in and after.
	event func(object reflection.Object, deleted bool)
	// missed, if given, is called in place of event for each object that a list does not show any more.
	missed func(object reflection.Object)
	// synced is called once the first list is in.
	synced func()
	// failed is called with each failure to list or watch, and with nil once that is over.
	failed func(err error)
}

// watched holds the objects that a watch shows.
type watched struct {
	scope
	replica *replica.Replica[reflection.Object]
	// ctx and cancel are there once the watch was started; finished is closed when everything that it started has ended.
	ctx      context.Context
	cancel   context.CancelFunc
	finished chan struct{}
	// failure is why the last list or watch failed.
	failure atomic.Pointer[string]
}

// newWatched makes a cache whose watch has not started yet: its events may need the very value that is returned here. Before it
// starts it takes next to nothing, because many never do.
func newWatched(s scope) *watched {
	w := &watched{scope: s}
	w.replica = replica.New(replica.Options[reflection.Object]{
		Name: "reflection", Namespace: s.namespace, Source: (*source)(w),
		Example: func() runtime.Object { return s.newObject() },
		Event:   func(_, object reflection.Object, deleted bool) { s.event(object, deleted) },
		Missed:  s.missed, Synced: s.synced, Slim: strip, Limit: s.limit, Budget: s.budget, Over: s.overLimit,
	})
	return w
}

// start starts the watch, once; it ends with the context or with cancel.
func (w *watched) start(ctx context.Context) {
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.finished = make(chan struct{})
	go func() {
		defer close(w.finished)
		w.replica.Run(w.ctx)
	}()
}

// source is the watch's face towards client-go.
type source watched

// ListWithContext implements cache.ListerWatcherWithContext.
func (s *source) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return (*watched)(s).list(ctx, o)
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (s *source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return (*watched)(s).watch(ctx, o)
}

// List implements cache.ListerWatcher.
func (s *source) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(s.ctx, o)
}

// Watch implements cache.ListerWatcher.
func (s *source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(s.ctx, o)
}

// IsWatchListSemanticsUnSupported tells client-go to list page by page instead of having the server stream the first list: from
// peers, and from clients that cannot stream.
func (s *source) IsWatchListSemanticsUnSupported() bool {
	if s.limit > 0 {
		return true
	}
	c, err := s.client()
	return err != nil || watchlist.DoesClientNotSupportWatchListSemantics(c)
}

func (w *watched) listOptions(raw metav1.ListOptions) *client.ListOptions {
	options := &client.ListOptions{Namespace: w.namespace, LabelSelector: w.labels, Raw: &raw, Limit: raw.Limit, Continue: raw.Continue}
	if w.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.name)
	}
	return options
}

// list reads all objects; from a peer in pages, from its storage rather than a cache that may lag, and not too many.
func (w *watched) list(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
	list, err := w.pages(ctx, raw)
	w.note(err)
	return list, err
}

func (w *watched) pages(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
	c, err := w.client()
	if err != nil {
		return nil, err
	}
	all := w.newList()
	if w.limit == 0 {
		return all, c.List(ctx, all, w.listOptions(raw))
	}
	items, version, err := w.replica.Pages(ctx, raw, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page := w.newList()
		return page, c.List(ctx, page, w.listOptions(o))
	})
	if err != nil {
		return nil, fmt.Errorf("listing %T in remote namespace %q: %w", w.newObject(), w.namespace, err)
	}
	all.SetResourceVersion(version)
	return all, meta.SetList(all, items)
}

func (w *watched) watch(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
	c, err := w.client()
	if err != nil {
		w.note(err)
		return nil, err
	}
	result, err := c.Watch(ctx, w.newList(), w.listOptions(raw))
	w.note(err)
	return result, err
}

// note keeps the last failure, and tells of it.
func (w *watched) note(err error) {
	if err == nil {
		if w.failure.Swap(nil) != nil {
			w.failed(nil)
		}
		return
	}
	if w.ctx.Err() != nil {
		return
	}
	message := err.Error()
	w.failure.Store(&message)
	w.failed(err)
}

// ready tells whether the first list is in.
func (w *watched) ready() bool { return w.replica.Synced() }

// get returns a cached object, which must not be changed; nil if there is none.
func (w *watched) get(name string) reflection.Object {
	object, there := w.replica.Get(name)
	if !there {
		return nil
	}
	return object
}

// all returns the cached objects, which must not be changed.
func (w *watched) all() []reflection.Object { return w.replica.List() }

func (w *watched) names() []string {
	var names []string
	for _, object := range w.all() {
		names = append(names, object.GetName())
	}
	return names
}

// wait returns when a cancelled watch has ended.
func (w *watched) wait() { <-w.finished }

func (w *watched) ended() bool {
	select {
	case <-w.finished:
		return true
	default:
		return false
	}
}

// strip drops what is never compared nor reflected, to save memory.
func strip(o reflection.Object) {
	o.SetManagedFields(nil)
	if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(annotations)
	}
}
