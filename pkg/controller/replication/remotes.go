package replication

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/peer"
)

const (
	// maxCopies of a kind are accepted from a peer, and maxCopiesBytes of memory of all: a tenant namespace holds a NamespaceMap, few
	// slices and, now and then, a Renew of each.
	maxCopies      = 1000
	maxCopiesBytes = 16 << 20
)

// remotes are the copies at the peer, as watched with one set of credentials.
type remotes struct {
	epoch  int64
	cancel context.CancelFunc
	copies []*replica.Replica[client.Object]
}

// connect follows the copies at the peer with the newest credentials.
func (f *reflector) connect(ctx context.Context, epoch int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch == 0 || (f.remotes != nil && f.remotes.epoch == epoch) || f.over() {
		return nil
	}
	clients, err := f.peer.Clients()
	if err != nil {
		return err
	}
	if f.remotes != nil {
		f.remotes.cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	next := &remotes{epoch: epoch, cancel: cancel}
	budget := replica.NewBudget(maxCopiesBytes)
	for i := range f.kinds {
		next.copies = append(next.copies, f.follow(next, i, clients, budget))
	}
	f.remotes = next
	for _, copies := range next.copies {
		go copies.Run(ctx)
	}
	return nil
}

// follow prepares the watch of the copies of one kind.
func (f *reflector) follow(all *remotes, index int, clients peer.Clients, budget *replica.Budget) *replica.Replica[client.Object] {
	k := f.kinds[index]
	options := func(raw *metav1.ListOptions) []client.ListOption {
		return []client.ListOption{client.InNamespace(f.remoteNamespace), client.MatchingLabels{corev1beta1.OriginIDLabel: f.home.options.ClusterID},
			&client.ListOptions{Raw: raw, Limit: raw.Limit, Continue: raw.Continue}}
	}
	return replica.New(replica.Options[client.Object]{
		Name: k.resource, Namespace: f.remoteNamespace, Limit: maxCopies, Budget: budget, Over: func() { f.overLimit(all) },
		Example: func() runtime.Object { return k.object() },
		Slim:    func(object client.Object) { object.SetManagedFields(nil) },
		Event: func(_, object client.Object, _ bool) {
			f.queue.Add(item{index, object.GetName()})
		},
		Synced: f.nudge.Raise,
		Page: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := k.list()
			if err := clients.Client.List(ctx, list, options(&o)...); err != nil {
				return nil, fmt.Errorf("listing the copies of %s at cluster %s: %w", k.resource, f.clusterID, err)
			}
			return list, nil
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return clients.Client.Watch(ctx, k.list(), options(&o)...)
		},
	})
}

// overLimit gives up the copies of a peer that shows more than is accepted, and looks again later. Until then nothing is concluded from
// what is there.
func (f *reflector) overLimit(which *remotes) {
	which.cancel()
	f.mu.Lock()
	current := f.remotes == which
	if current {
		f.remotes, f.shut = nil, f.home.options.Clock.Now().Add(reconcile.RefusedRetry)
	}
	f.mu.Unlock()
	if !current {
		return
	}
	ctrl.Log.WithName("replication").Info("What a peer shows is not followed for a while",
		"clusterID", f.clusterID, "reason", offloadingv1beta1.ReasonRemoteOverLimit)
	f.nudge.Raise()
}

// over tells whether the peer showed more than is accepted lately. The caller locks.
func (f *reflector) over() bool { return f.home.options.Clock.Now().Before(f.shut) }

// flooded is the error as long as the copies are not followed because there were too many. When that time is over they are again.
func (f *reflector) flooded() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.remotes != nil || f.shut.IsZero() {
		return nil
	}
	if !f.over() {
		f.shut = time.Time{}
		f.nudge.Raise()
		return nil
	}
	return reconcile.Refuse(offloadingv1beta1.ReasonRemoteOverLimit, fmt.Errorf(
		"the provider shows more in its namespace %s than is followed (%d objects of a kind, %d MiB of all together): have those removed there that are not yours",
		f.remoteNamespace, maxCopies, maxCopiesBytes>>20))
}

func (f *reflector) disconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.remotes != nil {
		f.remotes.cancel()
		f.remotes = nil
	}
}

// copyOf returns the copy of an object as the watch shows it, nil if there is none, and whether that is known.
func (f *reflector) copyOf(at item) (object client.Object, known bool) {
	f.mu.Lock()
	current := f.remotes
	f.mu.Unlock()
	if current == nil || !current.copies[at.kind].Synced() {
		return nil, false
	}
	held, there := current.copies[at.kind].Get(at.name)
	if !there {
		return nil, true
	}
	object, _ = held.DeepCopyObject().(client.Object)
	return object, true
}
