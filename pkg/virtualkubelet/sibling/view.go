package sibling

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/reflection"
)

const nodeNameField = "spec.nodeName"

// view is what is known of the pods at one place.
type view struct {
	place
	options Options
	ctrl    cache.Controller
	ctx     context.Context
	cancel  context.CancelFunc
	// failing says that the pods cannot be followed at the moment: there may be others by now.
	failing atomic.Bool

	mu sync.Mutex
	// pods are what the pods use, by their name; users counts those that use an object.
	pods  map[string][]reflection.Reference
	users map[reflection.Reference]int
}

// user is a pod, as far as it matters here.
type user struct {
	// ObjectMeta has the namespace, the name and the version only.
	metav1.ObjectMeta
	uses []reflection.Reference
}

func newView(ctx context.Context, o Options, at place) *view {
	v := &view{place: at, options: o, pods: map[string][]reflection.Reference{}, users: map[reflection.Reference]int{}}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "namespace", at.namespace, "sibling", at.node)
	v.ctx, v.cancel = context.WithCancel(klog.NewContext(ctx, logger))
	_, v.ctrl = cache.NewInformerWithOptions(cache.InformerOptions{
		Logger: &logger, ListerWatcher: v.listerWatcher(), ObjectType: &corev1.Pod{}, Transform: v.slim, Handler: (*handler)(v),
	})
	return v
}

// run watches until the view is cancelled.
func (v *view) run() {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		select {
		case <-v.ctx.Done():
		case <-v.ctrl.HasSyncedChecker().Done():
			v.options.Changed(v.namespace, "", "")
		}
	})
	v.ctrl.RunWithContext(v.ctx)
}

// certain tells whether all pods at the place are known.
func (v *view) certain() bool {
	return !v.failing.Load() && v.ctx.Err() == nil && v.ctrl.HasSynced()
}

func (v *view) uses(object reflection.Reference) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.users[object] > 0
}

func (v *view) listerWatcher() cache.ListerWatcher {
	selector := fields.OneTermEqualSelector(nodeNameField, v.node).String()
	pods := v.options.Local.CoreV1().Pods(v.namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			list, err := pods.List(ctx, o)
			if err != nil {
				v.note(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			w, err := pods.Watch(ctx, o)
			v.note(err)
			return w, err
		},
	}, v.options.Local)
}

// note keeps in mind whether the pods can be followed: a list is followed by a watch, so it is the watch that ends a failure.
func (v *view) note(err error) {
	if v.ctx.Err() != nil {
		return
	}
	before := v.failing.Swap(err != nil)
	switch {
	case err != nil && !before:
		klog.FromContext(v.ctx).Error(err,
			"What pods on another virtual node of the provider use is not known; with policy Referenced nothing is removed for lack of use")
	case err == nil && before:
		v.options.Changed(v.namespace, "", "")
	}
}

// slim makes a pod a user. The API server was asked for pods on the sibling only; whoever else it sends uses nothing.
func (v *view) slim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	u := &user{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion}}
	if pod.Spec.NodeName == v.node && pod.Namespace == v.namespace {
		u.uses = reflection.References(&pod.Spec)
	}
	return u, nil
}

// enter takes note of what a pod uses from now on, and tells of it.
func (v *view) enter(name string, after []reflection.Reference) {
	v.mu.Lock()
	before := v.pods[name]
	if v.pods[name] = after; len(after) == 0 {
		delete(v.pods, name)
	}
	for _, object := range after {
		v.users[object]++
	}
	for _, object := range before {
		if v.users[object]--; v.users[object] == 0 {
			delete(v.users, object)
		}
	}
	v.mu.Unlock()
	if slices.Equal(before, after) {
		return
	}
	for _, object := range slices.Concat(before, after) {
		v.options.Changed(v.namespace, object.Kind, object.Name)
	}
}

// handler is the view's face towards client-go.
type handler view

// OnAdd implements cache.ResourceEventHandler.
func (h *handler) OnAdd(object any, _ bool) { h.OnUpdate(nil, object) }

// OnUpdate implements cache.ResourceEventHandler.
func (h *handler) OnUpdate(_, after any) {
	if u, ok := after.(*user); ok {
		(*view)(h).enter(u.Name, u.uses)
	}
}

// OnDelete implements cache.ResourceEventHandler. A deletion that was missed comes as a tombstone.
func (h *handler) OnDelete(object any) {
	if tombstone, missed := object.(cache.DeletedFinalStateUnknown); missed {
		object = tombstone.Obj
	}
	if u, ok := object.(*user); ok {
		(*view)(h).enter(u.Name, nil)
	}
}
