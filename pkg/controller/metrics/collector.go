package metrics

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// collectTimeout bounds a scrape: caches answer at once, unless they are not filled yet.
const collectTimeout = 5 * time.Second

// Options of the metrics.
type Options struct {
	// Registerer takes them.
	Registerer prometheus.Registerer
	// Grants says that this cluster answers requests for resources, so that there are Quotas to look at.
	Grants bool
}

// Register adds the metrics of the offloading module.
func Register(mgr ctrl.Manager, o Options) error {
	c := &Collector{cache: mgr.GetClient(), grants: o.Grants, series: newSeries()}
	if err := o.Registerer.Register(c); err != nil {
		return fmt.Errorf("registering the metrics of the controller manager: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return fmt.Errorf("registering the metrics of the controller manager: %w", err)
	}
	return nil
}

// Collector shows what the caches hold, while this replica is the active one.
type Collector struct {
	cache  client.Reader
	grants bool
	series

	mu  sync.Mutex
	ctx context.Context
}

// Start implements manager.Runnable: there is something to show until ctx ends.
func (c *Collector) Start(ctx context.Context) error {
	c.mu.Lock()
	c.ctx = ctx
	c.mu.Unlock()
	<-ctx.Done()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *Collector) NeedLeaderElection() bool { return true }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range c.all() {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	c.mu.Lock()
	ctx := c.ctx
	c.mu.Unlock()
	if ctx == nil || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	seen, err := c.look(ctx)
	if err != nil {
		// An invalid metric would take all others of the process with it.
		ctrl.LoggerFrom(ctx).Error(err, "Some metrics cannot be shown")
		return
	}
	c.show(seen, metrics)
}

// view is what the caches show.
type view struct {
	nodes      offloadingv1beta1.VirtualNodeList
	namespaces offloadingv1beta1.NamespaceOffloadingList
	quotas     offloadingv1beta1.QuotaList
	pods       corev1.PodList
}

// look lists the caches without copying the objects, which are only read.
func (c *Collector) look(ctx context.Context) (*view, error) {
	v := &view{}
	for _, list := range []client.ObjectList{&v.nodes, &v.namespaces} {
		if err := c.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing a cache as %T: %w", list, err)
		}
	}
	if c.grants {
		if err := c.cache.List(ctx, &v.quotas, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the cache of Quotas: %w", err)
		}
	}
	err := c.cache.List(ctx, &v.pods, client.UnsafeDisableDeepCopy,
		client.MatchingLabels{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod})
	if err != nil {
		return nil, fmt.Errorf("listing the cache of consumers' pods: %w", err)
	}
	return v, nil
}
