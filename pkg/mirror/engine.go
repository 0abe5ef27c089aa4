package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/namespaces"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/signal"
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
	budget  *replica.Budget
	started atomic.Bool
	// inForce is what is wanted, as far as it was taken up.
	inForce atomic.Pointer[inForce]
	// throttled is until when the provider asked to be left alone.
	throttled latest.Value[time.Time]
	// version of the provider's API server, as last seen; only Run uses it.
	version string
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
		options:  o,
		runners:  map[string]*runner{},
		reporter: reporter,
		wake:     signal.New(),
		stale:    signal.New(),
		budget:   o.Budget,
	}
	e.inForce.Store(&inForce{Wanted: o.Wanted.Get()})
	e.namespaces = namespaces.New(o.Local, o.Clock, o.RequestTimeout)
	for _, kind := range o.Kinds {
		if _, twice := e.runners[kind.Name]; twice {
			return nil, fmt.Errorf("making a reflection engine: kind %q is given twice", kind.Name)
		}
		e.runners[kind.Name] = newRunner(e, kind)
	}
	e.adopt()
	return e, nil
}

// Run reflects until ctx ends, and returns when everything that it started has ended. It runs once.
func (e *Engine) Run(ctx context.Context) error {
	if e.started.Swap(true) {
		return errors.New("running the reflection engine: it ran before; make a new one")
	}
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
	defer e.options.Wanted.Follow(e.follow)()
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
	for namespace := range e.inForce.Load().Mapping {
		changed, again := e.namespaces.Refresh(ctx, namespace)
		if changed {
			e.namespaceChanged(namespace)
		}
		failed = failed || again
	}
	return failed
}

// namespaceChanged looks again at the objects of a namespace whose metadata changed, and at those of all that may select it.
func (e *Engine) namespaceChanged(namespace string) {
	e.each(func(r *runner) {
		if r.kind.SelectsTwins {
			r.reconsider("")
		} else {
			r.reconsider(namespace)
		}
	})
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
