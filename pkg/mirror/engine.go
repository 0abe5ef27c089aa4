package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/namespaces"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/reflection"
)

// Engine reflects objects to one provider. Make it with New; all methods may be called at any time from anywhere.
type Engine struct {
	options    Options
	runners    map[string]*runner
	namespaces *namespaces.Namespaces
	reporter   *reporter
	wake       signal.Signal
	// stale says that what is known of namespaces may be old.
	stale signal.Signal
	// budget bounds what all views of the provider hold.
	budget *replica.Budget
	// following keeps the latest mapping the last one that is followed.
	following sync.Mutex

	mu           sync.RWMutex
	started      bool
	mapping      map[string]string
	notReflected reflection.NotReflected
	provider     reflection.Provider
	// throttled is until when the provider asked to be left alone.
	throttled time.Time
	// version of the provider's API server, as last seen.
	version string
	// generation counts the changes of settings that Translate depends on.
	generation int64
}

// New checks the options and registers the metrics. Nothing happens before Run.
func New(o Options) (*Engine, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	reporter, err := newReporter(o)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		options:      o,
		runners:      map[string]*runner{},
		reporter:     reporter,
		wake:         signal.New(),
		stale:        signal.New(),
		budget:       o.Budget,
		mapping:      map[string]string{},
		notReflected: o.NotReflected,
	}
	e.namespaces = namespaces.New(o.Local, o.Clock, o.RequestTimeout)
	for _, kind := range o.Kinds {
		if _, twice := e.runners[kind.Name]; twice {
			return nil, fmt.Errorf("making a reflection engine: kind %q is given twice", kind.Name)
		}
		config, configured := o.Config[kind.Name]
		if !configured {
			config = offloadingv1beta1.ReflectorConfig{NumWorkers: kind.DefaultWorkers, Type: kind.DefaultPolicy}
		}
		e.runners[kind.Name] = newRunner(e, kind, config)
	}
	e.adopt()
	return e, nil
}

// Run reflects until ctx ends, and returns when everything that it started has ended. It runs once.
func (e *Engine) Run(ctx context.Context) error {
	e.mu.Lock()
	if e.started {
		e.mu.Unlock()
		return errors.New("running the reflection engine: it ran before; make a new one")
	}
	e.started = true
	e.mu.Unlock()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("provider", e.options.Remote))
	_, epoch := e.options.Peer.State()
	e.refit()
	cancel := e.options.Peer.Subscribe(e.wake.Raise)
	defer cancel()
	defer e.each(func(r *runner) { e.options.Removals.Leave(r.kind.Name) })
	var group sync.WaitGroup
	defer group.Wait()
	for _, r := range e.runners {
		r.start(ctx)
		group.Go(r.run)
	}
	e.follow()
	e.loop(ctx, epoch)
	return nil
}

// loop follows the peer and refreshes what is known of namespaces.
func (e *Engine) loop(ctx context.Context, epoch int64) {
	ticker := e.options.Clock.NewTicker(namespaceRefresh)
	defer ticker.Stop()
	var again <-chan time.Time
	refresh := func() {
		if again = nil; e.refresh(ctx) {
			again = e.options.Clock.After(namespaceFresh)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			refresh()
		case <-e.stale:
			refresh()
		case <-again:
			refresh()
		case <-e.wake:
			e.refit()
			connected, now := e.options.Peer.State()
			// What was followed before a loss may be long past: of a server that was restored from a backup a watch that goes on where it
			// was tells nothing for a long time, and never what the restore took away.
			if now != epoch {
				epoch = now
				e.each((*runner).reopen)
			}
			if connected {
				e.each((*runner).resume)
			}
		}
	}
}

// refresh reads all namespaces again, and looks again at the objects of those that changed. It tells whether any could not be
// read.
func (e *Engine) refresh(ctx context.Context) (failed bool) {
	for namespace := range e.snapshot() {
		changed, again := e.namespaces.Refresh(ctx, namespace)
		if changed {
			e.each(func(r *runner) { r.reconsider(namespace) })
		}
		failed = failed || again
	}
	return failed
}

// RefreshNamespaces has the annotations of all namespaces read again, because those of some changed. It does not block.
func (e *Engine) RefreshNamespaces() {
	e.stale.Raise()
}

// SetMapping says which local namespaces are reflected into which remote ones. Namespaces that leave the mapping are left
// alone: nothing in their twins is deleted.
func (e *Engine) SetMapping(mapping map[string]string) {
	e.mu.Lock()
	removed := map[string]string{}
	for namespace, twin := range e.mapping {
		if mapping[namespace] != twin {
			removed[namespace] = twin
		}
	}
	e.mapping = maps.Clone(mapping)
	if e.mapping == nil {
		e.mapping = map[string]string{}
	}
	e.mu.Unlock()
	for namespace := range removed {
		e.namespaces.Forget(namespace)
		e.reporter.forget(namespace)
	}
	e.follow()
}

// SetConfig changes workers and policy of a kind. Zero workers turn it off; what was reflected stays at the provider.
func (e *Engine) SetConfig(kind string, config offloadingv1beta1.ReflectorConfig) error {
	r, ok := e.runners[kind]
	if !ok {
		return fmt.Errorf("configuring the reflection of %q: there is no such kind; kinds are %s",
			kind, strings.Join(slices.Sorted(maps.Keys(e.runners)), ", "))
	}
	if r.configure(config) {
		e.bump()
		e.follow()
		r.rouse()
		r.reconsider("")
		r.usesKnown("")
		for _, child := range r.children {
			child.rouse()
			child.reconsider("")
		}
	}
	return nil
}

// SetNotReflected changes which labels and annotations stay at home.
func (e *Engine) SetNotReflected(not reflection.NotReflected) {
	e.mu.Lock()
	same := slices.Equal(e.notReflected.Labels, not.Labels) && slices.Equal(e.notReflected.Annotations, not.Annotations)
	e.notReflected = not
	e.mu.Unlock()
	if !same {
		e.bump()
		e.each(func(r *runner) { r.reconsider("") })
	}
}

// Problems lists the objects that could not be brought in step so far, in order of kind, namespace and name.
func (e *Engine) Problems() []Problem {
	var problems []Problem
	e.each(func(r *runner) { problems = append(problems, r.problems()...) })
	slices.SortFunc(problems, func(a, b Problem) int {
		return strings.Compare(a.Kind+"/"+a.Namespace+"/"+a.Name, b.Kind+"/"+b.Namespace+"/"+b.Name)
	})
	return problems
}

func (e *Engine) each(f func(*runner)) {
	for _, r := range e.runners {
		f(r)
	}
}

// follow brings the watches in step with the mapping, once the engine runs.
func (e *Engine) follow() {
	e.following.Lock()
	defer e.following.Unlock()
	mapping := e.snapshot()
	e.each(func(r *runner) { r.follow(mapping) })
}

func (e *Engine) snapshot() map[string]string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return maps.Clone(e.mapping)
}

func (e *Engine) bump() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.generation++
}

// settings returns what Translate depends on, and its generation.
func (e *Engine) settings() (not reflection.NotReflected, provider reflection.Provider, generation int64) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.notReflected, e.provider, e.generation
}
