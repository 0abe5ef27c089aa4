package gateway

import (
	"slices"

	"liqo.io/liqo/pkg/dataplane"
)

const (
	// leastMTU is the smallest MTU that is told, whatever the other end answers: that which each network carries that carries IPv6.
	leastMTU = 1280
	// sizesAtOnce is how many sizes are asked for at once, sizeTries how often before a size counts as too large, and sizeStep how many bytes
	// below the largest possible the result may be.
	sizesAtOnce, sizeTries, sizeStep = 8, 3, 8
	// confirmEvery is after how many questions the size in use is asked for, measureEvery after how many a larger one is looked for.
	confirmEvery, measureEvery = 5, 300
	// sizeNumber marks the number of a question that is about a size. Below stand the round and the size.
	sizeNumber = 1 << 63
	sizeBits   = 16
)

// sizes finds out how long a packet may be to get through the tunnel and back. The zero value has not begun.
//
// It looks for the largest size that is answered, between low, which was, and high, which was not, and then asks for that one now and then. Only
// while the other end answers short questions the silence about long ones means something.
type sizes struct {
	// most is what the devices at this end let pass, used is what is in use, both 0 as long as they are not known.
	most, used int
	// searching tells whether the largest size is looked for; low and high are as above. low may be one below the least, which nobody answered.
	searching bool
	low, high int
	// asked are the sizes of the last question, answered is the largest that was answered since the first one like it.
	asked    []int
	answered int
	// round numbers the questions, first is the first one of those like the last, tries how many these are.
	round, first uint64
	tries        int
	// rested is how many short questions were asked since the last search.
	rested int
	// blocked tells that not even the least passes.
	blocked bool
}

// least is the smallest size that may be in use.
func (s *sizes) least() int { return min(leastMTU, s.most) }

// bound says what the devices let pass, and what was in use before this process began, if that is known.
func (s *sizes) bound(most, before int) {
	if most == s.most {
		return
	}
	began := s.most == 0
	s.most = most
	switch {
	case began && before > 0:
		s.used = before
	case began:
		s.used = most
	}
	s.used = min(max(s.used, s.least()), most)
	s.measure()
}

// measure has the largest size looked for. Until it is found, the one in use stays.
func (s *sizes) measure() {
	s.searching, s.rested = true, 0
	s.low, s.high = s.least()-1, s.most+1
	s.again()
}

// again begins with other questions.
func (s *sizes) again() {
	s.asked, s.answered, s.tries, s.first = nil, 0, 0, s.round+1
}

// lost tells that the other end does not answer short questions either: what was asked last says nothing.
func (s *sizes) lost() { s.again() }

// next takes in what became of what was asked last, and returns the sizes to ask for now.
func (s *sizes) next() []int {
	if s.most == 0 {
		return nil
	}
	if s.searching {
		s.narrow()
	} else {
		s.confirm()
	}
	switch {
	case s.searching:
		s.asked = s.between()
	case s.tries > 0 || s.blocked || s.rested > 0 && s.rested%confirmEvery == 0:
		s.asked = []int{s.used}
	default:
		return nil
	}
	s.round++
	s.tries++
	return s.asked
}

// narrow brings low and high together by what was answered.
func (s *sizes) narrow() {
	all := len(s.asked) > 0 && s.answered == s.asked[len(s.asked)-1]
	if s.tries < sizeTries && !all {
		return
	}
	for _, size := range s.asked {
		if size > s.answered {
			s.high = size
			break
		}
	}
	if all {
		s.high = s.answered + 1
	}
	s.low = max(s.low, s.answered)
	if s.high-s.low <= sizeStep || s.low < s.least() {
		s.settle()
		return
	}
	s.again()
}

// settle ends a search.
func (s *sizes) settle() {
	s.blocked = s.low < s.least()
	s.used = max(s.padded(), s.least())
	s.searching, s.rested = false, 0
	s.again()
}

// padded is what WireGuard filled up the largest packet to that was answered, or the next smaller size like it if that is not sure to pass: a way that
// fragments hides that the padding is too much for it, and several packets that the kernel is given as one are not fragmented, but lost.
func (s *sizes) padded() int {
	down := s.low - s.low%dataplane.Padding
	switch up := down + dataplane.Padding; {
	case s.low == s.most || s.low == down:
		return s.low
	case up < s.high:
		return up
	default:
		return down
	}
}

// between are sizes from low to high, evenly.
func (s *sizes) between() []int {
	from, to := s.low+1, s.high-1
	steps := min(sizesAtOnce-1, to-from)
	if steps <= 0 {
		return []int{to}
	}
	var all []int
	for i := range steps + 1 {
		all = append(all, from+(to-from)*i/steps)
	}
	return all
}

// confirm begins another search if the size in use has no answers, or if larger ones may have some after a long time.
func (s *sizes) confirm() {
	s.rested++
	answered := s.answered == s.used
	switch {
	case answered == s.blocked && (answered || s.tries >= sizeTries), s.rested >= measureEvery && s.used < s.most:
		s.measure()
	case answered:
		s.again()
	}
}

// number is that of a question about a size.
func (s *sizes) number(size int) uint64 {
	return sizeNumber | s.round<<sizeBits | uint64(size) //nolint:gosec // At most 65535.
}

// answer takes an answer of a length in. It says that it is none about a size by returning false.
func (s *sizes) answer(number uint64, length int) bool {
	if number&sizeNumber == 0 {
		return false
	}
	size, round := int(number&(1<<sizeBits-1)), number&^sizeNumber>>sizeBits
	if size == length && round >= s.first && round <= s.round && slices.Contains(s.asked, size) {
		s.answered = max(s.answered, size)
	}
	return true
}
