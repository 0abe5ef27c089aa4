// Package restraint bounds how often the same thing is written again because somebody undoes it, and how often that is told. With
// both, two controllers that do not agree cost an API server four writes a minute, and nobody's Events are flooded.
package restraint

import (
	"slices"
	"time"
)

const (
	// Most is how often the same is written within the time Within.
	Most = 2
	// Within is the time in which writes are counted.
	Within = time.Minute
	// TellEvery is how often the same is told.
	TellEvery = 5 * time.Minute
)

// Writes are the times of the latest writes of one and the same thing, the earliest first. What is wanted anew is another thing.
type Writes []time.Time

// Wait is how long the same must not be written; zero lets it be written now.
func (w *Writes) Wait(now time.Time) time.Duration {
	*w = slices.DeleteFunc(*w, func(at time.Time) bool { return now.Sub(at) >= Within })
	if len(*w) < Most {
		return 0
	}
	return (*w)[0].Add(Within).Sub(now)
}

// Add takes note of a write. Only as many are kept as matter.
func (w *Writes) Add(now time.Time) {
	times := append(*w, now)
	*w = times[max(0, len(times)-Most):]
}

// Due tells whether something that was last told then is to be told now.
func Due(last, now time.Time) bool { return last.IsZero() || now.Sub(last) >= TellEvery }

// MayTell is Due, and takes note that it is told.
func MayTell(last *time.Time, now time.Time) bool {
	if !Due(*last, now) {
		return false
	}
	*last = now
	return true
}
