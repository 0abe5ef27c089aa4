package storage

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// area is one offloaded namespace: its claims, and, where there is a use for it, a view of those in its twin.
type area struct {
	namespace, twin string
	locals          cache.SharedIndexInformer
	ctx             context.Context
	cancel          context.CancelFunc
	group           sync.WaitGroup
	// view of the twin; nil until it is opened. The Reconciler locks.
	view *view
}

// view is what is known of the claims in one twin during one period of connection.
type view struct {
	epoch  int64
	kube   kubernetes.Interface
	claims cache.SharedIndexInformer
	ctx    context.Context
	cancel context.CancelFunc
}

func (v *view) ready() bool { return v.claims.HasSynced() && v.ctx.Err() == nil }

// remotes lists the claims of the twin that came from here.
func (v *view) remotes() []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, object := range v.claims.GetStore().List() {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && len(claims) < maxClaims {
			claims = append(claims, claim)
		}
	}
	return claims
}

func (v *view) remote(namespace, name string) *corev1.PersistentVolumeClaim {
	object, _, _ := v.claims.GetStore().GetByKey(namespace + "/" + name)
	claim, _ := object.(*corev1.PersistentVolumeClaim)
	return claim
}

func (a *area) local(name string) *corev1.PersistentVolumeClaim {
	object, _, _ := a.locals.GetStore().GetByKey(a.namespace + "/" + name)
	claim, _ := object.(*corev1.PersistentVolumeClaim)
	return claim
}

func newInformer(kube kubernetes.Interface, namespace string, selector labels.Selector) cache.SharedIndexInformer {
	claims := kube.CoreV1().PersistentVolumeClaims(namespace)
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector.String()
			return claims.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector.String()
			return claims.Watch(ctx, o)
		},
	}, kube), &corev1.PersistentVolumeClaim{}, 0, nil)
	// The transform cannot fail to be set before the informer runs.
	_ = informer.SetTransform(func(object any) (any, error) {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
			claim.ManagedFields = nil
		}
		return object, nil
	})
	return informer
}

// each calls f with the claim of every event.
func each(f func(*corev1.PersistentVolumeClaim)) cache.ResourceEventHandler {
	of := func(object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
			f(claim)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: of, UpdateFunc: func(_, after any) { of(after) }, DeleteFunc: of}
}

// align watches exactly the namespaces of the mapping, and their twins while the provider answers.
func (r *Reconciler) align(ctx context.Context) {
	state := r.options.Peer.State()
	r.mu.Lock()
	var ended, opened []*area
	var reopened []*area
	for namespace, a := range r.areas {
		if r.mapping[namespace] != a.twin {
			ended = append(ended, a)
			delete(r.areas, namespace)
			continue
		}
		if a.view != nil && (!state.Connected || a.view.epoch != state.Epoch) {
			a.view.cancel()
			a.view = nil
		}
		if a.view == nil && state.Connected {
			reopened = append(reopened, a)
		}
	}
	for namespace, twin := range r.mapping {
		if r.areas[namespace] == nil {
			a := &area{namespace: namespace, twin: twin, locals: newInformer(r.options.Local, namespace, labels.Everything())}
			a.ctx, a.cancel = context.WithCancel(ctx)
			r.areas[namespace] = a
			opened = append(opened, a)
		}
	}
	r.mu.Unlock()
	for _, a := range ended {
		a.cancel()
	}
	for _, a := range opened {
		r.follow(a)
	}
	for _, a := range reopened {
		r.queue.Add(key{Namespace: a.namespace})
	}
}

// follow watches the claims of a namespace.
func (r *Reconciler) follow(a *area) {
	_, _ = a.locals.AddEventHandler(each(func(claim *corev1.PersistentVolumeClaim) {
		if reflection.OwnClaim(claim) {
			r.queue.Add(key{Namespace: claim.Namespace, Name: claim.Name})
		}
	}))
	a.group.Go(func() { a.locals.RunWithContext(a.ctx) })
	a.group.Go(func() {
		if cache.WaitForCacheSync(a.ctx.Done(), a.locals.HasSynced) {
			r.queue.Add(key{Namespace: a.namespace})
			r.enqueueAll(a)
		}
	})
}

// closeAll ends all watches.
func (r *Reconciler) closeAll() {
	r.mu.Lock()
	areas := r.areas
	r.areas = map[string]*area{}
	r.mu.Unlock()
	for _, a := range areas {
		a.cancel()
		a.group.Wait()
	}
}

func (r *Reconciler) viewOf(a *area) *view {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.view
}

// open watches the twin of a namespace, if the provider answers.
func (r *Reconciler) open(a *area) {
	state := r.options.Peer.State()
	clients, err := r.options.Peer.Clients()
	if err != nil || !state.Connected {
		return // The connection is an event.
	}
	selector := labels.SelectorFromSet(labels.Set{
		offloadingv1beta1.OriginLabel: r.options.Home, offloadingv1beta1.DestinationLabel: r.options.Remote,
	})
	v := &view{epoch: state.Epoch, kube: clients.Kube, claims: newInformer(clients.Kube, a.twin, selector)}
	r.mu.Lock()
	if a.view != nil || a.ctx.Err() != nil {
		r.mu.Unlock()
		return
	}
	v.ctx, v.cancel = context.WithCancel(a.ctx)
	a.view = v
	r.mu.Unlock()
	_, _ = v.claims.AddEventHandler(each(func(claim *corev1.PersistentVolumeClaim) { r.queue.Add(localKey(a, claim)) }))
	a.group.Go(func() { v.claims.RunWithContext(v.ctx) })
	a.group.Go(func() {
		if cache.WaitForCacheSync(v.ctx.Done(), v.claims.HasSynced) {
			r.enqueueAll(a)
			for _, claim := range v.remotes() {
				r.queue.Add(localKey(a, claim))
			}
		}
	})
}

// localKey names the claim that a claim at the provider stands for, as far as it says so.
func localKey(a *area, remote *corev1.PersistentVolumeClaim) key {
	if namespace, name, ok := reflection.VirtualClaim(remote); ok && namespace == a.namespace {
		return key{Namespace: namespace, Name: name}
	}
	return key{Namespace: a.namespace, Name: remote.Name}
}

func (r *Reconciler) enqueueAll(a *area) {
	for _, object := range a.locals.GetStore().List() {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && reflection.OwnClaim(claim) {
			r.queue.Add(key{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
}

// survey looks whether the twin holds claims that came from here, although there may be none at home any more.
func (r *Reconciler) survey(ctx context.Context, a *area, v *view) error {
	if v != nil || !r.options.Peer.State().Connected {
		return nil
	}
	clients, err := r.options.Peer.Clients()
	if err != nil {
		return nil // The connection is an event.
	}
	list, err := clients.Kube.CoreV1().PersistentVolumeClaims(a.twin).List(ctx, metav1.ListOptions{
		LabelSelector: offloadingv1beta1.OriginLabel + "=" + r.options.Home + "," + offloadingv1beta1.DestinationLabel + "=" + r.options.Remote, Limit: 1,
	})
	if err != nil {
		return fmt.Errorf("listing the claims in namespace %q of cluster %q: %w", a.twin, r.options.Remote, err)
	}
	if len(list.Items) > 0 {
		r.open(a)
	}
	r.enqueueAll(a)
	return nil
}
