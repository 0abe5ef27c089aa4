package replication

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/peer"
)

// item is one object to look at.
type item struct {
	kind int
	name string
}

// reflector replicates the objects of one tenant namespace to one peer.
type reflector struct {
	target
	home   *Reconciler
	peer   *peer.Peer
	kinds  []kind
	queue  workqueue.TypedRateLimitingInterface[item]
	nudge  signal.Signal
	gone   atomic.Bool
	cancel context.CancelFunc
	// ended is closed once run is over.
	ended chan struct{}

	mu      sync.Mutex
	remotes *remotes
	// shut is until when the copies are not followed, because the peer showed more than is accepted.
	shut time.Time
}

func newReflector(r *Reconciler, to target, gone bool) (*reflector, error) {
	var credentials peer.Source = peer.SecretSource{Client: r.options.Kube, Namespace: to.namespace, Name: to.secret}
	if to.cutOff {
		credentials = nothingToSay{}
	}
	connection, err := peer.New(peer.Options{
		ClusterID:  to.clusterID,
		Kubeconfig: credentials,
		Scheme:     r.client.Scheme(), Mapper: mapper(), Endpoints: r.options.Endpoints,
		ProbeInterval: r.options.ProbeInterval, ProbeTimeout: r.options.ProbeTimeout, RequestTimeout: r.options.RequestTimeout,
		Meter: r.options.Meter, Clock: r.options.Clock, Log: r.mgr.GetLogger().WithName("peer"), UserAgent: "liqo-controller-manager",
		Witness: func(ctx context.Context) bool { return vouched(ctx, r.client, to.clusterID) },
		Rights:  func() []peer.Right { return to.rights() },
	})
	if err != nil {
		return nil, err
	}
	f := &reflector{
		target: to, home: r, peer: connection, kinds: kinds(), nudge: signal.New(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[item](minBackOff, reconcile.RefusedRetry),
			workqueue.TypedRateLimitingQueueConfig[item]{Name: "replication-" + to.clusterID}),
	}
	f.gone.Store(gone)
	return f, nil
}

// nothingToSay are the credentials for a peer that was cut off: none.
type nothingToSay struct{}

// Run implements peer.Source.
func (nothingToSay) Run(ctx context.Context, _ func([]byte)) error {
	<-ctx.Done()
	return nil
}

// rights are what a provider grants us in our tenant namespace there as long as we are its tenant.
func (t target) rights() []peer.Right {
	return []peer.Right{{Namespace: t.remoteNamespace, Verb: "list", Group: authv1beta1.GroupVersion.Group, Resource: "resourceslices"}}
}

// run replicates until ctx ends.
func (f *reflector) run(ctx context.Context) {
	log := ctrl.LoggerFrom(ctx).WithName("replication").WithValues("clusterID", f.clusterID)
	ctx = ctrl.LoggerInto(ctx, log)
	log.Info("Starting the replication to a peer")
	defer log.Info("Stopped the replication to a peer")
	var group sync.WaitGroup
	defer group.Wait()
	defer f.queue.ShutDown()
	defer f.disconnect()
	detach, err := f.attach(ctx)
	if err != nil {
		log.Error(err, "Cannot watch the objects to replicate")
		return
	}
	defer detach()
	if f.home.options.OnPeer != nil {
		f.home.options.OnPeer(f.clusterID, f.peer)
	}
	unsubscribe := f.peer.Subscribe(func(state peer.State) {
		if f.home.options.OnState != nil {
			f.home.options.OnState(f.clusterID, state)
		}
		f.nudge.Raise()
	})
	defer unsubscribe()
	group.Go(func() { _ = f.peer.Run(ctx) })
	for range f.home.options.Workers {
		group.Go(func() { f.work(ctx) })
	}
	connected := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.nudge:
		}
		state := f.peer.State()
		if err := f.connect(ctx, state.Epoch); err != nil {
			log.Error(err, "Cannot watch the copies at a peer")
		}
		if state.Connected != connected {
			connected = state.Connected
			log.Info("The connection to a peer changed", "connected", connected, "reason", state.Reason)
		}
		f.enqueueAll(ctx, connected)
	}
}

// setGone has everything looked at again when the user gave the peer up.
func (f *reflector) setGone(gone bool) {
	if f.gone.Swap(gone) != gone {
		f.nudge.Raise()
	}
}

// attach follows the local objects in the manager's cache.
func (f *reflector) attach(ctx context.Context) (detach func(), err error) {
	var undo []func()
	detach = func() {
		for _, f := range undo {
			f()
		}
	}
	for i, k := range f.kinds {
		informer, err := f.home.mgr.GetCache().GetInformer(ctx, k.object())
		if err != nil {
			detach()
			return nil, fmt.Errorf("following %s: %w", k.resource, err)
		}
		registration, err := informer.AddEventHandler(f.handler(i, f.namespace))
		if err != nil {
			detach()
			return nil, fmt.Errorf("following %s: %w", k.resource, err)
		}
		undo = append(undo, func() { _ = informer.RemoveEventHandler(registration) })
	}
	ignore, err := followNodes(ctx, f.home.mgr.GetCache(), f.clusterID, f.peer.Doubt)
	if err != nil {
		detach()
		return nil, err
	}
	undo = append(undo, ignore)
	return detach, nil
}

func (f *reflector) handler(kindIndex int, namespace string) toolscache.ResourceEventHandler {
	enqueue := func(object any) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if accessor, err := meta.Accessor(object); err == nil && accessor.GetNamespace() == namespace {
			f.queue.Add(item{kindIndex, accessor.GetName()})
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue}
}

// enqueueAll has every object looked at; at once, whatever its back-off, if the peer answers.
func (f *reflector) enqueueAll(ctx context.Context, connected bool) {
	f.mu.Lock()
	current := f.remotes
	f.mu.Unlock()
	for i, k := range f.kinds {
		names := map[string]bool{}
		if objects, err := listObjects(ctx, f.home.client, k, f.namespace); err == nil {
			for _, object := range objects {
				names[object.GetName()] = true
			}
		}
		if current != nil && current.copies[i].Synced() {
			for _, object := range current.copies[i].List() {
				names[object.GetName()] = true
			}
		}
		for name := range names {
			if connected {
				f.queue.Forget(item{i, name})
			}
			f.queue.Add(item{i, name})
		}
	}
}

func listObjects(ctx context.Context, reader client.Reader, k kind, namespace string) ([]client.Object, error) {
	list := k.list()
	if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %s in Namespace %s: %w", k.resource, namespace, err)
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(object runtime.Object) error {
		if typed, ok := object.(client.Object); ok {
			objects = append(objects, typed)
		}
		return nil
	})
	return objects, err
}
