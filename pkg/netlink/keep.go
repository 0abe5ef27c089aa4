package netlink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"liqo.io/liqo/pkg/dataplane"
)

const (
	// look is how often the kernel is looked at although it told nothing.
	look = time.Minute
	// retry is after how long a pass is tried again that failed.
	retry = time.Second
	// later is after how long the kernel is asked again for what administrators want and it refused: a device may have come.
	later = 10 * time.Second
)

// Report tells of a pass that changed something or failed, and of the first one after which a State is in place.
type Report struct {
	// Changes are what was changed; none if the State was in place already.
	Changes []string
	// Repair is set if the State had been in place: somebody else has changed what is ours.
	Repair bool
	// Err is what the pass failed for; it is tried again.
	Err error
	// Refused are the parts of administrators that the kernel refused, with why. All else is in place, and they are tried again.
	Refused map[string]error
	// Left says which routes the kernel refuses by their next hops, and why. All else is in place, and they are tried again.
	Left []string
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
	var kept keeping
	next := time.NewTimer(look)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-lost:
			// Who ends closes what is listened to, too.
			return cmp.Or(ctx.Err(), fmt.Errorf("listen to the kernel: %w", err))
		case newest := <-wanted:
			kept.want(newest)
		case <-events:
		case <-next.C:
		}
		if !kept.known {
			continue
		}
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		r, complaint, own := k.report(kept.state)
		if kept.news(&r, complaint, own) {
			report(r)
		}
		next.Reset(r.pause())
	}
}

// keeping is what Keep remembers from one pass to the next.
type keeping struct {
	state dataplane.State
	// known says that there is a State, placed that it has been in place, told that the last pass succeeded, which was reported.
	known, placed, told bool
	// complaint is what the kernel refused of administrators' parts, and by their next hops.
	complaint string
}

// want takes the next State. The same one once more is no news: what differs from it then was changed by somebody else.
func (p *keeping) want(newest dataplane.State) {
	p.placed = p.placed && reflect.DeepEqual(newest, p.state)
	p.state, p.known, p.told = newest, true, false
}

// news tells whether a pass is to be reported, and says in it whether it was a repair, which may take several passes; own says that this process
// had made a change itself.
func (p *keeping) news(r *Report, complaint string, own bool) bool {
	is := len(r.Changes) > 0 || r.Err != nil || !p.told || complaint != p.complaint
	r.Repair = p.placed && len(r.Changes) > 0 && complaint == p.complaint && !own
	p.placed, p.told, p.complaint = p.placed || r.Err == nil, r.Err == nil, complaint
	return is
}

// report makes a pass; complaint is what the kernel refused without harm to the rest, own says that this process has changed something before.
func (k *Kernel) report(state dataplane.State) (r Report, complaint string, own bool) {
	r, own = k.apply(state)
	complaint = strings.Join(r.Left, "; ")
	var refused *Refused
	if errors.As(r.Err, &refused) {
		r.Refused, r.Err = refused.Parts, nil
		complaint += refused.Error()
	}
	return r, complaint, own
}

// pause is how long after a pass the next one is due at the latest.
func (r Report) pause() time.Duration {
	switch {
	case r.Err != nil:
		return retry
	case len(r.Refused)+len(r.Left) > 0:
		return later
	default:
		return look
	}
}
