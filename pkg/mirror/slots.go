package mirror

import "sync"

// slots bounds how many workers run at a time; the bound may change while they do.
type slots struct {
	mu     sync.Mutex
	free   *sync.Cond
	limit  int
	used   int
	closed bool
}

func newSlots(limit int) *slots {
	s := &slots{limit: limit}
	s.free = sync.NewCond(&s.mu)
	return s
}

// acquire waits for a slot; false means that the slots were closed.
func (s *slots) acquire() bool {
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

func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.free.Signal()
}

func (s *slots) resize(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.free.Broadcast()
}

func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.free.Broadcast()
}
