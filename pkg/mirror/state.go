package mirror

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/reflection"
)

// state is what is remembered of one object beyond the caches. Losing it costs at most a request.
type state struct {
	mu sync.Mutex
	// written is what was written last, and when the same was written before.
	written string
	times   restraint.Writes
	// last is when anything was written last.
	last time.Time
	// answer is what the peer answered to the last write, believed until the cache caught up or until expires.
	answer  reflection.Object
	expires time.Time
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
	// gone is the local object that was seen to be deleted last.
	gone types.UID
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
	// remarked is what was last found to be wrong with the local object, empty if nothing was.
	remarked string
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
	p.met.forget(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, name)
}

// remember takes note of the peer's answer to a write.
func (s *state) remember(answer reflection.Object, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.expires = answer, now.Add(overlayLife)
}

// vanished takes note of a deletion that the cache saw.
func (s *state) vanished(object reflection.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil && s.answer.GetUID() == object.GetUID() {
		s.answer = nil
	}
}

// goes takes note that the local object was seen to be deleted.
func (s *state) goes(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = uid
}

// went tells whether the local object of that UID was seen to be deleted.
func (s *state) went(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone != "" && s.gone == uid
}

// removes takes note that the deletion of a remote object was accepted.
func (s *state) removes(uid types.UID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed, s.removedUntil = uid, now.Add(overlayLife)
}

// removing tells how long an object that the cache still shows is known to be deleted already.
func (s *state) removing(uid types.UID, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if uid != s.removed {
		return 0
	}
	return max(0, s.removedUntil.Sub(now))
}

// newest returns the cached object or, while the cache lags behind it, the answer to the last write; wait is how long the
// answer will be believed at most.
func (s *state) newest(cached reflection.Object, now time.Time) (live reflection.Object, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer == nil {
		return cached, 0
	}
	if !now.Before(s.expires) || cached != nil && !older(cached, s.answer) {
		s.answer = nil
		return cached, 0
	}
	return s.answer, s.expires.Sub(now)
}

func older(a, b reflection.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order < 0
}

// mayWrite tells how long to wait before the same may be written again; zero lets it be written now.
func (s *state) mayWrite(what string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written != what {
		return 0
	}
	return s.times.Wait(now)
}

// mayTell tells whether a change that was put back is to be told now.
func (s *state) mayTell(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revertedAt.IsZero() || now.Sub(s.revertedAt) >= warnEvery
}

// tells takes note that it is told.
func (s *state) tells(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revertedAt = now
}

// settle takes note that the live object holds what is wanted.
func (s *state) settle(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inStep = what
}

// settled tells whether the live object held this before.
func (s *state) settled(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inStep == what
}

// wrote takes note of a successful write.
func (s *state) wrote(what string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written != what {
		s.written, s.times = what, nil
	}
	s.times.Add(now)
	s.last = now
}

// unrest is how long the object is to be left alone so that no two writes come closer than calm.
func (s *state) unrest(calm time.Duration, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.last.Add(calm).Sub(now))
}

// mayWarn tells whether a failure is to be told now.
func (s *state) mayWarn(what string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warned == what && now.Sub(s.warnedAt) < warnEvery {
		return false
	}
	s.warned, s.warnedAt = what, now
	return true
}

// remarks takes note of what is wrong with the local object, and tells whether that is news.
func (s *state) remarks(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.remarked != what
	s.remarked = what
	return news
}
