package peer

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"liqo.io/liqo/pkg/identity"
)

func TestRightsAreGoneAfterTwoDenials(t *testing.T) {
	now := time.Unix(1000, 0)
	deny := func(r *rights) { r.answered("denied", now) }
	grant := func(r *rights) { r.answered("", now) }
	for name, tc := range map[string]struct {
		steps           []func(*rights)
		due, undecided  bool
		reason, message string // of a peer that answers
	}{
		"nothing was asked yet":           {nil, true, false, ReasonConnected, itAnswers},
		"they are granted":                {[]func(*rights){grant}, false, false, ReasonConnected, itAnswers},
		"they are denied once":            {[]func(*rights){deny}, true, true, ReasonConnected, itAnswers},
		"they are denied twice":           {[]func(*rights){deny, deny}, true, false, ReasonRevoked, "denied"},
		"they are denied many times":      {[]func(*rights){deny, deny, deny, deny}, true, false, ReasonRevoked, "denied"},
		"one answer in between":           {[]func(*rights){deny, grant, deny}, true, true, ReasonConnected, itAnswers},
		"they are back":                   {[]func(*rights){deny, deny, grant}, false, false, ReasonConnected, itAnswers},
		"the peer does not tell":          {[]func(*rights){func(r *rights) { r.silent(now) }}, false, false, ReasonConnected, itAnswers},
		"a request was forbidden":         {[]func(*rights){grant, func(r *rights) { r.doubted = true }}, true, false, ReasonConnected, itAnswers},
		"somebody else was told":          {[]func(*rights){grant, func(r *rights) { r.told = "the slice is denied" }}, false, false, ReasonRevoked, "the slice is denied"},
		"somebody else takes it back":     {[]func(*rights){grant, func(r *rights) { r.told = "x" }, func(r *rights) { r.told = "" }}, false, false, ReasonConnected, itAnswers},
		"one takes it back, one does not": {[]func(*rights){deny, deny, func(r *rights) { r.told = "" }}, true, false, ReasonRevoked, "denied"},
		"they were found long ago":        {[]func(*rights){func(r *rights) { r.answered("", now.Add(-maxSilence)) }}, true, false, ReasonConnected, itAnswers},
		"denied long ago, granted lastly": {[]func(*rights){func(r *rights) { r.answered("denied", now.Add(-maxSilence)) }, grant}, false, false, ReasonConnected, itAnswers},
	} {
		t.Run(name, func(t *testing.T) {
			r := rights{doubted: len(tc.steps) == 0}
			state := State{Connected: true, Reason: ReasonConnected, Message: itAnswers}
			for _, step := range tc.steps {
				step(&r)
				r.judge(&state)
			}
			got := []any{r.due(now, maxSilence), r.undecided(), state.Reason, state.Message, state.Revoked(), state.Usable(), state.Lost()}
			revoked := tc.reason == ReasonRevoked
			if diff := cmp.Diff([]any{tc.due, tc.undecided, tc.reason, tc.message, revoked, !revoked, false}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAPeerThatDoesNotAnswerIsNotRevoked(t *testing.T) {
	r := rights{denied: deniedToRevoke}
	state := State{Reason: ReasonUnreachable, Message: "no answer"}
	r.judge(&state)
	if state.Reason != ReasonUnreachable || state.Revoked() || !state.Lost() {
		t.Errorf("got %+v", state)
	}
}

// grantingServer answers questions for rights as its field says, and forbids all requests for ConfigMaps.
type grantingServer struct {
	*server
	granted bool
	silent  bool
	reviews int
}

func newGrantingServer(t *testing.T) *grantingServer {
	s := &grantingServer{server: newServer(t), granted: true}
	plain := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, reviews):
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reviews++
			if s.silent {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			review := authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}}
			review.Status.Allowed = s.granted
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(review)
		case strings.HasSuffix(r.URL.Path, "/version"):
			plain.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
	return s
}

func (s *grantingServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *grantingServer) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reviews
}

func startGranted(t *testing.T, s *grantingServer) (*Peer, *testclock.FakeClock) {
	t.Helper()
	return startVouched(t, s, nil)
}

// startVouched has somebody else who knows whether the peer answers.
func startVouched(t *testing.T, s *grantingServer, witness func(context.Context) bool) (*Peer, *testclock.FakeClock) {
	t.Helper()
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	p, err := New(Options{
		ClusterID: "milan", Kubeconfig: StaticSource(s.kubeconfig(t, nil)), Endpoints: identity.EndpointPolicy{AllowLoopback: true}, Clock: clock, Witness: witness,
		Rights: func() []Right { return []Right{{Verb: "list", Resource: "shadowpods", Namespace: "shop"}} },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return p, clock
}

// probed lets the time to the next probe pass and waits until it is over.
func probed(t *testing.T, clock *testclock.FakeClock) {
	t.Helper()
	resting(t, clock)
	clock.Step(DefaultProbeInterval)
	resting(t, clock)
}

// resting waits until the next probe is waited for.
func resting(t *testing.T, clock *testclock.FakeClock) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for !clock.HasWaiters() {
		select {
		case <-deadline:
			t.Fatal("nobody waits for the time of the next probe")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAPeerIsAskedForRightsInDoubtAndNowAndThen(t *testing.T) {
	s := newGrantingServer(t)
	p, clock := startGranted(t, s)
	<-s.arrived
	for range 6 {
		probed(t, clock)
	}
	if n, others := s.asked(), len(s.arrived); n != 3 || others != 4 || !p.State().Usable() {
		t.Fatalf("asked %d times, and %d times for the version, in a minute: %+v", n, others, p.State())
	}
	s.set(func() { s.granted = false })
	probed(t, clock)
	if n := s.asked(); n != 3 {
		t.Fatalf("asked %d times although nothing speaks against our rights", n)
	}
	clients, err := p.Clients()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.Kube.CoreV1().ConfigMaps("a").Get(t.Context(), "b", metav1.GetOptions{}); err == nil {
		t.Fatal("the request was answered")
	}
	probed(t, clock)
	if state := p.State(); state.Revoked() {
		t.Errorf("revoked after one answer: %+v", state)
	}
	probed(t, clock)
	if state := p.State(); !state.Revoked() || state.Epoch != 1 || !strings.Contains(state.Message, "list shadowpods in its namespace shop") {
		t.Errorf("not revoked after two answers: %+v", state)
	}
	s.set(func() { s.granted = true })
	probed(t, clock)
	if state := p.State(); !state.Usable() || state.Reason != ReasonConnected || state.Epoch != 2 {
		t.Errorf("the rights came back: %+v", state)
	}
	n := s.asked()
	probed(t, clock)
	if s.asked() != n {
		t.Error("asked again although the rights are there")
	}
}

func TestRightsThatAreTakenBackQuietlyAreMissedWithinAMinute(t *testing.T) {
	s := newGrantingServer(t)
	p, clock := startGranted(t, s)
	<-s.arrived
	resting(t, clock)
	s.set(func() { s.granted = false })
	for begin := clock.Now(); !p.State().Revoked(); probed(t, clock) {
		if clock.Since(begin) >= time.Minute {
			t.Fatalf("not missed yet: %+v", p.State())
		}
	}
}

// Who relies on a witness asks for the rights as soon as that one has lost them: watches that were opened before go on, and tell nothing.
func TestRightsAreAskedForWhenTheWitnessLosesThem(t *testing.T) {
	s := newGrantingServer(t)
	var vouches atomic.Bool
	vouches.Store(true)
	p, clock := startVouched(t, s, func(context.Context) bool { return vouches.Load() })
	<-s.arrived
	resting(t, clock)
	s.set(func() { s.granted = false })
	vouches.Store(false)
	p.Doubt()
	for begin := clock.Now(); !p.State().Revoked(); probed(t, clock) {
		if clock.Since(begin) >= time.Minute {
			t.Fatalf("not missed yet: %+v", p.State())
		}
	}
}

func TestAPeerThatDoesNotTellOfRightsIsNotRevoked(t *testing.T) {
	s := newGrantingServer(t)
	s.silent = true
	p, clock := startGranted(t, s)
	<-s.arrived
	for range 2 {
		probed(t, clock)
	}
	if n := s.asked(); n != 1 || !p.State().Usable() {
		t.Errorf("asked %d times, %+v", n, p.State())
	}
}

func TestARestartIsNoNewsOfRightsThatAreGone(t *testing.T) {
	s := newGrantingServer(t)
	s.granted = false
	p, clock := startGranted(t, s)
	<-s.arrived
	resting(t, clock)
	if state := p.State(); state.Connected || state.Lost() {
		t.Errorf("one denial decides: %+v", state)
	}
	probed(t, clock)
	if state := p.State(); !state.Revoked() {
		t.Errorf("two denials do not decide: %+v", state)
	}
}

// Credentials that come just before the first probe are tried by it, and not once more at once: two denials within a moment decide nothing.
func TestCredentialsAreNotTriedTwiceAtOnce(t *testing.T) {
	s := newGrantingServer(t)
	s.granted = false
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	p, err := New(Options{
		ClusterID: "milan", Kubeconfig: StaticSource(s.kubeconfig(t, nil)), Endpoints: identity.EndpointPolicy{AllowLoopback: true}, Clock: clock,
		Rights: func() []Right { return []Right{{Verb: "list", Resource: "shadowpods", Namespace: "shop"}} },
	})
	if err != nil {
		t.Fatal(err)
	}
	p.load(s.kubeconfig(t, nil))
	if len(p.wake) != 1 {
		t.Fatal("nobody was woken")
	}
	p.probe(t.Context())
	over := make(chan time.Time)
	rested := make(chan bool)
	go func() { rested <- p.rest(t.Context(), over, false) }()
	for deadline := time.After(time.Minute); len(p.wake) != 0; {
		select {
		case <-rested:
			t.Fatal("the same credentials are tried again at once")
		case <-deadline:
			t.Fatal("the news of the credentials was not taken")
		case <-time.After(time.Millisecond):
		}
	}
	select {
	case over <- clock.Now():
	case <-rested:
		t.Fatal("the same credentials are tried again at once")
	}
	if !<-rested {
		t.Error("the time of the next probe has come")
	}
	if n := s.asked(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestSomebodyElseIsTold(t *testing.T) {
	p, err := New(Options{ClusterID: "milan", Kubeconfig: StaticSource(nil)})
	if err != nil {
		t.Fatal(err)
	}
	var states []State
	p.Subscribe(func(s State) { states = append(states, s) })
	p.change(func(s *State) { s.Connected, s.Reason = true, ReasonConnected })
	p.Tell("the slice is denied")
	p.Tell("the slice is denied")
	p.Tell("")
	var got []string
	for _, s := range states {
		got = append(got, s.Reason)
	}
	if diff := cmp.Diff([]string{ReasonConnected, ReasonRevoked, ReasonConnected}, got); diff != "" {
		t.Error(diff)
	}
}
