package restraint

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestWait(t *testing.T) {
	for name, tc := range map[string]struct {
		at   []time.Duration
		now  time.Duration
		want time.Duration
	}{
		"nothing was written":                    {nil, 0, 0},
		"one write":                              {[]time.Duration{0}, 0, 0},
		"two writes at once":                     {[]time.Duration{0, 0}, 20 * time.Second, 40 * time.Second},
		"two writes apart":                       {[]time.Duration{0, 50 * time.Second}, 59 * time.Second, time.Second},
		"a minute after the first":               {[]time.Duration{0, 50 * time.Second}, time.Minute, 0},
		"more writes than are meant to be":       {[]time.Duration{0, 10 * time.Second, 20 * time.Second}, time.Minute, 10 * time.Second},
		"long after all":                         {[]time.Duration{0, 0, 0}, time.Hour, 0},
		"a clock that is behind what it noted":   {[]time.Duration{time.Second, time.Second}, 0, time.Minute + time.Second},
		"one of long ago and one of a while ago": {[]time.Duration{0, time.Hour}, time.Hour + time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var writes Writes
			for _, at := range tc.at {
				writes.Add(noon.Add(at))
			}
			if got := writes.Wait(noon.Add(tc.now)); got != tc.want {
				t.Errorf("waits %s, want %s", got, tc.want)
			}
		})
	}
}

// However somebody fights who writes only when it may: no more than Most writes lie in any time of this length, and each waits no
// longer than it must.
func TestNoMoreThanMostWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var writes Writes
		var made []time.Time
		now := noon
		for range rapid.IntRange(1, 50).Draw(t, "rounds") {
			now = now.Add(time.Duration(rapid.IntRange(0, int(2*Within/time.Second)).Draw(t, "pause")) * time.Second)
			recent := 0
			for _, at := range made {
				if now.Sub(at) < Within {
					recent++
				}
			}
			wait := writes.Wait(now)
			if free := recent < Most; free != (wait == 0) || wait < 0 || wait > Within {
				t.Fatalf("after %d writes within %s it waits %s", recent, Within, wait)
			}
			if wait == 0 {
				writes.Add(now)
				made = append(made, now)
			}
		}
	})
}

func TestMayTell(t *testing.T) {
	var last time.Time
	for _, tc := range []struct {
		at   time.Duration
		want bool
	}{{0, true}, {time.Second, false}, {TellEvery - 1, false}, {TellEvery, true}, {TellEvery + time.Second, false}} {
		if got := MayTell(&last, noon.Add(tc.at)); got != tc.want {
			t.Errorf("after %s: %v, want %v", tc.at, got, tc.want)
		}
	}
}
