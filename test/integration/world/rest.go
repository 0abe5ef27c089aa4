package world

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"liqo.io/liqo/test/integration/fixture"
)

// stillness is for how long nothing may be written until our components are at rest: longer than they take to try again.
const stillness = 12 * time.Second

// SettledIn waits until nothing of ours was written in namespaces, and about them, for a while: what was under way there is done.
func (s *Shared) SettledIn(t *testing.T, namespaces ...string) {
	t.Helper()
	s.settled(t, fmt.Sprintf("our components to come to rest in %v", namespaces), func(w fixture.Write) bool {
		return slices.Contains(namespaces, w.Namespace) || w.Namespace == "" && slices.Contains(namespaces, w.Name)
	})
}

// Settled waits until nothing of ours was written at all for a while: what was under way is done.
func (w *World) Settled(t *testing.T) {
	t.Helper()
	w.settled(t, "our components to come to rest", func(fixture.Write) bool { return true })
}

func (s *Shared) settled(t *testing.T, what string, counts func(fixture.Write) bool) {
	t.Helper()
	last, since := map[*fixture.Cluster]fixture.Moment{s.Rome: {}, s.Milan: {}}, time.Now()
	for c := range last {
		last[c] = c.Recorder.Now(t)
	}
	fixture.Await(t, 3*time.Minute, what, func(context.Context) (bool, string) {
		seen := "nothing"
		for c, start := range last {
			writes, end := c.Recorder.Next(t, start, fixture.OfLiqo)
			last[c] = end
			if writes = slices.DeleteFunc(writes, func(w fixture.Write) bool { return !counts(w) }); len(writes) > 0 {
				seen, since = fmt.Sprintf("at %s: %s", c.ID, Summary(writes)), time.Now()
			}
		}
		return time.Since(since) > stillness, seen
	})
}

// maxExamples is how many writes of one kind a summary shows.
const maxExamples = 3

// Summary counts equal writes whatever their names.
func Summary(writes []fixture.Write) string {
	counts := map[string]int{}
	example := map[string]string{}
	for _, w := range writes {
		kind := fmt.Sprintf("%s %s by %s", w.Verb, w.Resource, w.User)
		counts[kind]++
		if counts[kind] <= maxExamples {
			example[kind] += "\n       " + w.Namespace + "/" + w.Name + ": " + w.Body
		}
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%4d × %s, such as%s", counts[kind], kind, example[kind]))
	}
	return strings.Join(lines, "\n")
}
