package storage

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/selection"
	"liqo.io/liqo/pkg/reflection"
)

// area is one offloaded namespace: its claims, and, where there is a use for it, a view of those in its twin.
type area struct {
	namespace, twin string
	locals          *claims
	ctx             context.Context
	cancel          context.CancelFunc
	group           sync.WaitGroup
	// view of the twin; nil until it is opened. The Reconciler locks.
	view *view
	// shut is until when the twin is not watched, because it held more than is accepted. The Reconciler locks.
	shut time.Time
}

func (a *area) local(name string) *corev1.PersistentVolumeClaim {
	claim, _ := a.locals.Get(name)
	return claim
}

// claims are those of one namespace.
type claims = replica.Replica[*corev1.PersistentVolumeClaim]

// newClaims calls event with each claim of this cluster that comes, changes or goes, and synced once all are known.
func newClaims(kube kubernetes.Interface, namespace string, event func(*corev1.PersistentVolumeClaim), synced func()) *claims {
	claims := kube.CoreV1().PersistentVolumeClaims(namespace)
	return replica.New(replica.Options[*corev1.PersistentVolumeClaim]{
		Name: "storage", Namespace: namespace, Synced: synced,
		Example: func() runtime.Object { return &corev1.PersistentVolumeClaim{} },
		Source:  selection.ListerWatcher(selection.Selector{}, claims.List, claims.Watch, kube),
		Event:   func(_, claim *corev1.PersistentVolumeClaim, _ bool) { event(claim) },
		Slim:    func(claim *corev1.PersistentVolumeClaim) { claim.ManagedFields = nil },
	})
}

// align watches exactly the namespaces of the mapping, and their twins while the provider answers.
func (r *Reconciler) align(ctx context.Context) {
	state := r.options.Peer.State()
	mapping := r.options.Wanted.Get().Mapping
	r.mu.Lock()
	var ended, opened []*area
	var reopened []*area
	for namespace, a := range r.areas {
		if mapping[namespace] != a.twin {
			ended = append(ended, a)
			if a.view != nil {
				a.view.end()
			}
			delete(r.areas, namespace)
			r.told.Range(func(k, _ any) bool {
				if k.(key).Namespace == namespace {
					r.told.Delete(k)
				}
				return true
			})
			maps.DeleteFunc(r.kept, func(k key, _ map[string]reflection.VolumeHandle) bool { return k.Namespace == namespace })
			continue
		}
		if a.view != nil && (!state.Connected || a.view.epoch != state.Epoch) {
			a.view.end()
			a.view = nil
		}
		if a.view == nil && state.Connected {
			reopened = append(reopened, a)
		}
	}
	for namespace, twin := range mapping {
		if r.areas[namespace] == nil {
			a := r.newArea(ctx, namespace, twin)
			r.areas[namespace] = a
			opened = append(opened, a)
		}
	}
	r.mu.Unlock()
	for _, a := range ended {
		a.cancel()
	}
	for _, a := range opened {
		a.group.Go(func() { a.locals.Run(a.ctx) })
	}
	for _, a := range reopened {
		r.queue.Add(key{Namespace: a.namespace})
	}
	r.enqueueWaiting()
}

// newArea prepares the watch of the claims of a namespace.
func (r *Reconciler) newArea(ctx context.Context, namespace, twin string) *area {
	a := &area{namespace: namespace, twin: twin}
	a.ctx, a.cancel = context.WithCancel(ctx)
	a.locals = newClaims(r.options.Local, namespace, func(claim *corev1.PersistentVolumeClaim) {
		if reflection.OwnClaim(claim) {
			r.queue.Add(key{Namespace: claim.Namespace, Name: claim.Name})
		}
	}, func() {
		r.queue.Add(key{Namespace: namespace})
		r.enqueueAll(a)
	})
	return a
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

func (r *Reconciler) enqueueAll(a *area) {
	for _, claim := range a.locals.List() {
		if reflection.OwnClaim(claim) {
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
