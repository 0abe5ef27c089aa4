package secretledger

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/replica"
)

// twins watches the Secrets of twin namespaces, one watch each. It is a source of requests for their namespaces.
type twins struct {
	client client.WithWatch
	// came is told of Secrets that are new or changed.
	came func(secret types.NamespacedName)

	mu      sync.Mutex
	ctx     context.Context
	queue   workqueue.TypedRateLimitingInterface[ctrl.Request]
	watches map[string]*twin
}

// twin is the watch of one namespace.
type twin struct {
	consumer string
	secrets  view
	cancel   context.CancelFunc
}

// view of the Secrets of a namespace, by name.
type view interface {
	Synced() bool
	Get(name string) (*record, bool)
	List() []*record
}

// record is what is kept of a Secret.
type record struct {
	metav1.ObjectMeta
	entry string
}

// Start takes the controller's context and queue; watches live as long as the context.
func (t *twins) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ctx, t.queue = ctx, queue
	return nil
}

// follow starts the watch of a namespace if there is none. ok is false until the watch is in step; the namespace is queued then.
func (t *twins) follow(namespace, consumer string) (ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.watches[namespace]
	if w != nil && w.consumer != consumer {
		w.cancel()
		w = nil
	}
	if w == nil {
		t.watches[namespace] = t.watch(namespace, consumer)
		return false
	}
	return w.secrets.Synced()
}

// entries are what the ledger of a namespace that is followed has to say.
func (t *twins) entries(namespace string) map[string]string {
	t.mu.Lock()
	w := t.watches[namespace]
	t.mu.Unlock()
	records := w.secrets.List()
	entries := make(map[string]string, len(records))
	for _, r := range records {
		if r.entry != "" {
			entries[r.Name] = r.entry
		}
	}
	return entries
}

// entry is what the ledger has to say of a Secret; there is false if the Secret is not known to be there.
func (t *twins) entry(secret types.NamespacedName) (entry string, there bool) {
	t.mu.Lock()
	w := t.watches[secret.Namespace]
	t.mu.Unlock()
	if w == nil {
		return "", false
	}
	if r, found := w.secrets.Get(secret.Name); found {
		return r.entry, true
	}
	return "", false
}

// consumer is whose a Secret is: a watch shows only those of the namespace's consumer.
func (t *twins) consumer(secret types.NamespacedName) string {
	if _, there := t.entry(secret); !there {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.watches[secret.Namespace]; w != nil {
		return w.consumer
	}
	return ""
}

// stop ends the watch of a namespace that is no twin any more.
func (t *twins) stop(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w := t.watches[namespace]; w != nil {
		w.cancel()
		delete(t.watches, namespace)
	}
}

func (t *twins) watch(namespace, consumer string) *twin {
	ctx, cancel := context.WithCancel(t.ctx)
	selected := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{
			Namespace: namespace, Raw: &raw, Limit: raw.Limit, Continue: raw.Continue,
			LabelSelector: labels.SelectorFromSet(labels.Set{offloadingv1beta1.OriginLabel: consumer}),
		}
	}
	queue := t.queue
	changed := func() { queue.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: namespace}}) }
	secrets := replica.New(replica.Options[*record]{
		Name: "secrets of twins", Namespace: namespace, Hold: summarize, Soon: true,
		Example: func() runtime.Object { return &corev1.Secret{} },
		Source: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
				list := &corev1.SecretList{}
				return list, t.client.List(ctx, list, selected(raw))
			},
			WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
				return t.client.Watch(ctx, &corev1.SecretList{}, selected(raw))
			},
		}, t.client),
		Event: func(before, now *record, deleted bool) {
			if !deleted {
				t.came(types.NamespacedName{Namespace: namespace, Name: now.Name})
			}
			// Changes that the ledger does not show are left out.
			if deleted || before == nil || before.entry != now.entry {
				changed()
			}
		},
		Synced: changed,
	})
	go secrets.Run(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("namespace", namespace)))
	return &twin{consumer: consumer, secrets: secrets, cancel: cancel}
}

// summarize keeps of a Secret only what the ledger says of it.
func summarize(object any) (*record, bool) {
	secret, is := object.(*corev1.Secret)
	if !is {
		return nil, false
	}
	return &record{
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion},
		entry:      entryOf(secret),
	}, true
}
