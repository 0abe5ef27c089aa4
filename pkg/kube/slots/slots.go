// Package slots bounds how many pieces of work run at a time, with a bound that may change while they run.
package slots

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
)

// Slots bounds how many workers run at a time. Make it with New.
type Slots struct {
	mu     sync.Mutex
	free   *sync.Cond
	limit  int
	used   int
	closed bool
}

// New makes slots for limit workers; with a limit of zero all wait.
func New(limit int) *Slots {
	s := &Slots{limit: limit}
	s.free = sync.NewCond(&s.mu)
	return s
}

// Acquire waits for a slot; false means that the slots were closed.
func (s *Slots) Acquire() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && s.used >= s.limit {
		s.free.Wait()
	}
	if s.closed {
		return false
	}
	s.used++
	return true
}

// Release gives a slot back.
func (s *Slots) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.free.Signal()
}

// Resize changes the bound; what runs goes on.
func (s *Slots) Resize(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.free.Broadcast()
}

// Close ends all waits; what runs goes on.
func (s *Slots) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.free.Broadcast()
}

// Drain hands a queue's keys to as many workers as there are slots, until the queue is shut down; it returns when the last
// worker is done. Closed slots have the rest of the keys dropped.
func Drain[K comparable](queue workqueue.TypedInterface[K], workers *Slots, handle func(K)) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if !workers.Acquire() {
			queue.Done(key)
			continue
		}
		running.Go(func() {
			defer workers.Release()
			defer queue.Done(key)
			handle(key)
		})
	}
}
