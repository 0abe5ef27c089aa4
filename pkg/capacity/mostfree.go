package capacity

// absent is the place of what is in no heap.
const absent = -1

// stock is one resource of one node.
type stock struct {
	of        *tally
	has, used int64
	// place in the heap of the resource.
	place int
}

func (s *stock) free() int64 { return s.has - s.used }

// mostFree is a heap of the nodes that take pods, for one resource: the one with the most left is first. container/heap would need an
// interface of five methods for these two.
type mostFree []*stock

// set puts a stock where it belongs, or takes it out.
func (m *mostFree) set(s *stock, in bool) {
	h := *m
	switch {
	case in && s.place == absent:
		s.place = len(h)
		h = append(h, s)
	case !in && s.place == absent:
		return
	case !in:
		last := h[len(h)-1]
		at := s.place
		h[at], last.place = last, at
		h[len(h)-1] = nil
		h, s.place = h[:len(h)-1], absent
		*m = h
		if last == s {
			return
		}
		s = last
	}
	*m = h
	h.settle(s)
}

// settle moves a stock up or down to where it belongs.
func (m mostFree) settle(s *stock) {
	at := s.place
	for at > 0 && m[(at-1)/2].free() < s.free() {
		m.put(at, m[(at-1)/2])
		at = (at - 1) / 2
	}
	for {
		child := 2*at + 1
		if child+1 < len(m) && m[child+1].free() > m[child].free() {
			child++
		}
		if child >= len(m) || m[child].free() <= s.free() {
			break
		}
		m.put(at, m[child])
		at = child
	}
	m.put(at, s)
}

func (m mostFree) put(at int, s *stock) { m[at], s.place = s, at }
