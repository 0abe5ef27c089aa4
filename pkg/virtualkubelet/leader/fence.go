package leader

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// errFenced answers requests of a replica whose time as the active one is over.
var errFenced = errors.New("this virtual kubelet was not able to renew its lease in time: another one may work by now, so nothing is written")

// Fence keeps a replica from writing once another one may be active. A process that stood still, as when its machine slept or swapped, goes
// on with what it was about to do before it looks at its Lease again. The zero value is open, for who has not been active yet.
type Fence struct{ until atomic.Pointer[time.Time] }

// open lets requests pass until then.
func (f *Fence) open(until time.Time) { f.until.Store(&until) }

// closed tells whether the time is over, by either clock: the monotonic one stands still while a machine sleeps.
func (f *Fence) closed(now time.Time) bool {
	until := f.until.Load()
	return until != nil && (now.After(*until) || now.Round(0).After(until.Round(0)))
}

// Wrap is around the transports of the replica.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper { return fenced{fence: f, next: next} }

type fenced struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip refuses what would change something.
func (f fenced) RoundTrip(request *http.Request) (*http.Response, error) {
	if changes(request) && f.fence.closed(time.Now()) {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errFenced
	}
	return f.next.RoundTrip(request)
}

// WrappedRoundTripper lets Kubernetes' client find the connection below.
func (f fenced) WrappedRoundTripper() http.RoundTripper { return f.next }

// changes tells whether a request is more than a question: reviews of tokens and rights are posted, but change nothing.
func changes(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !strings.HasPrefix(request.URL.Path, "/apis/authorization.k8s.io/") && !strings.HasPrefix(request.URL.Path, "/apis/authentication.k8s.io/")
}
