package shadowpod

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

// hold is how long an admitted ShadowPod may take to appear in the cache. One that a later webhook refuses never does.
const hold = 30 * time.Second

// book keeps the ledger in step with the ShadowPods in the cache.
type book struct {
	cache  cache.Cache
	ledger *capacity.Ledger
	synced atomic.Bool
}

func newBook(c cache.Cache) *book {
	return &book{cache: c, ledger: capacity.NewLedger(hold)}
}

// NeedLeaderElection is false: webhooks answer on all replicas.
func (b *book) NeedLeaderElection() bool { return false }

// Start feeds the ledger until the context ends.
func (b *book) Start(ctx context.Context) error {
	informer, err := b.cache.GetInformer(ctx, &offloadingv1beta1.ShadowPod{})
	if err != nil {
		return fmt.Errorf("watching ShadowPods for the ledger: %w", err)
	}
	registration, err := informer.AddEventHandler(b)
	if err != nil {
		return fmt.Errorf("watching ShadowPods for the ledger: %w", err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	b.synced.Store(true)
	<-ctx.Done()
	return nil
}

// ready tells whether the ledger knows all ShadowPods that exist.
func (b *book) ready() bool { return b.synced.Load() }

// OnAdd counts a ShadowPod.
func (b *book) OnAdd(o any, _ bool) {
	if shadow, ok := o.(*offloadingv1beta1.ShadowPod); ok {
		b.count(shadow)
	}
}

// OnUpdate counts a ShadowPod as it is now.
func (b *book) OnUpdate(_, o any) { b.OnAdd(o, false) }

// OnDelete frees what a ShadowPod took.
func (b *book) OnDelete(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if shadow, ok := o.(client.Object); ok {
		b.ledger.Forget(types.NamespacedName{Namespace: shadow.GetNamespace(), Name: shadow.GetName()})
	}
}

// count enters a ShadowPod. One that finished takes nothing of the grant any more, but is an object until it is deleted.
func (b *book) count(shadow *offloadingv1beta1.ShadowPod) {
	entry := capacity.Entry{User: shadow.Labels[offloadingv1beta1.CreatorUserLabel]}
	if phase := shadow.Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
		entry.Amount = capacity.PodRequests(&shadow.Spec.Pod)
	}
	b.ledger.Observe(client.ObjectKeyFromObject(shadow), entry)
}
