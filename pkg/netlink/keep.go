package netlink

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"golang.org/x/time/rate"

	"liqo.io/liqo/pkg/dataplane"
)

const (
	// look is how often the kernel is looked at although it told nothing.
	look = time.Minute
	// retry is after how long a pass is tried again that failed.
	retry = time.Second
)

// Report tells of a pass that changed something or failed, and of the first one after which a State is in place.
type Report struct {
	// Changes are what was changed; none if the State was in place already.
	Changes []string
	// Repair is set if the State had been in place: somebody else has changed what is ours.
	Repair bool
	// Err is what the pass failed for; it is tried again.
	Err error
}

// Keep puts the States that come on wanted into the kernel, each in place of the one before, and repairs what others change, until ctx ends. It
// returns an error if the kernel does not tell any more what changes.
func (k *Kernel) Keep(ctx context.Context, wanted <-chan dataplane.State, report func(Report)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, lost, err := k.watch(ctx)
	if err != nil {
		return err
	}
	// Who fights with somebody over the same rule should not take a processor for it.
	pace := rate.NewLimiter(rate.Every(200*time.Millisecond), 5)
	var state dataplane.State
	known, placed, told := false, false, false
	next := time.NewTimer(look)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			return fmt.Errorf("listen to the kernel: %w", err)
		case newest := <-wanted:
			// The same State once more is no news: what differs from it then was changed by somebody else.
			placed = placed && reflect.DeepEqual(newest, state)
			state, known, told = newest, true, false
		case <-events:
		case <-next.C:
		}
		if !known {
			continue
		}
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		changes, err := k.Apply(state)
		if len(changes) > 0 || err != nil || !told {
			report(Report{Changes: changes, Repair: placed && len(changes) > 0, Err: err})
		}
		placed, told = err == nil, err == nil
		next.Reset(pause(err))
	}
}

// pause is how long after a pass the next one is due at the latest.
func pause(err error) time.Duration {
	if err != nil {
		return retry
	}
	return look
}
