package slots

import (
	"sync"
	"testing"
	"time"
)

func TestTheBoundHoldsAndChanges(t *testing.T) {
	s := New(0)
	got := make(chan bool)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() { got <- s.Acquire() })
	}
	await := func(what string, want bool) {
		t.Helper()
		select {
		case ok := <-got:
			if ok != want {
				t.Errorf("%s: got %t, want %t", what, ok, want)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: nobody got an answer within two minutes", what)
		}
	}
	s.Resize(1)
	await("one slot was made", true)
	select {
	case <-got:
		t.Error("a second worker got the only slot")
	default:
	}
	s.Release()
	await("the slot was given back", true)
	s.Close()
	await("the slots were closed", false)
	group.Wait()
	if s.Acquire() {
		t.Error("closed slots can be had")
	}
}
