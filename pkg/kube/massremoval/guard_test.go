package massremoval

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestTooMany(t *testing.T) {
	shop := []string{"shop"}
	one := func(count int) map[string]int { return map[string]int{"shop": count} }
	for name, tc := range map[string]struct {
		missing, all map[string]int
		share        int
		data         bool
		want         []string
	}{
		"none of many":                            {all: one(100), share: 50},
		"all of a few":                            {missing: one(3), all: one(3), share: 50},
		"all of as many as always go":             {missing: one(Few), all: one(Few), share: 50},
		"all of one more":                         {missing: one(Few + 1), all: one(Few + 1), share: 50, want: shop},
		"just the share":                          {missing: one(50), all: one(100), share: 50},
		"more than the share":                     {missing: one(51), all: one(100), share: 50, want: shop},
		"a few of many":                           {missing: one(6), all: one(1000), share: 50},
		"a share of none asks for more than few":  {missing: one(Few + 1), all: one(1000), share: 0, want: shop},
		"and lets a few go":                       {missing: one(Few), all: one(1000), share: 0},
		"all, where nothing is ever held":         {missing: one(1000), all: one(1000), share: 100},
		"one with data":                           {missing: one(1), all: one(100), share: 50, data: true, want: shop},
		"with data, where nothing is ever held":   {missing: one(1), all: one(1), share: 100, data: true},
		"all of one namespace, few of all":        {missing: one(12), all: map[string]int{"shop": 12, "other": 1000}, share: 50, want: shop},
		"all of several small namespaces":         {missing: map[string]int{"a": 3, "b": 3}, all: map[string]int{"a": 3, "b": 3}, share: 50, want: []string{"a", "b"}},
		"and not the few of a large one":          {missing: map[string]int{"a": 4, "b": 4, "c": 1}, all: map[string]int{"a": 4, "b": 4, "c": 5}, share: 50, want: []string{"a", "b"}},
		"a large one holds no small one":          {missing: map[string]int{"shop": 180, "b": 4}, all: map[string]int{"shop": 190, "b": 6}, share: 50, want: shop},
		"of several small namespaces, few of all": {missing: map[string]int{"a": 3, "b": 3}, all: map[string]int{"a": 3, "b": 3, "other": 100}, share: 50},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(TooMany(tc.missing, tc.all, tc.share, tc.data)))); diff != "" {
				t.Errorf("these wait (-want +got):\n%s", diff)
			}
		})
	}
}

// world is a provider with copies, some of whose originals are missing.
type world struct {
	*Guard
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	missing []Copy
	// all are those in the namespace of those that are missing.
	all int
	// stocks is how often stock was taken; again are the copies that were to be looked at again.
	stocks  int
	again   []Copy
	changes int
}

func begin(t *testing.T, missing, all int) *world {
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), all: all}
	w.Guard = New(Options{Share: DefaultShare, Clock: w.clock, Changed: func() { w.changes++ }})
	w.missing = copies("pod", "shop", missing)
	return w
}

func copies(kind, namespace string, count int) (all []Copy) {
	for i := range count {
		name := fmt.Sprintf("%s-%d", kind, i)
		all = append(all, Copy{Kind: kind, Namespace: namespace, Name: name, Origin: types.UID("uid-" + namespace + name)})
	}
	return all
}

func (w *world) namespace() string { return w.missing[0].Namespace }

// ask asks for all that are missing, and removes those that may go. It returns how many those are.
func (w *world) ask() (went int) {
	w.t.Helper()
	for _, c := range slices.Clone(w.missing) {
		may, err := w.May(c, func() (Inventory, error) {
			w.stocks++
			return Inventory{Missing: slices.Clone(w.missing), All: map[string]int{w.namespace(): w.all}}, nil
		}, func(c Copy) { w.again = append(w.again, c) })
		if err != nil {
			w.t.Fatal(err)
		}
		if may {
			went++
			w.missing = slices.DeleteFunc(w.missing, func(other Copy) bool { return other == c })
			w.all--
			w.Settle(c.Kind, c.Namespace, c.Name)
		}
	}
	return went
}

func (w *world) expect(what string, went int) {
	w.t.Helper()
	if got := w.ask(); got != went {
		w.t.Errorf("%s: %d went, want %d", what, got, went)
	}
}

func TestManyAreHeldUntilConfirmed(t *testing.T) {
	w := begin(t, 20, 30)
	w.expect("at first", 0)
	confirm, said := w.Held()
	if diff := cmp.Diff("20 of kind pod in namespace shop", said); diff != "" || confirm == "" {
		t.Errorf("it says (-want +got):\n%s", diff)
	}
	if w.stocks != 1 || w.changes != 1 {
		t.Errorf("stock was taken %d times, and %d changes were told", w.stocks, w.changes)
	}
	w.all += 100
	w.missing = append(w.missing, copies("configmap", "shop", 1)...)
	w.expect("with many new copies, something of another kind alone", 1)
	w.missing = append(w.missing, copies("pod", "shop", 21)[20:]...)
	w.expect("and one more of these", 0)
	w.Confirm(confirm)
	w.expect("by the word for what was held before", 0)
	confirm, said = w.Held()
	if diff := cmp.Diff("21 of kind pod in namespace shop", said); diff != "" {
		t.Errorf("it says (-want +got):\n%s", diff)
	}
	w.Confirm("")
	w.Confirm(confirm)
	if len(w.again) != 21 {
		t.Errorf("%d are looked at again", len(w.again))
	}
	w.expect("confirmed", 21)
	if confirm, said := w.Held(); confirm+said != "" {
		t.Errorf("still held: %s", said)
	}
	w.missing, w.all = copies("pod", "other", 20), 40
	w.expect("what is missing later, as many as may go", 20)
}

func TestAFewGoAndCount(t *testing.T) {
	w := begin(t, 4, 4)
	w.expect("a few", 4)
	w.missing, w.all = copies("pod", "other", 4), 4
	w.expect("a few more in another namespace, soon after", 0)
	if _, said := w.Held(); said != "4 of kind pod in namespace other" {
		t.Errorf("it says %q", said)
	}
	w.Follow(map[string]string{"shop": "shop"})
	w.clock.SetTime(w.clock.Now().Add(lately))
	w.missing, w.all = copies("pod", "third", 4), 4
	w.expect("a few more much later, and the namespace of the others is not offloaded any more", 4)
}

func TestWhatComesBackIsNotHeld(t *testing.T) {
	w := begin(t, 20, 20)
	w.expect("at first", 0)
	for _, c := range w.missing {
		w.Settle(c.Kind, c.Namespace, c.Name)
	}
	if confirm, said := w.Held(); confirm+said != "" {
		t.Errorf("still held: %s", said)
	}
	w.missing, w.all = w.missing[:3], 20
	w.expect("a few afterwards", 3)
}

func TestAKindThatNobodyAsksAboutIsNotHeld(t *testing.T) {
	w := begin(t, 20, 20)
	w.expect("pods", 0)
	w.missing = copies("configmap", "shop", 13)
	w.expect("and ConfigMaps", 0)
	if _, said := w.Held(); said != "13 of kind configmap, 20 of kind pod in namespace shop" {
		t.Errorf("it says %q", said)
	}
	w.Leave("pod")
	if _, said := w.Held(); said != "13 of kind configmap in namespace shop" {
		t.Errorf("it says %q", said)
	}
}

func TestARestartGoesOnHolding(t *testing.T) {
	w := begin(t, 3, 100)
	w.Resume("what was said")
	if confirm, said := w.Held(); confirm != "" || said != "what was said" {
		t.Errorf("it says %q, confirmed by %q", said, confirm)
	}
	w.expect("few of many after a restart", 0)
	w.Resumed()
	w.expect("once all was listed", 0)
	w.Settle("pod", "shop", "pod-0")
	w.Settle("pod", "shop", "pod-1")
	w.Settle("pod", "shop", "pod-2")
	w.expect("once it had been over", 3)

	empty := begin(t, 3, 100)
	empty.Resume("what was said")
	empty.Resumed()
	if _, said := empty.Held(); said != "" || empty.changes != 1 {
		t.Errorf("nothing is missing, and it says %q", said)
	}
	empty.expect("after all", 3)
}

func TestAllowedAndWithoutGuard(t *testing.T) {
	w := begin(t, 1, 1)
	data := func() (Inventory, error) { return Inventory{Missing: w.missing, Data: true}, nil }
	w.Allow(w.missing[0])
	if may, _ := w.May(w.missing[0], data, nil); !may {
		t.Error("what is known to be given up is held")
	}
	other := Copy{Kind: "claim", Namespace: "shop", Name: "data"}
	if may, _ := w.May(other, data, nil); may {
		t.Error("a claim of which nothing is known goes")
	}
	var none *Guard
	none.Settle("", "", "")
	none.Follow(nil)
	none.Leave("")
	none.Confirm("x")
	none.Allow(other)
	if may, err := none.May(other, nil, nil); !may || err != nil {
		t.Error("without a guard nothing goes")
	}
}

func TestSummaryIsBounded(t *testing.T) {
	var many []Copy
	for i := range 80 {
		many = append(many, copies("pod", fmt.Sprintf("n%02d", i), 1)...)
	}
	got := summary(many)
	if !strings.HasPrefix(got, "1 of kind pod in namespace n00; 1 of kind pod in namespace n01; ") || !strings.HasSuffix(got, "; and more in other namespaces") || len(got) > 2*maxSummary {
		t.Errorf("it says %q", got)
	}
	if _, all := heldBefore("held back: the removal of " + got + ", whose originals are missing"); all {
		t.Error("a summary that names some is taken for one of all")
	}
}

// playground is a world in which a namespace's users deleted most of its ConfigMaps, which are most of all there are, while nobody watched.
func playground(t *testing.T) *world {
	w := begin(t, 1, 190)
	w.missing = copies("configmap", "playground", 180)
	w.expect("control: most of a namespace", 0)
	return w
}

// A namespace's own users delete most of what is in it, while the virtual kubelet restarts. That is held until a cluster administrator says
// otherwise; what other namespaces' users deleted, a Secret that leaked, say, goes from the provider nevertheless. So it is after a further restart.
func TestOneNamespaceHoldsNoOthersRemovals(t *testing.T) {
	all := map[string]int{"playground": 190, "payroll": 200, "small": 2}
	for what, tc := range map[string]struct {
		copy Copy
		want bool
	}{
		"a Secret of another namespace":            {Copy{Kind: "secret", Namespace: "payroll", Name: "leaked"}, true},
		"a ConfigMap of another namespace":         {Copy{Kind: "configmap", Namespace: "payroll", Name: "leaked"}, true},
		"all ConfigMaps of a small namespace":      {Copy{Kind: "configmap", Namespace: "small", Name: "leaked"}, true},
		"a Secret of the same namespace":           {Copy{Kind: "secret", Namespace: "playground", Name: "leaked"}, true},
		"one more ConfigMap of the same namespace": {Copy{Kind: "configmap", Namespace: "playground", Name: "late"}, false},
	} {
		for how, start := range map[string]func() *world{
			"": func() *world { return playground(t) },
			", after a restart": func() *world {
				_, said := playground(t).Held()
				w := begin(t, 1, 190)
				w.Resume("held back: the removal of " + said + ", whose originals are missing here, as after the restore of an old backup")
				return w
			},
		} {
			w := start()
			missing := []Copy{tc.copy}
			if tc.copy.Kind == "configmap" {
				missing = append(missing, w.missing...)
			}
			may, err := w.May(tc.copy, func() (Inventory, error) { return Inventory{All: all, Missing: missing}, nil }, func(Copy) {})
			if err != nil || may != tc.want {
				t.Errorf("%s%s, while ConfigMaps of namespace playground are held: may go: %t, %v", what, how, may, err)
			}
		}
	}
}

// Removals that are held are confirmed together, and what others had removed meanwhile is no part of that.
func TestOthersRemovalsAreNoPartOfWhatIsConfirmed(t *testing.T) {
	w := playground(t)
	confirm, _ := w.Held()
	w.missing, w.all = copies("secret", "payroll", 4), 200
	w.expect("Secrets of another namespace", 4)
	w.Confirm(confirm)
	if held, said := w.Held(); held != "" || len(w.again) != 180 {
		t.Errorf("confirmed, and %d are looked at again; still held: %s", len(w.again), said)
	}
}
