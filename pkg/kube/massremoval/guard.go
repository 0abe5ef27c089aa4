package massremoval

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// lately is how long what was let go counts with what is asked for next.
	lately = 10 * time.Minute
	// confirmedFor is how long what was confirmed may take to go.
	confirmedFor = 24 * time.Hour
)

// Options of a Guard.
type Options struct {
	// Share of the copies of a kind, in percent, that may go at once, of all and of those of a namespace.
	Share int
	// Changed is called when what is held changes; it does not block. Nil means that nobody wants to know.
	Changed func()
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
}

// Guard decides about the removals that lists tell, for all copies at one provider. Make it with New; all methods may be called at any
// time from anywhere. A nil one lets everything go.
type Guard struct {
	options Options
	// judging lets one inventory be taken at a time: who waited finds its own copy judged.
	judging sync.Mutex

	mu sync.Mutex
	// held are the copies that stay for now, by their originals, with how to have one looked at again.
	held map[place]holding
	// passed are the copies that may go.
	passed map[Copy]pass
	// resumed is what an earlier process said is held; empty if that is over.
	resumed string
}

type place struct{ kind, namespace, name string }

type holding struct {
	copy  Copy
	again func(Copy)
}

// pass lets a copy go for a while; counts says that nobody confirmed it.
type pass struct {
	until  time.Time
	counts bool
}

// New makes a Guard that holds nothing.
func New(o Options) *Guard {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	return &Guard{options: o, held: map[place]holding{}, passed: map[Copy]pass{}}
}

// May tells whether a copy may go whose original is missing. If not it is held, and again is called for it once it may. What there is of
// its kind is only taken stock of if it was not judged yet.
func (g *Guard) May(c Copy, stock func() (Inventory, error), again func(Copy)) (bool, error) {
	if g == nil || g.options.Share >= Unlimited {
		return true, nil
	}
	if may, judged := g.verdict(c); judged {
		return may, nil
	}
	g.judging.Lock()
	defer g.judging.Unlock()
	if may, judged := g.verdict(c); judged {
		return may, nil
	}
	inventory, err := stock()
	if err != nil {
		return false, err
	}
	may := g.judge(c, inventory, again)
	if !may {
		g.options.Changed()
	}
	return may, nil
}

// verdict is what was decided about a copy already.
func (g *Guard) verdict(c Copy) (may, judged bool) {
	now := g.options.Clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if passed, there := g.passed[c]; there && now.Before(passed.until) {
		return true, true
	}
	return false, g.held[placeOf(c)].copy == c
}

// judge decides about all copies that are missing their originals.
func (g *Guard) judge(c Copy, inventory Inventory, again func(Copy)) bool {
	now := g.options.Clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	missing := map[Copy]bool{c: true}
	for _, other := range inventory.Missing {
		if other.Kind == c.Kind {
			missing[other] = true
		}
	}
	counts, all := map[string]int{}, map[string]int{}
	maps.Copy(all, inventory.All)
	for other := range missing {
		counts[other.Namespace]++
	}
	for passed, p := range g.passed {
		switch {
		case !now.Before(p.until):
			delete(g.passed, passed)
		case p.counts && passed.Kind == c.Kind && !missing[passed]:
			counts[passed.Namespace]++
			all[passed.Namespace]++
		}
	}
	stays := TooMany(counts, all, g.options.Share, inventory.Data)
	for namespace := range counts {
		stays[namespace] = stays[namespace] || g.holds(c.Kind, namespace)
	}
	for other := range missing {
		if _, passed := g.passed[other]; passed {
			continue
		}
		if stays[other.Namespace] {
			g.held[placeOf(other)] = holding{copy: other, again: again}
		} else {
			g.passed[other] = pass{until: now.Add(lately), counts: true}
		}
	}
	return !stays[c.Namespace]
}

// holds tells whether copies of a kind and namespace are held, or were by an earlier process: whatever else of these is missing is held, too. The
// caller locks.
func (g *Guard) holds(kind, namespace string) bool {
	if g.resumed != "" {
		if places, all := heldBefore(g.resumed); !all || places[place{kind: kind, namespace: namespace}] {
			return true
		}
	}
	for p := range g.held {
		if p.kind == kind && p.namespace == namespace {
			return true
		}
	}
	return false
}

// Allow lets a copy go of which it is known that its original was given up.
func (g *Guard) Allow(c Copy) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed[c] = pass{until: g.options.Clock.Now().Add(confirmedFor)}
}

func placeOf(c Copy) place { return place{c.Kind, c.Namespace, c.Name} }

// Settle takes note that nothing is to be removed for an original of that name: it is there, or its copy is not.
func (g *Guard) Settle(kind, namespace, name string) {
	if g != nil {
		g.release(func(p place) bool { return p == place{kind, namespace, name} })
	}
}

// Follow takes note of which namespaces are offloaded: in no other one anything is held.
func (g *Guard) Follow(namespaces map[string]string) {
	if g != nil {
		g.release(func(p place) bool { return namespaces[p.namespace] == "" })
	}
}

// Leave takes note that nobody asks about a kind any more: of it nothing is held.
func (g *Guard) Leave(kind string) {
	if g != nil {
		g.release(func(p place) bool { return p.kind == kind })
	}
}

// release lets go of what is held in some places.
func (g *Guard) release(over func(place) bool) {
	g.mu.Lock()
	before := len(g.held)
	for p := range g.held {
		if over(p) {
			delete(g.held, p)
		}
	}
	after := len(g.held)
	if before > 0 && after == 0 {
		g.resumed = ""
	}
	g.mu.Unlock()
	if before != after {
		g.options.Changed()
	}
}

// Confirm lets all go that is held, if the token names just that.
func (g *Guard) Confirm(confirmed string) {
	if g == nil || confirmed == "" {
		return
	}
	until := g.options.Clock.Now().Add(confirmedFor)
	g.mu.Lock()
	if token(g.copies()) != confirmed {
		g.mu.Unlock()
		return
	}
	released := g.held
	g.held, g.resumed = map[place]holding{}, ""
	for _, h := range released {
		g.passed[h.copy] = pass{until: until}
	}
	g.mu.Unlock()
	g.options.Changed()
	for _, h := range released {
		h.again(h.copy)
	}
}

// Resume goes on where an earlier process held something, which it said in these words: whatever is missing of the kinds and namespaces that they name is
// held, until Resumed. Words that do not name all hold everything.
func (g *Guard) Resume(said string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resumed = said
}

// Resumed takes note that by now all was listed: if nothing is held again, nothing is missing any more.
func (g *Guard) Resumed() {
	g.mu.Lock()
	was := g.resumed
	g.resumed = ""
	g.mu.Unlock()
	if was != "" {
		g.options.Changed()
	}
}

// Held is what is held in words, and the token that confirms it; before that is known again, what an earlier process said, without a
// token. Both are empty if nothing is held.
func (g *Guard) Held() (confirm, said string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.held) == 0 {
		return "", g.resumed
	}
	copies := g.copies()
	return token(copies), summary(copies)
}

// copies are those that are held, in order. The caller locks.
func (g *Guard) copies() []Copy {
	copies := make([]Copy, 0, len(g.held))
	for _, h := range g.held {
		copies = append(copies, h.copy)
	}
	slices.SortFunc(copies, compare)
	return copies
}
