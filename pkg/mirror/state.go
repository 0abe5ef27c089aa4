package mirror

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/reflection"
)

// state is what is remembered of one object beyond the caches. Losing it costs at most a request. The worker that has the object uses it, and
// no other one meanwhile; what watches and the workers of other kinds use, too, is seen.
type state struct {
	seen
	// written is what was written last, and when the same was written before.
	written string
	times   restraint.Writes
	// entry is what the ledger will show of the last write, made at the time when the ledger was at version; empty for a
	// removal.
	entry   *entry
	at      time.Time
	version string
	// imprint is what is known of an object that can only be written; nil if nothing is.
	imprint *imprint
	// lookAt is when to look at the object itself if the ledger still shows nothing, lookPause how long that waits.
	lookAt    time.Time
	lookPause time.Duration
	// removed is the remote object that was deleted last; until then no other delete of it is sent.
	removed      types.UID
	removedUntil time.Time
	// inStep is what was wanted when the live object held it.
	inStep string
	// revertedAt is when a change that was put back was told last.
	revertedAt time.Time
	// broughtBack is when the status of the local object was written lately.
	broughtBack restraint.Writes
	// refused is what the provider refused, so that it is not asked for again.
	refused refusal
	// kept is what stays of the remote object although it would not be made like that.
	kept string
	// dropped is what the provider does not keep, so that it is not written again.
	dropped dropped
	// warned is the last failure that was told.
	warned   string
	warnedAt time.Time
}

// seen is the part of a state that is used from anywhere.
type seen struct {
	// last is when anything was written last, in nanoseconds since 1970.
	last atomic.Int64
	// answered is what the peer answered to the last write, nil once the cache caught up.
	answered atomic.Pointer[answered]
	// unconfirmed says that the ledger does not show the last write yet.
	unconfirmed atomic.Bool
	// deleted is the local object that was seen to be deleted last.
	deleted atomic.Pointer[types.UID]
	// remarked is what was last found to be wrong with the local object; nil or empty if nothing was.
	remarked atomic.Pointer[string]
}

// answered is an answer, believed until it expires.
type answered struct {
	answer  reflection.Object
	expires time.Time
}

// state returns the memory of a local object.
func (p *pair) state(name string) *state {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.states[name] == nil {
		p.states[name] = &state{}
	}
	return p.states[name]
}

// forget drops the memory of an object that is gone on both sides.
func (p *pair) forget(name string) {
	p.options().Removals.Settle(p.kind().Name, p.namespace, name)
	p.met.Delete(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, name)
}

// remember takes note of the peer's answer to a write.
func (s *state) remember(answer reflection.Object, now time.Time) {
	s.answered.Store(&answered{answer, now.Add(overlayLife)})
}

// vanished takes note of a deletion that the cache saw.
func (s *seen) vanished(object reflection.Object) {
	if known := s.answered.Load(); known != nil && known.answer.GetUID() == object.GetUID() {
		s.answered.CompareAndSwap(known, nil)
	}
}

// goes takes note that the local object was seen to be deleted.
func (s *seen) goes(uid types.UID) { s.deleted.Store(&uid) }

// went tells whether the local object of that UID was seen to be deleted.
func (s *seen) went(uid types.UID) bool {
	deleted := s.deleted.Load()
	return deleted != nil && *deleted != "" && *deleted == uid
}

// removes takes note that the deletion of a remote object was accepted.
func (s *state) removes(uid types.UID, now time.Time) {
	s.removed, s.removedUntil = uid, now.Add(overlayLife)
}

// removing tells how long an object that the cache still shows is known to be deleted already.
func (s *state) removing(uid types.UID, now time.Time) time.Duration {
	if uid != s.removed {
		return 0
	}
	return max(0, s.removedUntil.Sub(now))
}

// newest returns the cached object or, while the cache lags behind it, the answer to the last write; wait is how long the
// answer will be believed at most.
func (s *state) newest(cached reflection.Object, now time.Time) (live reflection.Object, wait time.Duration) {
	known := s.answered.Load()
	if known == nil {
		return cached, 0
	}
	if !now.Before(known.expires) || cached != nil && !older(cached, known.answer) {
		s.answered.CompareAndSwap(known, nil)
		return cached, 0
	}
	return known.answer, known.expires.Sub(now)
}

func older(a, b reflection.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// mayWrite tells how long to wait before the same may be written again; zero lets it be written now.
func (s *state) mayWrite(what string, now time.Time) time.Duration {
	if s.written != what {
		return 0
	}
	return s.times.Wait(now)
}

// mayTell tells whether a change that was put back is to be told now.
func (s *state) mayTell(now time.Time) bool {
	return s.revertedAt.IsZero() || now.Sub(s.revertedAt) >= warnEvery
}

// tells takes note that it is told.
func (s *state) tells(now time.Time) {
	s.revertedAt = now
}

// settle takes note that the live object holds what is wanted.
func (s *state) settle(what string) {
	s.inStep = what
}

// settled tells whether the live object held this before.
func (s *state) settled(what string) bool {
	return s.inStep == what
}

// wrote takes note of a successful write.
func (s *state) wrote(what string, now time.Time) {
	if s.written != what {
		s.written, s.times = what, nil
	}
	s.times.Add(now)
	s.last.Store(now.UnixNano())
}

// unrest is how long the object is to be left alone so that no two writes come closer than calm.
func (s *seen) unrest(calm time.Duration, now time.Time) time.Duration {
	return max(0, time.Unix(0, s.last.Load()).Add(calm).Sub(now))
}

// mayWarn tells whether a failure is to be told now.
func (s *state) mayWarn(what string, now time.Time) bool {
	if s.warned == what && now.Sub(s.warnedAt) < warnEvery {
		return false
	}
	s.warned, s.warnedAt = what, now
	return true
}

// remarks takes note of what is wrong with the local object, and tells whether that is news.
func (s *seen) remarks(what string) bool {
	before := s.remarked.Swap(&what)
	return before == nil && what != "" || before != nil && *before != what
}
