package peer

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"liqo.io/liqo/pkg/identity"
)

// vouchedPeer is a connected peer on a clock of the test, whose witness says what the test wants.
type vouchedPeer struct {
	*testing.T
	*Peer
	server *server
	clock  *testclock.FakeClock
	word   atomic.Bool
	asked  chan struct{}
	states chan State
}

func newVouchedPeer(t *testing.T) *vouchedPeer {
	t.Helper()
	v := &vouchedPeer{T: t, server: newServer(t), clock: testclock.NewFakeClock(time.Unix(1000, 0)), asked: make(chan struct{}, 1000), states: make(chan State, 1000)}
	v.word.Store(true)
	var err error
	v.Peer, err = New(Options{
		ClusterID: "milan", Kubeconfig: StaticSource(v.server.kubeconfig(t, nil)), Endpoints: identity.EndpointPolicy{AllowLoopback: true},
		Clock: v.clock, Witness: func(context.Context) bool {
			v.asked <- struct{}{}
			return v.word.Load()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	v.Subscribe(func(s State) { v.states <- s })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = v.Peer.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	await(t, v.states, "connected", connected)
	<-v.server.arrived
	return v
}

// interval lets the time to the next probe pass, and waits until it is decided.
func (v *vouchedPeer) interval(asked bool) {
	v.Helper()
	for !v.clock.HasWaiters() {
		if v.Context().Err() != nil {
			v.Fatal("nobody waits for the time of the next probe")
		}
	}
	v.clock.Step(DefaultProbeInterval)
	if asked {
		v.receive(v.asked, "question to the witness")
	}
}

func (v *vouchedPeer) receive(from <-chan struct{}, what string) {
	v.Helper()
	select {
	case <-from:
	case <-time.After(2 * time.Minute):
		v.Fatalf("no %s within two minutes", what)
	}
}

func (v *vouchedPeer) quiet() {
	v.Helper()
	if n := len(v.server.arrived); n != 0 {
		v.Errorf("%d requests arrived", n)
	}
}

func TestPeerIsNotProbedWhileSomebodyVouches(t *testing.T) {
	v := newVouchedPeer(t)
	for range 10 {
		v.interval(true)
	}
	v.quiet()
	v.word.Store(false)
	v.interval(true)
	v.receive(v.server.arrived, "probe once nobody vouches")
	v.word.Store(true)
	v.interval(true)
	v.quiet()
}

func TestPeerIsProbedNowAndThenWhoeverVouches(t *testing.T) {
	v := newVouchedPeer(t)
	for passed := DefaultProbeInterval; passed < maxSilence; passed += DefaultProbeInterval {
		v.interval(true)
	}
	v.quiet()
	v.interval(false)
	v.receive(v.server.arrived, "probe after the longest silence")
}

func TestPeerIsProbedAtOnceWhenSomethingSpeaksAgainstIt(t *testing.T) {
	for name, tc := range map[string]struct {
		doubt  func(v *vouchedPeer)
		status int // of the server from then on
		want   string
	}{
		"a request finds us unknown": {func(v *vouchedPeer) { v.request() }, http.StatusUnauthorized, ReasonUnauthorized},
		"a request is not answered": {func(v *vouchedPeer) {
			v.server.Close()
			v.request()
		}, http.StatusOK, ReasonUnreachable},
		"somebody doubts it": {func(v *vouchedPeer) { v.Doubt() }, http.StatusInternalServerError, ReasonUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVouchedPeer(t)
			v.interval(true)
			v.quiet()
			v.server.answer(tc.status)
			tc.doubt(v)
			// The first failure may be one lost packet: the second probe follows soon, whatever the witness says.
			deadline := time.After(2 * time.Minute)
			for {
				select {
				case s := <-v.states:
					if !s.Connected && s.Reason == tc.want {
						return
					}
				case <-deadline:
					t.Fatalf("the peer never was %s", tc.want)
				default:
					if v.failing() {
						v.clock.Step(minBackOff)
					}
				}
			}
		})
	}
}

func TestPeerInDoubtThatAnswersIsSparedAgain(t *testing.T) {
	v := newVouchedPeer(t)
	v.interval(true)
	v.Doubt()
	v.receive(v.server.arrived, "probe because of a doubt")
	v.interval(true)
	v.quiet()
}

// request makes a request as a watch does when it is opened anew.
func (v *vouchedPeer) request() {
	v.Helper()
	clients, err := v.Clients()
	if err != nil {
		v.Fatal(err)
	}
	if _, err := clients.Kube.CoreV1().ConfigMaps("a").Get(v.Context(), "b", metav1.GetOptions{}); err == nil {
		v.Error("the request was answered")
	}
}

func (v *vouchedPeer) failing() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failures > 0
}
