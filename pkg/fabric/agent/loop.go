package agent

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/netlink"
)

// settle is how long changes are collected before something is made of them.
const settle = 200 * time.Millisecond

// maxLogged is how many changes a line of the log names.
const maxLogged = 20

// ErrLost ends an agent that is to be started again: the kernel does not tell any more what changes.
var ErrLost = errors.New("the kernel does not tell any more what changes")

// Settled passes a signal on, at most once in a while.
func Settled(ctx context.Context, from signal.Signal) signal.Signal {
	to := signal.New()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-from:
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(settle):
				to.Raise()
			}
		}
	}()
	return to
}

// Placement is what became of the State that is wanted.
type Placement struct {
	// Placed tells whether it is in the kernel; Err is what was refused if not.
	Placed bool
	Err    error
	// Failing is since when passes fail; zero if the last one did not.
	Failing time.Time
	// Refused are the administrators' parts that were refused, with why; all else is in the kernel.
	Refused map[string]error
	// Left says which routes the kernel refuses by their next hops; all else is in the kernel.
	Left []string
	// Repaired is when somebody else's changes were last put back; PutBack is what the first of them in that minute was.
	Repaired time.Time
	PutBack  []string
}

// See takes in what a pass came to, and logs it if it is news.
func (p *Placement) See(ctx context.Context, r netlink.Report, now time.Time) {
	logger := klog.FromContext(ctx)
	changes := r.Changes[:min(len(r.Changes), maxLogged)]
	switch {
	case r.Err != nil && (p.Err == nil || p.Err.Error() != r.Err.Error()):
		logger.Error(r.Err, "The kernel refuses what is wanted; it is tried again", "changes", changes)
	case r.Err != nil:
	case len(r.Refused) > 0:
		logger.Info("The kernel refuses what administrators ask for; it is tried again", "changes", changes, "refused", (&netlink.Refused{Parts: r.Refused}).Error())
	case len(r.Left) > 0:
		left := r.Left[:min(len(r.Left), maxLogged)]
		logger.Info("The kernel refuses routes by their next hops; they are left out, and tried again", "changes", changes, "left", left)
	case r.Repair && len(r.Changes) > 0:
		logger.Info("Somebody else changed what is ours; it was put back", "changes", changes)
	default:
		logger.Info("What is wanted is in the kernel", "changes", len(r.Changes))
	}
	p.Placed, p.Err, p.Refused, p.Left = r.Err == nil, r.Err, r.Refused, r.Left
	switch {
	case r.Err == nil:
		p.Failing = time.Time{}
	case p.Failing.IsZero():
		p.Failing = now
	}
	if r.Repair && len(r.Changes) > 0 {
		// Who tells of it does so once a minute, however often that happens.
		if !p.Repaired.Truncate(time.Minute).Equal(now.Truncate(time.Minute)) {
			p.PutBack = changes
		}
		p.Repaired = now
	}
}

// Keeper has States put into the kernel.
type Keeper struct {
	wanted newest[dataplane.State]
	// Reports are what became of them.
	Reports chan netlink.Report
}

// NewKeeper makes one.
func NewKeeper() *Keeper {
	return &Keeper{wanted: make(newest[dataplane.State], 1), Reports: make(chan netlink.Report, 16)}
}

// Want says what is wanted from now on. It is to be called by one goroutine.
func (k *Keeper) Want(state dataplane.State) { k.wanted.put(state) }

// Run keeps what is wanted in the kernel until the context ends. What is there stays.
func (k *Keeper) Run(ctx context.Context, kernel *netlink.Kernel) error {
	err := kernel.Keep(ctx, k.wanted, func(r netlink.Report) {
		select {
		case k.Reports <- r:
		case <-ctx.Done():
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(ErrLost, err)
}

// Sync follows objects, and returns when all have been listed.
func Sync(ctx context.Context, group *errgroup.Group, followers ...Follower) error {
	for _, f := range followers {
		group.Go(func() error { f.Run(ctx); return nil })
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !Synced(followers...) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// Synced tells whether all objects have been listed.
func Synced(followers ...Follower) bool {
	for _, f := range followers {
		if !f.Synced() {
			return false
		}
	}
	return true
}
