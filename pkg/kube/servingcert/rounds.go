package servingcert

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/selection"
)

const (
	// DefaultInterval is the time between two looks while nobody changes anything: everything that is due has days to be done in.
	DefaultInterval = 6 * time.Hour

	passTimeout  = 30 * time.Second
	firstBackOff = time.Second
	maxBackOff   = time.Minute
	// Who keeps changing what we look at has it looked at so often at once, and then once in every pause.
	looksAtOnce = 10
	pause       = 10 * time.Second
)

// rounds look at objects: when one of them was made, changed or deleted, and else now and then.
type rounds struct {
	client client.WithWatch
	// interval is the time between two looks while nothing changes.
	interval time.Duration
	clock    clock.Clock
	// objects are asked for by name, and only their metadata: what they hold is read when it is needed.
	objects map[schema.GroupVersionKind][]client.ObjectKey
	changed signal
}

// run looks until ctx ends. Failures are logged, and tried again with back-off.
func (r rounds) run(ctx context.Context, look func(context.Context) error) error {
	log := ctrl.LoggerFrom(ctx).WithName("serving-certificate")
	var following sync.WaitGroup
	defer following.Wait()
	for kind, keys := range r.objects {
		for _, key := range keys {
			reflector := cache.NewReflectorWithOptions(r.source(kind, key), nil, r.changed, cache.ReflectorOptions{Name: "serving-certificate"})
			following.Go(func() { reflector.RunWithContext(ctx) })
		}
	}
	backOff, limit := firstBackOff, rate.NewLimiter(rate.Every(pause), looksAtOnce)
	for {
		wait := r.interval
		if err := look(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "The webhook serving certificate is not in place", "retryAfter", backOff)
			wait, backOff = backOff, min(2*backOff, maxBackOff)
		} else {
			backOff = firstBackOff
		}
		timer := r.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		case <-r.changed:
			timer.Stop()
			if limit.Wait(ctx) != nil {
				return nil
			}
		}
	}
}

func (r rounds) source(kind schema.GroupVersionKind, key client.ObjectKey) cache.ListerWatcher {
	list := func() *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return list
	}
	return selection.ListerWatcher(selection.Named(key.Name),
		func(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			found := list()
			return found, r.client.List(ctx, found, &client.ListOptions{Namespace: key.Namespace, Raw: &o, Limit: o.Limit, Continue: o.Continue})
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return r.client.Watch(ctx, list(), &client.ListOptions{Namespace: key.Namespace, Raw: &o})
		}, r.client)
}

// signal is where it is noted that something changed, once however much did. It keeps nothing.
type signal chan struct{}

func (s signal) note() error {
	select {
	case s <- struct{}{}:
	default:
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (s signal) Add(any) error { return s.note() }

// Update implements cache.ReflectorStore.
func (s signal) Update(any) error { return s.note() }

// Delete implements cache.ReflectorStore.
func (s signal) Delete(any) error { return s.note() }

// Replace implements cache.ReflectorStore.
func (s signal) Replace([]any, string) error { return s.note() }

// Resync implements cache.ReflectorStore.
func (s signal) Resync() error { return nil }
