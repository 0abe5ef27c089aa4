package event

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/peer"
)

// Carrier brings the Events of one provider back. Make it with New; all methods may be called at any time from anywhere.
type Carrier struct {
	options Options
	tally   *tally
	stage   *stage
	reads   flowcontrol.PassiveRateLimiter
	wake    signal.Signal

	mu sync.Mutex
	// twins are the open watches by local namespace.
	twins map[string]*twin
	group sync.WaitGroup
}

// New checks the options and registers the metrics. Nothing happens before Run.
func New(o Options) (*Carrier, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	tally, err := newTally(o)
	if err != nil {
		return nil, err
	}
	c := &Carrier{
		options: o, tally: tally,
		reads: flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(readsPerSecond, readBurst, o.Clock),
		wake:  signal.New(),
		twins: map[string]*twin{},
	}
	c.stage = newStage(c)
	return c, nil
}

// Run carries Events until ctx ends, and returns when everything that it started has ended.
func (c *Carrier) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("provider", c.options.Remote))
	cancel := c.options.Peer.Subscribe(func(peer.State) { c.wake.Raise() })
	defer cancel()
	defer c.options.Wanted.Follow(func(_, _ Wanted) { c.wake.Raise() })()
	defer c.group.Wait()
	defer c.align(ctx, nil)
	defer c.stage.stop()
	ticker := c.options.Clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		c.stage.resize(ctx, max(0, int(c.options.Wanted.Get().Config.NumWorkers)))
		c.align(ctx, c.mapping())
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		case <-ticker.C():
		}
	}
}

// Crossed tells that something of a local namespace is at the provider, or will be at once. It does not block.
func (c *Carrier) Crossed(namespace string) {
	if c.options.Wanted.Get().Mapping[namespace] != "" && c.twinOf(namespace) == "" {
		c.wake.Raise()
	}
}

// mapping is which twins are to be watched if something of theirs crossed. Without a connection the watches stay as they are: they try again by
// themselves, slowly.
func (c *Carrier) mapping() map[string]string {
	wanted := c.options.Wanted.Get()
	if wanted.Config.NumWorkers <= 0 {
		return nil
	}
	return wanted.Mapping
}

// twinOf is the twin of a namespace that is carried from; empty if none is.
func (c *Carrier) twinOf(namespace string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.twins[namespace]; t != nil {
		return t.remote
	}
	return ""
}

// align opens and closes watches so that they are those of the mapping whose namespaces have something at the provider. One
// that is open stays so until its namespace leaves the mapping.
func (c *Carrier) align(ctx context.Context, mapping map[string]string) {
	state := c.options.Peer.State()
	c.mu.Lock()
	defer c.mu.Unlock()
	for namespace, t := range c.twins {
		if mapping[namespace] != t.remote {
			delete(c.twins, namespace)
			t.cancel()
			continue
		}
		t.connection(state)
	}
	if !state.Connected {
		return
	}
	for _, namespace := range slices.Sorted(maps.Keys(mapping)) {
		if mapping[namespace] == "" || c.twins[namespace] != nil || !c.options.Locals.Crossed(namespace) {
			continue
		}
		t := newTwin(ctx, c, namespace, mapping[namespace])
		c.twins[namespace] = t
		t.connection(state)
		c.group.Go(t.run)
	}
}
