package mirror

import (
	"maps"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// entry is what a ledger shows of one object.
type entry struct {
	originUID, hash string
}

// String is the entry as it stands in the ledger.
func (e entry) String() string { return e.originUID + " " + e.hash }

// ledger is the provider's word on what became of objects that can only be written.
type ledger struct {
	// published tells whether the provider keeps a ledger at all.
	published bool
	version   string
	entries   map[string]string
	// partial tells that it could not list everything.
	partial bool
}

// objectName is what a name in a ledger must look like: the provider may have written anything.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

func ledgerOf(view *watched, name string) ledger {
	object, ok := view.get(name).(*corev1.ConfigMap)
	if !ok {
		return ledger{}
	}
	_, partial := object.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]
	return ledger{published: true, version: object.ResourceVersion, entries: object.Data, partial: partial}
}

func (l ledger) names() []string {
	var names []string
	for name := range l.entries {
		if objectName.MatchString(name) && l.lists(name) {
			names = append(names, name)
		}
	}
	return names
}

// origin is the UID of the local object that an entry says to stand for; empty if there is none.
func (l ledger) origin(name string) types.UID {
	uid, _, _ := strings.Cut(strings.TrimSpace(l.entries[name]), " ")
	return types.UID(uid)
}

// lists tells whether the ledger shows a reflected object of that name. Pods' tokens stand there, too, but are not ours to
// keep in step.
func (l ledger) lists(name string) bool {
	value, there := l.entries[name]
	return there && !reflection.IsTokenEntry(value)
}

// shows tells whether the ledger says what the last write made, or that nothing is there after a removal.
func (l ledger) shows(name string, e *entry) bool {
	if e == nil {
		return l.published && !l.partial && !l.lists(name)
	}
	return strings.TrimSpace(l.entries[name]) == e.String()
}

// ledgerEvent returns the handler of a ledger's events: it queues the objects whose entries changed, and those that wait for
// the ledger. A ledger that vanishes says nothing about any object.
func (p *pair) ledgerEvent() func(object reflection.Object, deleted bool) {
	var before map[string]string
	return func(object reflection.Object, deleted bool) {
		now, ok := object.(*corev1.ConfigMap)
		if !ok || deleted {
			return
		}
		for name, value := range now.Data {
			if objectName.MatchString(name) && before[name] != value && !reflection.IsTokenEntry(value) {
				p.enqueue(name)
			}
		}
		for name, value := range before {
			if _, there := now.Data[name]; !there && !reflection.IsTokenEntry(value) {
				p.enqueue(name)
			}
		}
		before = now.Data
		p.mu.Lock()
		waiting := maps.Clone(p.states)
		p.mu.Unlock()
		for name, s := range waiting {
			if s.waits() {
				p.enqueue(name)
			}
		}
	}
}

// sent takes note of a write that the ledger will show; nil stands for a removal.
func (s *state) sent(e *entry, l ledger, now time.Time) {
	s.entry, s.at, s.version = e, now, l.version
	s.unconfirmed.Store(true)
	s.lookAt, s.lookPause = now.Add(ledgerLate), ledgerLate
}

// patience is how long to wait before looking at the object itself.
func (s *state) patience(now time.Time) time.Duration {
	return max(0, s.lookAt.Sub(now))
}

// looked takes note that the object is there as it was written, and returns when to look again.
func (s *state) looked(now time.Time) time.Duration {
	s.lookPause = min(2*s.lookPause, ledgerLatest)
	s.lookAt = now.Add(s.lookPause)
	return s.lookPause
}

// lost takes note that what was written is gone.
func (s *state) lost() {
	s.entry = nil
}

// pending tells whether the last write was of this entry and the ledger may still lag behind it. It lags as long as it was
// not rewritten since, and for a while afterwards; wait is the rest of that while.
func (s *state) pending(e *entry, name string, l ledger, now time.Time) (pending bool, wait time.Duration) {
	switch {
	case s.at.IsZero(), (s.entry == nil) != (e == nil), e != nil && *s.entry != *e:
		return false, 0
	case !l.published || l.version == s.version, l.partial && !l.lists(name):
		return true, 0
	default:
		wait = s.at.Add(ledgerGrace).Sub(now)
		return wait > 0, max(wait, 0)
	}
}

// waits tells whether a write is not confirmed by the ledger yet.
func (s *seen) waits() bool { return s.unconfirmed.Load() }

// confirmed drops the memory of the last write, because the ledger shows it.
func (s *state) confirmed() {
	s.at, s.entry = time.Time{}, nil
	s.unconfirmed.Store(false)
}

// exists tells whether the remote object seems to exist: by the last write, if the ledger was not rewritten since, else by
// the ledger.
func (s *state) exists(name string, l ledger) bool {
	if !s.at.IsZero() && s.version == l.version {
		return s.entry != nil
	}
	return l.lists(name) || !s.at.IsZero() && s.entry != nil
}

// touched tells whether something was written that the ledger did not confirm yet.
func (s *state) touched() bool {
	return !s.at.IsZero() && s.entry != nil
}
