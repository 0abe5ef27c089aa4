package gateway

import (
	"encoding/binary"
	"time"
)

const (
	// interval is how often the other end is asked.
	interval = 2 * time.Second
	// greetAfter is how many unanswered questions have a client begin another session, silentAfter how many make the tunnel an Error; then a
	// client tries something else again after as many.
	greetAfter, silentAfter = 3, 5
	// startAfter and againAfter are that for an end that was never answered. Two gateways start at about the same time: a client's first greeting
	// often is too early for the server, or for its Service, and WireGuard by itself tries again after five seconds. To start may take longer
	// than to answer, so that it is no Error sooner than with a tunnel that worked.
	startAfter, againAfter, lateAfter = 2, 2, 7
	// remembered is how many questions can still be answered.
	remembered = 8
)

// hurried is by how much sooner it is asked again when a tunnel that worked gives no answer: a server that starts again does not know where its
// client is, and waits until that comes.
const hurried = 4

// liveness is what questions and answers tell of the tunnel. It is begun by newLiveness.
type liveness struct {
	next uint64
	// asked is when those were asked that wait for their answer.
	asked map[uint64]time.Time
	// missed is how many in a row had no answer; answered tells whether any had one.
	missed   int
	answered bool
	// latency is how long an answer takes, smoothed as TCP does it. What was asked before since, when the other end began to answer, waited for
	// WireGuard's greeting and says nothing.
	latency time.Duration
	since   time.Time
}

// newLiveness begins. Answers to who had the address before are not taken for one's own.
func newLiveness(now time.Time) *liveness {
	return &liveness{next: uint64(now.UnixNano()) &^ sizeNumber, asked: map[uint64]time.Time{}} //nolint:gosec // Any number will do.
}

// ask returns the number of the next question.
func (l *liveness) ask(now time.Time) uint64 {
	if _, open := l.asked[l.next-1]; open {
		l.missed++
	}
	delete(l.asked, l.next-remembered)
	number := l.next
	l.asked[number] = now
	l.next++
	return number
}

// answer takes an answer in.
func (l *liveness) answer(number uint64, now time.Time) {
	asked, ok := l.asked[number]
	if !ok {
		return
	}
	delete(l.asked, number)
	if !l.answered || l.missed > 0 {
		l.since = now
	}
	l.missed, l.answered = 0, true
	if asked.Before(l.since) {
		return
	}
	took := max(now.Sub(asked), 0)
	if l.latency == 0 {
		l.latency = took
	}
	l.latency += (took - l.latency) / 8
}

// pause is how long after a question the next one is asked, by how often that is usual. Who does not answer is asked again sooner, though not
// before an answer can be there, until a client has begun another session and asked in that.
func (l *liveness) pause(usual time.Duration) time.Duration {
	greet, _, _ := l.limits()
	if _, open := l.asked[l.next-1]; (open || !l.answered) && l.missed <= greet {
		return min(usual, max(usual/hurried, 4*l.latency))
	}
	return usual
}

// limits are how many unanswered questions have a client begin another session, after how many more it does so again, and how many are an Error.
func (l *liveness) limits() (greet, again, silent int) {
	if l.answered {
		return greetAfter, silentAfter, silentAfter
	}
	return startAfter, againAfter, lateAfter
}

// lives tells whether the other end answers; known is false as long as that cannot be said.
func (l *liveness) lives() (lives, known bool) {
	_, _, most := l.limits()
	silent := l.missed >= most
	return l.answered && !silent, l.answered || silent
}

// retry tells a client whether to begin another session now, and whether with the next address.
func (l *liveness) retry() (session, next bool) {
	greet, again, _ := l.limits()
	session = l.missed >= greet && (l.missed-greet)%again == 0
	return session, session && l.missed > greet
}

// Kinds of messages.
const (
	question = 1
	reply    = 2
)

// message is what the ends say to each other: who asks puts a number and its time in, and whatever makes it as long as it is to be; the answer
// repeats all that.
type message struct {
	kind   byte
	number uint64
	sent   int64
}

// magic begins each message; its last byte is the version.
var magic = [4]byte{'l', 'q', 'e', 1}

const (
	kindAt      = len(magic)
	messageSize = kindAt + 1 + 8 + 8
)

func (m message) bytes() []byte {
	raw := append(make([]byte, 0, messageSize), magic[:]...)
	raw = append(raw, m.kind)
	raw = binary.BigEndian.AppendUint64(raw, m.number)
	return binary.BigEndian.AppendUint64(raw, uint64(m.sent)) //nolint:gosec // Its bits.
}

// parse reads a message; false if it is none.
func parse(raw []byte) (message, bool) {
	if len(raw) < messageSize || [4]byte(raw[:4]) != magic || raw[kindAt] != question && raw[kindAt] != reply {
		return message{}, false
	}
	return message{raw[kindAt], binary.BigEndian.Uint64(raw[5:]), int64(binary.BigEndian.Uint64(raw[13:]))}, true //nolint:gosec // Its bits.
}
