package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	// maxResponse bounds the body of an ordinary answer, and an event of a watch, in bytes: lists are paged, with smaller pages if the
	// objects are large, and no API server keeps an object of this size.
	maxResponse = 4 << 20
	// maxWeight is what an answer or event may take of memory, by estimation. An intake takes in as much at a time.
	maxWeight = 8 << 20
	// maxProse bounds what is neither JSON nor protobuf, in bytes: error texts.
	maxProse = 64 << 10
	// unannounced is how much of an answer or event is read before there is room for a large one, in bytes.
	unannounced = 32 << 10
	// settle is how long what was read is given to be decoded and let go of: clients do so after they closed the body, and tell nobody.
	settle = 200 * time.Millisecond
	// maxStreamBuffer and maxConnBuffer bound what a peer can send on one stream, and on all, of a connection of HTTP/2 before it is read.
	maxStreamBuffer = 128 << 10
	maxConnBuffer   = 16 << 20
	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 64 << 10
)

// intake is the one way in which anything that a peer sends is read, whoever asked for it: what is decoded at once is weighed before it is
// decoded, and all that is decoded at the same time weighs no more than maxWeight.
type intake struct {
	room    *semaphore.Weighted
	timeout time.Duration
}

func newIntake(timeout time.Duration) *intake {
	return &intake{room: semaphore.NewWeighted(maxWeight), timeout: timeout}
}

// harden takes from the transport below what would let a peer fill memory before anything is read.
func harden(next http.RoundTripper) http.RoundTripper {
	below := next
	for {
		wrapper, is := below.(utilnet.RoundTripperWrapper)
		if !is {
			break
		}
		below = wrapper.WrappedRoundTripper()
	}
	if transport, is := below.(*http.Transport); is {
		transport.MaxResponseHeaderBytes = maxHeaders
		transport.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: maxStreamBuffer, MaxReceiveBufferPerConnection: maxConnBuffer}
	}
	return next
}

// take puts the body of an answer behind the intake.
func (t *intake) take(ctx context.Context, response *http.Response, watch bool) error {
	encoding := response.Header.Get("Content-Encoding")
	if encoding != "" && encoding != "identity" {
		_ = response.Body.Close()
		return errors.New("the peer's answer is compressed, which was not asked for")
	}
	watch = watch && response.StatusCode == http.StatusOK
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")) // What cannot be parsed is text.
	var cutter framing
	switch {
	case kind == runtime.ContentTypeJSON:
		cutter = &jsonEvents{whole: !watch}
	case kind == runtime.ContentTypeProtobuf && watch:
		cutter = protoEvents{}
	case kind == runtime.ContentTypeProtobuf:
		cutter = protoWhole{}
	default:
		// Clients know more codecs than we ask for, YAML among them. What is text is not decoded.
		response.Header.Set("Content-Type", "text/plain")
		cutter = text{}
	}
	response.Body = &weighed{body: response.Body, intake: t, ctx: ctx, framing: cutter}
	return nil
}

// weighed is a body that is read in frames, each of which is decoded at once. A frame is there as a whole, and there is room for it,
// before any of it is passed on.
type weighed struct {
	body    io.ReadCloser
	intake  *intake
	ctx     context.Context
	framing framing

	// buffer holds what was read, ready is how much of it may be passed on.
	buffer []byte
	ready  int
	end    bool
	err    error

	// mu guards what follows: a watch is closed while it is read.
	mu     sync.Mutex
	held   int64
	closed bool
}

// Read implements io.Reader.
func (w *weighed) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if w.ready == 0 {
		// Who asks for more has taken what was there before.
		w.give(0)
		w.fill()
	}
	if w.ready == 0 {
		return 0, w.err
	}
	n := copy(p, w.buffer[:w.ready])
	w.buffer, w.ready = w.buffer[n:], w.ready-n
	if len(w.buffer) == 0 {
		w.buffer = nil // A large one must not stay as long as a watch does.
	}
	return n, nil
}

// fill reads until a frame is complete, or fails.
func (w *weighed) fill() {
	for w.err == nil {
		bytes, weight, err := w.framing.cut(w.buffer, w.end)
		switch {
		case err != nil:
			w.fail(err)
		case bytes > 0:
			if w.err = w.hold(weight); w.err == nil {
				w.ready = bytes
			}
			return
		case w.end:
			w.fail(io.EOF)
		case len(w.buffer) > maxResponse:
			w.fail(tooHeavy(fmt.Sprintf("is larger than %d bytes", maxResponse)))
		case len(w.buffer) > unannounced && w.holds() < maxWeight:
			w.err = w.hold(maxWeight)
		default:
			w.more()
		}
	}
}

// more reads what is there.
func (w *weighed) more() {
	if free := cap(w.buffer) - len(w.buffer); free < minRead {
		w.buffer = slices.Grow(w.buffer, max(minRead, len(w.buffer)/2))
	}
	n, err := w.body.Read(w.buffer[len(w.buffer):cap(w.buffer)])
	w.buffer = w.buffer[:len(w.buffer)+n]
	switch {
	case errors.Is(err, io.EOF):
		w.end = true
	case err != nil:
		w.fail(err)
	}
}

const minRead = 2 << 10

func (w *weighed) fail(err error) { w.err, w.buffer = err, nil }

// holds is how much room it has.
func (w *weighed) holds() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

// hold sees to it that there is room for as much as is about to be decoded.
func (w *weighed) hold(weight int64) error {
	weight = min(weight, maxWeight)
	more := weight - w.holds()
	if more <= 0 {
		w.give(weight)
		return nil
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.intake.timeout)
	defer cancel()
	if err := w.intake.room.Acquire(ctx, more); err != nil {
		w.buffer = nil
		return fmt.Errorf("waiting for room to read what the peer sends: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		w.intake.room.Release(more)
		w.buffer = nil
		return http.ErrBodyReadAfterClose
	}
	w.held += more // Only closing it takes from it meanwhile.
	return nil
}

// give returns all of the room but so much.
func (w *weighed) give(keep int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if back := w.held - keep; back > 0 {
		w.held = keep
		w.intake.room.Release(back)
	}
}

// Close implements io.Closer. It may be called while Read is.
func (w *weighed) Close() error {
	w.mu.Lock()
	held := w.held
	w.held, w.closed = 0, true
	w.mu.Unlock()
	if held > unannounced {
		time.AfterFunc(settle, func() { w.intake.room.Release(held) })
	} else {
		w.intake.room.Release(held)
	}
	return w.body.Close()
}
