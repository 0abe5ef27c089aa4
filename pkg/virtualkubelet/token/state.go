package token

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/reflection"
)

// state is what is known of a pod's tokens. Only the worker that has the pod in hand reads and changes it, but for twin and
// secret, which the Keeper's lock guards.
type state struct {
	pod types.UID
	// twin and secret say where the tokens stand.
	twin, secret string

	// shape of what stands there; empty while nothing is known.
	shape string
	// lifetime of the tokens.
	lifetime time.Duration
	// expires is when the first token ends, renew when they are to be renewed.
	expires, renew time.Time
	// written is when they were written, and version the ledger's version then; zero if an earlier run did.
	written time.Time
	version string
	// seen says that the ledger showed them.
	seen bool

	// minted are tokens that the provider has not taken yet.
	minted map[reflection.PodToken]minted

	// failures in a row, told is when an Event told of one, warned that an Event told that tokens end.
	failures int
	told     time.Time
	warned   bool
}

// minted is a token of this cluster, and when it ends.
type minted struct {
	value   string
	expires time.Time
}

// fresh tells whether a token was issued so recently that it would not have to be renewed yet.
func (m minted) fresh(now time.Time, lifetime time.Duration) bool {
	return m.value != "" && now.Before(m.expires.Add(-lifetime/5-maxJitter))
}

// adopt takes over what an earlier run left.
func (s *state) adopt(entry reflection.TokenEntry, lifetime, jitter time.Duration) {
	s.shape, s.seen, s.lifetime = entry.Shape, true, lifetime
	s.schedule(entry.Expiration, jitter)
}

// schedule renews the tokens when four fifths of their life are over.
func (s *state) schedule(expires time.Time, jitter time.Duration) {
	s.expires, s.renew = expires, expires.Add(-s.lifetime/5-jitter)
}

// due tells whether the tokens have to be written, or when to look again.
func (s *state) due(shape string, l *published, now time.Time) (write bool, next time.Time) {
	switch {
	case s.shape != shape, !now.Before(s.renew):
		return true, time.Time{}
	case l == nil, l.partial && !l.lists(s.secret):
		return false, s.renew // it says nothing about them
	}
	entry := l.entries[s.secret]
	if entry.PodUID == string(s.pod) && entry.Shape == shape {
		s.seen = true
		return false, s.renew
	}
	// They are lost if they were there, or if the ledger was written again and had time to show them.
	calm := s.written.Add(ledgerGrace)
	switch {
	case !s.seen && l.version == s.version:
		return false, s.renew
	case now.Before(calm):
		return false, calm
	default:
		return true, time.Time{}
	}
}
