package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/signal"
)

const (
	// longestHold is how long a request is held back because the peer asked for patience. One that had to wait longer is answered
	// at once, so that nobody's workers stand still.
	longestHold = 3 * time.Second
	// defaultPatience is for answers that do not say how long to wait.
	defaultPatience = time.Second
	// throttledFor is how long after the last such answer the connection counts as throttled.
	throttledFor = time.Minute
)

// patience is what the peer asked for with 429: nothing at all is asked of it until then, whoever of us it was that asked too much.
// It can ask for a minute at most, and then again.
type patience struct {
	clock clock.WithTicker
	// told has the probe loop report it; a request must not run the subscribers of the state.
	told signal.Signal
	wish latest.Value[wish]
}

// wish is until when the peer wants to be left alone, and when it said so last.
type wish struct{ until, last time.Time }

// left is how long the peer is to be left alone still.
func (p *patience) left() time.Duration {
	return max(0, p.wish.Get().until.Sub(p.clock.Now()))
}

// lately tells whether the peer asked for patience lately.
func (p *patience) lately() bool {
	last := p.wish.Get().last
	return !last.IsZero() && p.clock.Since(last) < throttledFor
}

// asked takes note that the peer wants to be left alone for a while.
func (p *patience) asked(wait time.Duration) {
	p.wish.Change(func(w *wish) {
		w.last = p.clock.Now()
		if until := w.last.Add(wait); until.After(w.until) {
			w.until = until
		}
	})
	p.told.Raise()
}

// patientTransport honours what the peer asked for.
type patientTransport struct {
	next     http.RoundTripper
	patience *patience
}

// RoundTrip implements http.RoundTripper.
func (t *patientTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if !counts(request) {
		return t.next.RoundTrip(request)
	}
	if left := t.patience.left(); left > longestHold {
		return tooMany(request, left), nil
	} else if left > 0 {
		// Not all at the same moment.
		if err := t.hold(request.Context(), left+time.Duration(rand.Int64N(int64(left)/2+1))); err != nil {
			return nil, err
		}
	}
	response, err := t.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusTooManyRequests {
		return response, err
	}
	wait := retryAfter(response)
	t.patience.asked(wait)
	if wait <= longestHold {
		return response, nil // The client waits and tries again by itself.
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxText)
	_ = response.Body.Close()
	return tooMany(request, wait), nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *patientTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *patientTransport) hold(ctx context.Context, wait time.Duration) error {
	timer := t.patience.clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting because the peer asked for fewer requests: %w", ctx.Err())
	case <-timer.C():
		return nil
	}
}

// counts tells whether a request waits for the peer's patience, and whether 429 means the peer as a whole: not for streams, which
// kubelets answer, nor for evictions, which are refused so if a PodDisruptionBudget forbids them.
func counts(request *http.Request) bool {
	if strings.HasSuffix(request.URL.Path, "/eviction") {
		return false
	}
	return !isStream(request) || on(request.URL.Query().Get("watch"))
}

// retryAfter is how long an answer asks to wait, within bounds.
func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return defaultPatience
	}
	return time.Duration(min(seconds, int(maxBackOff/time.Second))) * time.Second
}

// tooMany is the answer to a request that would have to wait too long. It says for how long in its body only: by the header a client
// would sleep, and its caller with it.
func tooMany(request *http.Request, left time.Duration) *http.Response {
	seconds := int32((left + time.Second - 1) / time.Second)
	body, _ := json.Marshal(metav1.Status{ // It cannot fail.
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "the peer's API server asks for fewer requests; the next one is made when its time is over",
		Details: &metav1.StatusDetails{RetryAfterSeconds: seconds},
	})
	return &http.Response{
		Status: http.StatusText(http.StatusTooManyRequests), StatusCode: http.StatusTooManyRequests,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header:        http.Header{"Content-Type": []string{"application/json"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}
