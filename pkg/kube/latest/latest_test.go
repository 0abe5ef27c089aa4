package latest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

type wish struct {
	Workers int
	Mapping map[string]string
}

func TestFollowersHearOfWhatChanges(t *testing.T) {
	v := New(wish{Workers: 1})
	var heard []string
	note := func(who string) func(before, now wish) {
		return func(before, now wish) {
			heard = append(heard, fmt.Sprintf("%s: %d -> %d %v", who, before.Workers, now.Workers, now.Mapping))
			if got := v.Get(); got.Workers != now.Workers {
				t.Errorf("%s is told of %d while there are %d", who, now.Workers, got.Workers)
			}
		}
	}
	stop := v.Follow(note("first"))
	v.Set(wish{Workers: 1})
	v.Change(func(w *wish) { w.Mapping = map[string]string{"a": "b"} })
	v.Change(func(w *wish) { w.Mapping = map[string]string{"a": "b"} })
	v.Follow(note("second"))
	v.Change(func(w *wish) { w.Workers = 2 })
	stop()
	v.Set(wish{Workers: 3})
	if diff := cmp.Diff([]string{
		"first: 1 -> 1 map[]", "first: 1 -> 1 map[a:b]", "second: 1 -> 1 map[a:b]", "first: 1 -> 2 map[a:b]", "second: 1 -> 2 map[a:b]",
		"second: 2 -> 3 map[]",
	}, heard); diff != "" {
		t.Error(diff)
	}
}

func TestTheZeroValue(t *testing.T) {
	var v Value[wish]
	if got := v.Get(); got.Workers != 0 {
		t.Errorf("it holds %v", got)
	}
	v.Change(func(w *wish) { w.Workers = 1 })
	if got := v.Get(); got.Workers != 1 {
		t.Errorf("it holds %v", got)
	}
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(1)
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan bool)
		wait := func(least int) { go func() { answers <- v.Until(ctx, func(n int) bool { return n >= least }) }() }
		wait(1)
		if !<-answers {
			t.Error("what there is already is waited for")
		}
		wait(3)
		v.Set(2)
		synctest.Wait()
		select {
		case <-answers:
			t.Error("a version that is not as asked is taken for it")
		default:
		}
		v.Set(3)
		v.Set(0)
		if !<-answers {
			t.Error("a version was missed")
		}
		wait(9)
		cancel()
		if <-answers {
			t.Error("the end of the context is taken for a version")
		}
	})
}

// However changes of two sources meet, what is made of them is made of the latest of both.
func TestWhatIsMadeOfOthers(t *testing.T) {
	a, b := New(0), New(0)
	sum := Join(a, b, func(a, b int) [2]int { return [2]int{a, b} })
	backwards := 0
	sum.Follow(func(before, now [2]int) {
		if now[0] < before[0] || now[1] < before[1] {
			backwards++
		}
	})
	double := Of(sum, func(n [2]int) int { return 2 * (n[0] + n[1]) })
	var group sync.WaitGroup
	for _, v := range []*Value[int]{a, b} {
		for range 4 {
			group.Go(func() {
				for range 2500 {
					v.Change(func(n *int) { *n++ })
				}
			})
		}
	}
	group.Wait()
	if got := sum.Get(); got != [2]int{10000, 10000} || double.Get() != 40000 {
		t.Errorf("%v, doubled %d", got, double.Get())
	}
	if backwards > 0 {
		t.Errorf("%d times it was made of an earlier version", backwards)
	}
}
