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
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/reflection"
)

// view is what is known of the claims in one twin during one period of connection. What a twin holds is the provider's word, and
// bounded: by number, by bytes, and by what is kept of each claim.
type view struct {
	epoch  int64
	kube   kubernetes.Interface
	claims *claims
	ctx    context.Context
	cancel context.CancelFunc

	mu sync.Mutex
	// standing are the names of the claims there, by the local claims that they say to stand for.
	standing map[key]map[string]bool
}

func (v *view) ready() bool { return v.claims.Synced() && v.ctx.Err() == nil }

// end has the view followed no more.
func (v *view) end() {
	v.cancel()
	v.claims.Release()
}

func (v *view) remote(name string) *corev1.PersistentVolumeClaim {
	claim, _ := v.claims.Get(name)
	return claim
}

// of are the claims of the twin that say to stand for a local one.
func (v *view) of(k key) []*corev1.PersistentVolumeClaim {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []*corev1.PersistentVolumeClaim
	for name := range v.standing[k] {
		if claim := v.remote(name); claim != nil {
			list = append(list, claim)
		}
	}
	return list
}

// keys are the local claims that claims of the twin say to stand for.
func (v *view) keys() []key {
	v.mu.Lock()
	defer v.mu.Unlock()
	keys := make([]key, 0, len(v.standing))
	for k := range v.standing {
		keys = append(keys, k)
	}
	return keys
}

// enter notes for which local claim a claim of the twin stands.
func (v *view) enter(k key, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.standing == nil {
		v.standing = map[key]map[string]bool{}
	}
	if v.standing[k] == nil {
		v.standing[k] = map[string]bool{}
	}
	v.standing[k][name] = true
}

func (v *view) leave(k key, name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.standing[k], name)
	if len(v.standing[k]) == 0 {
		delete(v.standing, k)
	}
}

// open watches the twin of a namespace, if the provider answers and did not show too much lately.
func (r *Reconciler) open(a *area) {
	state := r.options.Peer.State()
	clients, err := r.options.Peer.Clients()
	if err != nil || !state.Connected {
		return // The connection is an event.
	}
	v := r.newView(a, clients.Kube, state.Epoch)
	r.mu.Lock()
	if a.view != nil || a.ctx.Err() != nil || r.options.Clock.Now().Before(a.shut) {
		r.mu.Unlock()
		return
	}
	v.ctx, v.cancel = context.WithCancel(a.ctx)
	a.view = v
	r.mu.Unlock()
	a.group.Go(func() { v.claims.Run(v.ctx) })
}

func (r *Reconciler) newView(a *area, kube kubernetes.Interface, epoch int64) *view {
	v := &view{epoch: epoch, kube: kube}
	there := kube.CoreV1().PersistentVolumeClaims(a.twin)
	selector := labels.SelectorFromSet(labels.Set{
		offloadingv1beta1.OriginLabel: r.options.Home, offloadingv1beta1.DestinationLabel: r.options.Remote,
	}).String()
	v.claims = replica.New(replica.Options[*corev1.PersistentVolumeClaim]{
		Name: "storage", Namespace: a.twin, Slim: essence,
		Limit: r.options.MaxRemoteClaims, Budget: r.budget, Over: func() { r.overLimit(a, v) },
		Example: func() runtime.Object { return &corev1.PersistentVolumeClaim{} },
		Page: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			list, err := there.List(ctx, o)
			if err != nil {
				return nil, fmt.Errorf("listing the claims in namespace %q of cluster %q: %w", a.twin, r.options.Remote, err)
			}
			return list, nil
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return there.Watch(ctx, o)
		},
		Event: func(before, claim *corev1.PersistentVolumeClaim, deleted bool) {
			now := localKey(a, claim)
			if before != nil {
				if k := localKey(a, before); deleted || k != now {
					v.leave(k, claim.Name)
					r.queue.Add(k)
				}
			}
			if !deleted {
				v.enter(now, claim.Name)
			}
			r.queue.Add(now)
		},
		Synced: func() {
			r.enqueueAll(a)
			for _, k := range v.keys() {
				r.queue.Add(k)
			}
		},
	})
	return v
}

// essence drops of a claim at the provider what nobody reads.
func essence(claim *corev1.PersistentVolumeClaim) {
	claim.ManagedFields, claim.OwnerReferences, claim.Finalizers, claim.GenerateName = nil, nil, nil, ""
	claim.Spec = corev1.PersistentVolumeClaimSpec{StorageClassName: claim.Spec.StorageClassName, Resources: claim.Spec.Resources}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase, Capacity: claim.Status.Capacity}
}

// overLimit gives up the view of a twin that holds more than is accepted, and looks again later. Until then nothing is concluded
// from what is there.
func (r *Reconciler) overLimit(a *area, v *view) {
	r.mu.Lock()
	current := a.view == v
	if current {
		a.view, a.shut = nil, r.options.Clock.Now().Add(reconcile.RefusedRetry)
	}
	r.mu.Unlock()
	v.end()
	if !current {
		return
	}
	klog.FromContext(a.ctx).Info("What a provider shows is not followed for a while", "provider", r.options.Remote, "namespace", a.namespace,
		"reason", offloadingv1beta1.ReasonRemoteOverLimit)
	r.queue.AddAfter(key{Namespace: a.namespace}, reconcile.RefusedRetry+poll)
	r.enqueueAll(a)
}

// tooMuch is the error as long as a twin is not watched because it held more than is accepted.
func (r *Reconciler) tooMuch(a *area) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.view != nil || !r.options.Clock.Now().Before(a.shut) {
		return nil
	}
	return reconcile.Refuse(offloadingv1beta1.ReasonRemoteOverLimit, fmt.Errorf(
		"cluster %q shows more PersistentVolumeClaims in namespace %q than are followed (%d in a namespace, %d MiB of all together): "+
			"have those removed there that are not yours",
		r.options.Remote, a.twin, r.options.MaxRemoteClaims, r.budget.Limit()>>20))
}

// localKey names the claim that a claim at the provider stands for, as far as it says so.
func localKey(a *area, remote *corev1.PersistentVolumeClaim) key {
	if namespace, name, ok := reflection.VirtualClaim(remote); ok && namespace == a.namespace {
		return key{Namespace: namespace, Name: name}
	}
	return key{Namespace: a.namespace, Name: remote.Name}
}
