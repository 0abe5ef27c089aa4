package peer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// A7: one 429 is for all that use the connection. The peer stays connected, with a reason that says so, and is not asked again.
func TestAThrottledPeerIsLeftAlone(t *testing.T) {
	s := newServer(t)
	p, states := start(t, StaticSource(s.kubeconfig(t, nil)))
	await(t, states, "connected", connected)
	clients, err := p.Clients()
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.status, s.after = http.StatusTooManyRequests, "30"
	s.mu.Unlock()
	await(t, states, "throttled", func(state State) bool { return state.Connected && state.Reason == ReasonThrottled })
	s.mu.Lock()
	before := len(s.tokens)
	s.mu.Unlock()

	_, err = clients.Kube.CoreV1().ConfigMaps("a").Get(t.Context(), "b", metav1.GetOptions{})
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if !apierrors.IsTooManyRequests(err) || !asked || seconds < 1 || seconds > 30 {
		t.Errorf("a read ended with %v, wait %d s", err, seconds)
	}
	err = clients.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}})
	if !apierrors.IsTooManyRequests(err) {
		t.Errorf("a write ended with %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) != before {
		t.Errorf("%d requests in the time to wait", len(s.tokens)-before)
	}
	if state := p.State(); !state.Connected || state.Lost() {
		t.Errorf("the state is %+v", state)
	}
}

// A7: a peer that has only ever answered 429 is neither connected nor lost.
func TestAPeerThatOnlyThrottles(t *testing.T) {
	s := newServer(t)
	s.status, s.after = http.StatusTooManyRequests, "30"
	_, states := start(t, StaticSource(s.kubeconfig(t, nil)))
	if state := await(t, states, "throttled", func(state State) bool { return state.Reason == ReasonThrottled }); state.Connected || state.Lost() {
		t.Errorf("the state is %+v", state)
	}
}

// A7: a peer that throttles every probe, for a second each, answers nevertheless.
func TestA7AThrottledPeerIsNotLost(t *testing.T) {
	s := newServer(t)
	p, states := start(t, StaticSource(s.kubeconfig(t, nil)))
	await(t, states, "connected", connected)
	s.mu.Lock()
	s.status, s.after = http.StatusTooManyRequests, "1"
	s.mu.Unlock()
	await(t, states, "throttled", func(state State) bool { return state.Reason == ReasonThrottled })
	for len(s.arrived) > 0 {
		<-s.arrived
	}
	for range failuresToLose + 1 {
		<-s.arrived
	}
	if state := p.State(); !state.Connected || state.Reason != ReasonThrottled {
		t.Errorf("the state is %+v", state)
	}
	s.answer(http.StatusOK)
	<-s.arrived
	if state := p.State(); !state.Connected {
		t.Errorf("the state is %+v", state)
	}
}

// answers is a server that asks for patience until a moment, and records when it was asked for what.
type answers struct {
	mu    sync.Mutex
	begin time.Time
	until time.Duration
	after string
	asked []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := time.Since(a.begin)
	a.asked = append(a.asked, r.URL.Path)
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("no json"))}
	if at < a.until {
		response.StatusCode = http.StatusTooManyRequests
		if a.after != "" {
			response.Header.Set("Retry-After", a.after)
		}
	}
	return response, nil
}

// ask makes a request and tells its status and, in whole seconds, how long it took.
func ask(ctx context.Context, t *testing.T, transport http.RoundTripper, path string) (status, took int) {
	t.Helper()
	begin := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://milan.example.org"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		return 0, int(time.Since(begin) / time.Second)
	}
	_ = response.Body.Close()
	return response.StatusCode, int(time.Since(begin) / time.Second)
}

func TestHowLongRequestsWait(t *testing.T) {
	type result struct{ Status, Took int }
	for name, tc := range map[string]struct {
		after       string
		until       time.Duration
		first, next string
		want        result
		header      string // Retry-After of the first answer, by which a client tries again by itself
		reached     int
	}{
		"a short time is waited for":       {"2", time.Second, "/api", "/api", result{200, 2}, "2", 2},
		"a long one is answered at once":   {"20", time.Second, "/api", "/api", result{429, 0}, "", 1},
		"without a time it is a second":    {"", time.Second, "/api", "/api", result{200, 1}, "", 2},
		"an absurd one is cut to a minute": {"99999999", time.Second, "/api", "/version", result{429, 0}, "", 1},
		"a watch waits, too":               {"20", time.Second, "/api", "/api/v1/pods?watch=true", result{429, 0}, "", 1},
		"a stream does not":                {"20", time.Second, "/api", "/api/v1/namespaces/a/pods/b/log", result{429, 0}, "", 2},
		"a PodDisruptionBudget is nobody's patience": {"20", time.Second, "/api/v1/namespaces/a/pods/b/eviction", "/api",
			result{429, 0}, "20", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &answers{begin: time.Now(), until: tc.until, after: tc.after}
				transport := &patientTransport{next: server, patience: &patience{clock: clock.RealClock{}, told: make(chan struct{}, 1)}}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://milan.example.org"+tc.first, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.RoundTrip(request)
				if err != nil || response.StatusCode != http.StatusTooManyRequests {
					t.Fatal(response, err)
				}
				if got := response.Header.Get("Retry-After"); got != tc.header {
					t.Errorf("the answer has Retry-After %q", got)
				}
				status, took := ask(t.Context(), t, transport, tc.next)
				if diff := cmp.Diff(tc.want, result{status, took}); diff != "" {
					t.Error(diff)
				}
				if len(server.asked) != tc.reached {
					t.Errorf("the server saw %v", server.asked)
				}
				time.Sleep(maxBackOff)
				if status, _ := ask(t.Context(), t, transport, "/api"); status != http.StatusOK {
					t.Errorf("after a minute: %d", status)
				}
			})
		})
	}
}

func TestAHeldRequestKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answers{begin: time.Now(), until: time.Second, after: "3"}
		transport := &patientTransport{next: server, patience: &patience{clock: clock.RealClock{}, told: make(chan struct{}, 1)}}
		ask(t.Context(), t, transport, "/api")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if status, took := ask(ctx, t, transport, "/api"); status != 0 || took != 1 {
			t.Errorf("status %d after %d s", status, took)
		}
	})
}

// A7: the connection counts as throttled for a minute, so that a reason which users see does not flicker.
func TestTheReasonStaysForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patience{clock: clock.RealClock{}, told: make(chan struct{}, 1)}
		if p.lately() || p.left() > 0 {
			t.Error("throttled before the first answer")
		}
		p.asked(time.Second)
		time.Sleep(throttledFor - time.Second)
		if !p.lately() || p.left() > 0 {
			t.Errorf("lately is %v, left %s", p.lately(), p.left())
		}
		time.Sleep(time.Second)
		if p.lately() {
			t.Error("still throttled after a minute")
		}
	})
}
