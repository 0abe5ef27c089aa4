package gateway

import (
	"fmt"
	"slices"
	"testing"

	"liqo.io/liqo/pkg/dataplane"
)

// slack is how many bytes the size in use may be below the largest that passes.
const slack = sizeStep + dataplane.Padding - 1

// way is a network that drops long packets.
type way struct {
	sizes sizes
	// carries is the size of the largest packet that gets through; asked counts the questions.
	carries, asked int
	// changes are how often another size was taken.
	changes int
}

// run asks for a while.
func (w *way) run(questions int) {
	for range questions {
		used := w.sizes.used
		for _, size := range w.sizes.next() {
			w.asked++
			if size <= w.carries {
				w.sizes.answer(w.sizes.number(size), size)
			}
		}
		if w.sizes.used != used {
			w.changes++
		}
	}
}

func (w *way) String() string {
	return fmt.Sprintf("%d, blocked %t, searching %t", w.sizes.used, w.sizes.blocked, w.sizes.searching)
}

// What is found on ways that carry so much, by devices that carry so much, after so much was told before.
func TestSizes(t *testing.T) {
	for name, tc := range map[string]struct {
		most, before, carries int
		// atLeast is what is found at least; never more than is carried.
		atLeast int
		blocked bool
	}{
		"all":                              {most: 1440, carries: 1440, atLeast: 1440},
		"all, and less was told before":    {most: 1440, before: 1340, carries: 1500, atLeast: 1440},
		"a byte less":                      {most: 1440, carries: 1439, atLeast: 1439 - slack},
		"a little less":                    {most: 1440, carries: 1340, atLeast: 1340 - slack},
		"the same as before":               {most: 1440, before: 1337, carries: 1340, atLeast: 1340 - slack},
		"the least":                        {most: 1440, carries: 1280, atLeast: 1280},
		"less than the least":              {most: 1440, carries: 1279, atLeast: 1280, blocked: true},
		"less than the least, told before": {most: 1440, before: 9000, carries: 0, atLeast: 1280, blocked: true},
		"large packets":                    {most: 8941, carries: 8941, atLeast: 8941},
		"large packets, but not as large":  {most: 8941, carries: 5000, atLeast: 5000 - slack},
		"devices with less than the least": {most: 1000, carries: 1000, atLeast: 1000},
		"such, and a way with less":        {most: 1000, carries: 999, atLeast: 1000, blocked: true},
	} {
		w := &way{carries: tc.carries}
		w.run(3)
		if w.asked > 0 {
			t.Errorf("%s: asked for %v while it is not known what devices let pass", name, w.sizes.asked)
		}
		w.sizes.bound(tc.most, tc.before)
		w.run(4*sizeTries + 2)
		if w.sizes.used < tc.atLeast || !tc.blocked && w.sizes.used > tc.carries || w.sizes.blocked != tc.blocked || w.sizes.searching {
			t.Errorf("%s: %s, want at least %d and blocked %t", name, w, tc.atLeast, tc.blocked)
		}
		found := *w
		w.run(3 * measureEvery)
		if w.changes != found.changes || w.sizes.blocked != tc.blocked {
			t.Errorf("%s: after a while it is %s", name, w)
		}
	}
}

// Questions about sizes are rare while nothing changes.
func TestSizesAreSeldomAskedFor(t *testing.T) {
	w := &way{carries: 1440}
	w.sizes.bound(1440, 0)
	w.run(10)
	w.asked = 0
	w.run(1000)
	if w.asked != 1000/confirmEvery {
		t.Errorf("asked for %d sizes along with 1000 questions", w.asked)
	}
}

// A way that changes is followed: down soon, up later, at once if nothing got through before.
func TestSizesFollowTheWay(t *testing.T) {
	w := &way{carries: 1440}
	w.sizes.bound(1440, 0)
	for i, step := range []struct {
		carries, questions, from, to int
	}{
		{1440, 5, 1440, 1440},
		{1300, confirmEvery + 3*sizeTries + 3, 1300 - slack, 1300},
		{1440, measureEvery / 2, 1300 - slack, 1300},
		{1440, measureEvery, 1440, 1440},
		{100, confirmEvery + 2*sizeTries + 3, 1280, 1280},
		{1440, 5, 1440, 1440},
		{1420, confirmEvery + 3*sizeTries + 3, 1420 - slack, 1420},
	} {
		w.carries = step.carries
		w.run(step.questions)
		if w.sizes.used < step.from || w.sizes.used > step.to {
			t.Errorf("step %d: %s, want from %d to %d", i, w, step.from, step.to)
		}
	}
	if w.sizes.blocked {
		t.Error("blocked, although something gets through")
	}
	w.carries = 1440
	w.sizes.measure()
	w.run(3)
	if w.sizes.used != 1440 {
		t.Errorf("told to measure: %s", w)
	}
	w.sizes.bound(1400, 0)
	if w.sizes.used != 1400 {
		t.Errorf("with smaller devices: %s", w)
	}
}

// Packets that are lost now and then, whatever their size, and an other end that is silent now and then, change nothing.
func TestSizesStayAlthoughPacketsAreLost(t *testing.T) {
	w := &way{carries: 1440}
	w.sizes.bound(1440, 0)
	w.run(5)
	for i := range 200 {
		switch {
		case i%3 > 0:
			w.carries = 0
			w.run(1)
		default:
			w.carries = 1440
			w.run(1)
		}
		if i%17 == 0 {
			w.carries = 0
			w.run(sizeTries - 1)
			w.sizes.lost()
		}
	}
	if w.changes > 0 {
		t.Errorf("%d changes, %s", w.changes, w)
	}
}

// A peer cannot make it anything that was not asked for.
func TestSizesAreNotAPeersToChoose(t *testing.T) {
	var s sizes
	s.bound(1440, 0)
	for range 40 {
		asked := s.next()
		for _, size := range []int{0, 1, 576, 1279, 1281, 1441, 9000, 65535} {
			s.answer(s.number(size), size)
		}
		if len(asked) > 0 {
			// Of another length than the question, and to questions that were not asked yet, or long ago.
			s.answer(s.number(1440), 1280)
			s.answer(s.number(1440)+5<<sizeBits, 1440)
			s.answer(sizeNumber|1440, 1440)
		}
		if s.used < leastMTU || s.used > 1440 || slices.Contains(asked, s.answered) {
			t.Fatalf("%d is used, %d counts as answered", s.used, s.answered)
		}
	}
	if !s.blocked {
		t.Error("a peer that answers no question has packets pass")
	}
	if s.answer(1440, 1440) {
		t.Error("an answer to a short question is taken for one about a size")
	}
}
