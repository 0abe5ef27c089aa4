package secrets

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Mapper names the objects to reconcile when a Secret appeared, changed or went.
type Mapper func(ctx context.Context, secret *metav1.PartialObjectMetadata) []ctrlreconcile.Request

// Watch follows the Secrets of the namespaces that it was told, and wakes the controllers that have a Source of it.
// It holds metadata only, never the secret data. Add it to the manager: it needs to be started.
type Watch struct {
	client metadata.Interface

	mu         sync.Mutex
	ctx        context.Context
	namespaces map[string]*namespaceWatch
	sinks      []sink
}

type namespaceWatch struct {
	cancel context.CancelFunc
	store  cache.Store
}

type sink struct {
	ctx   context.Context // of the controller: it ends with the queue
	queue workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]
	match Mapper
}

// NewWatch makes a Watch that follows nothing yet.
func NewWatch(client metadata.Interface) *Watch {
	return &Watch{client: client, namespaces: map[string]*namespaceWatch{}}
}

// Start implements manager.Runnable: it follows the namespaces until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for namespace, watch := range w.namespaces {
		if watch == nil {
			w.follow(namespace)
		}
	}
	w.mu.Unlock()
	<-ctx.Done()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only reconcilers use it.
func (w *Watch) NeedLeaderElection() bool { return true }

// Follow starts following a namespace, once.
func (w *Watch) Follow(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.namespaces[namespace]; known {
		return
	}
	w.namespaces[namespace] = nil
	if w.ctx != nil {
		w.follow(namespace)
	}
}

// Forget stops following a namespace.
func (w *Watch) Forget(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if watch := w.namespaces[namespace]; watch != nil {
		watch.cancel()
	}
	delete(w.namespaces, namespace)
}

// Source is a source of requests for a controller. Secrets that are known already are reported when it starts.
func (w *Watch) Source(match Mapper) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		added := sink{ctx: ctx, queue: queue, match: match}
		w.sinks = append(w.sinks, added)
		for _, watch := range w.namespaces {
			if watch == nil {
				continue
			}
			for _, object := range watch.store.List() {
				added.offer(object)
			}
		}
		return nil
	})
}

// follow is called with the lock held.
func (w *Watch) follow(namespace string) {
	ctx, cancel := context.WithCancel(w.ctx)
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, corev1.SchemeGroupVersion.WithResource("secrets"),
		namespace, 0, cache.Indexers{}, nil).Informer()
	// An informer that was not started yet always takes a handler.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.offer,
		UpdateFunc: func(_, object any) { w.offer(object) },
		DeleteFunc: w.offer,
	})
	w.namespaces[namespace] = &namespaceWatch{cancel: cancel, store: informer.GetStore()}
	go informer.RunWithContext(ctx)
}

func (w *Watch) offer(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	w.mu.Lock()
	sinks := w.sinks[:len(w.sinks):len(w.sinks)]
	w.mu.Unlock()
	for _, s := range sinks {
		s.offer(object)
	}
}

func (s sink) offer(object any) {
	secret, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	for _, request := range s.match(s.ctx, secret) {
		s.queue.Add(request)
	}
}

// Owner returns a Mapper to the owners of a kind, in the Secret's namespace.
func Owner(kind string) Mapper {
	return func(_ context.Context, secret *metav1.PartialObjectMetadata) []ctrlreconcile.Request {
		var requests []ctrlreconcile.Request
		for _, owner := range secret.OwnerReferences {
			if owner.Kind == kind {
				request := ctrlreconcile.Request{}
				request.Namespace, request.Name = secret.Namespace, owner.Name
				requests = append(requests, request)
			}
		}
		return requests
	}
}
