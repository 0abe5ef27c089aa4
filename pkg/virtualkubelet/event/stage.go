package event

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/reflection"
)

// step says what is done next with an Event that waits.
type step int

const (
	// held: a Normal Event waits for a later one of its object.
	held step = iota
	// unknown: the local object is looked for.
	unknown
	// writing: the local Event is to be written.
	writing
)

// item names an Event that waits. Held ones are named by the object, so that a later one takes the place of an earlier;
// unknown ones by the remote Event, those to be written by the local Event.
type item struct {
	step          step
	namespace, id string
}

// entry is an Event that waits: the remote one, or the local one that is to be written.
type entry struct {
	event *corev1.Event
	// repeat says that the local Event probably exists.
	repeat bool
	tries  int
}

// stage is where Events wait, and are limited. Its queue names them, its maps hold the latest state of each.
type stage struct {
	carrier    *Carrier
	queue      workqueue.TypedDelayingInterface[item]
	correlator *record.EventCorrelator
	tokens     map[string]flowcontrol.PassiveRateLimiter
	written    *names
	group      sync.WaitGroup
	// workers are the channels that end each worker; only resize and stop use them.
	workers []chan struct{}

	mu      sync.Mutex
	entries map[item]entry
	counts  map[step]int
}

func newStage(c *Carrier) *stage {
	clock := c.options.Clock
	bucket := func() flowcontrol.PassiveRateLimiter {
		return flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(writesPerSecond, writeBurst, clock)
	}
	return &stage{
		carrier: c,
		queue:   workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[item]{Name: "events", Clock: clock}),
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{
			LRUCacheSize: cacheSize, Clock: clock, KeyFunc: similar, SpamKeyFunc: sameObject, MessageFunc: combined,
		}),
		tokens:  map[string]flowcontrol.PassiveRateLimiter{corev1.EventTypeNormal: bucket(), corev1.EventTypeWarning: bucket()},
		written: newNames(cacheSize),
		entries: map[item]entry{},
		counts:  map[step]int{},
	}
}

// sameObject groups the Events that are limited together: neither sources nor reasons that a provider invents give it more.
func sameObject(event *corev1.Event) string {
	return string(event.InvolvedObject.UID) + "/" + event.Type
}

// similar groups the Events that become one when there are many.
func similar(event *corev1.Event) (group, member string) {
	return sameObject(event) + "/" + event.Reason, event.Name
}

// combination starts the message of an Event that stands for several; no message of a provider starts so.
const combination = "(combined from similar events): "

func combined(event *corev1.Event) string { return combination + event.Message }

// resize changes how many workers there are. One that waits for work ends with the next piece of it.
func (s *stage) resize(ctx context.Context, workers int) {
	for len(s.workers) > workers {
		last := len(s.workers) - 1
		close(s.workers[last])
		s.workers = s.workers[:last]
	}
	for len(s.workers) < workers {
		end := make(chan struct{})
		s.workers = append(s.workers, end)
		s.group.Go(func() { s.work(ctx, end) })
	}
}

// stop ends all workers; what waits is dropped.
func (s *stage) stop() {
	s.queue.ShutDown()
	s.group.Wait()
}

func (s *stage) work(ctx context.Context, end <-chan struct{}) {
	for {
		i, down := s.queue.Get()
		if down {
			return
		}
		if e, ok := s.pop(i); ok && ctx.Err() == nil {
			s.handle(ctx, i, e)
		}
		s.queue.Done(i)
		select {
		case <-end:
			return
		default:
		}
	}
}

// put has an Event wait; a later one of the same name takes the place of an earlier, at the earlier's time. What there is no
// room for is dropped.
func (s *stage) put(i item, e entry, delay time.Duration) {
	limit := maxHeld
	if i.step == unknown {
		limit = maxUnknown
	}
	s.mu.Lock()
	before, waits := s.entries[i]
	if !waits && s.counts[i.step] >= limit {
		s.mu.Unlock()
		s.carrier.tally.count(outcomeOverflow)
		return
	}
	if waits {
		e.repeat = e.repeat && before.repeat
	} else {
		s.counts[i.step]++
	}
	s.entries[i] = e
	s.mu.Unlock()
	s.queue.AddAfter(i, delay)
}

// again has an Event wait anew, unless a later one waits already.
func (s *stage) again(i item, e entry, delay time.Duration) {
	s.mu.Lock()
	_, waits := s.entries[i]
	s.mu.Unlock()
	if !waits {
		s.put(i, e, delay)
	}
}

func (s *stage) pop(i item) (entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, waits := s.entries[i]
	if waits {
		delete(s.entries, i)
		s.counts[i.step]--
	}
	return e, waits
}

func (s *stage) input(namespace, twin string) reflection.EventInput {
	o := s.carrier.options
	return reflection.EventInput{
		Home: o.Home, Remote: o.Remote, Namespace: namespace, Twin: twin, Policy: o.Wanted.Get().Config.Type, Now: o.Clock.Now(),
	}
}

// intake takes an Event from a twin. It does not block.
func (s *stage) intake(namespace, twin string, event *corev1.Event, repeat bool) {
	target, skip := reflection.EventTarget(event, s.input(namespace, twin))
	if skip != nil {
		s.carrier.tally.count(skip.Reason)
		return
	}
	e := entry{event: slim(event), repeat: repeat}
	if event.Type == corev1.EventTypeNormal {
		s.put(item{held, namespace, target.Kind + "/" + target.Name}, e, calm)
		return
	}
	s.translate(item{unknown, namespace, string(event.UID)}, e)
}

func (s *stage) handle(ctx context.Context, i item, e entry) {
	if i.step != writing {
		s.translate(item{unknown, i.namespace, string(e.event.UID)}, e)
		return
	}
	if !s.tokens[e.event.Type].TryAccept() {
		s.again(i, e, tokenWait)
		return
	}
	err := s.write(ctx, e)
	if err == nil {
		s.carrier.tally.count(outcomeWritten)
		return
	}
	klog.FromContext(ctx).V(1).Info("An Event of the provider could not be written", "event", klog.KRef(i.namespace, i.id), "reason", err.Error())
	if e.tries++; e.tries < writeTries && transient(err) {
		s.again(i, e, time.Duration(e.tries)*tokenWait)
		return
	}
	s.carrier.tally.count(outcomeFailed)
}

// translate makes the local Event, if its object is known, and has it written if the limits let it; i is by what it waits
// while the object is not known.
func (s *stage) translate(i item, e entry) {
	twin := s.carrier.twinOf(i.namespace)
	in := s.input(i.namespace, twin)
	target, skip := reflection.EventTarget(e.event, in)
	if skip != nil {
		s.carrier.tally.count(skip.Reason)
		return
	}
	local, found := s.carrier.options.Locals.Find(e.event.InvolvedObject.Kind, target)
	if !found {
		if e.tries++; e.tries > findTries {
			s.carrier.tally.count(outcomeUnknown)
			return
		}
		s.again(i, e, findFirst<<(e.tries-1))
		return
	}
	event, skip := reflection.LocalEvent(e.event, local, in)
	if skip != nil {
		s.carrier.tally.count(skip.Reason)
		return
	}
	s.limit(event, e.repeat)
}

// limit counts an Event among those of its object, and has it written unless there were too many.
func (s *stage) limit(event *corev1.Event, repeat bool) {
	result, err := s.correlator.EventCorrelate(event)
	if err != nil || result.Skip {
		s.carrier.tally.count(outcomeLimited)
		return
	}
	out := result.Event
	if strings.HasPrefix(out.Message, combination) {
		out.Name = reflection.EventName(event.InvolvedObject.Name, s.carrier.options.Remote, "combined/"+sameObject(event)+"/"+event.Reason)
	} else {
		out.Count = max(out.Count, event.Count)
	}
	var delay time.Duration
	if s.written.has(out.Namespace + "/" + out.Name) {
		repeat, delay = true, calm
	}
	s.put(item{writing, out.Namespace, out.Name}, entry{event: out, repeat: repeat}, delay)
}
