package peer

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"liqo.io/liqo/pkg/identity"
)

// channelSource hands out what a test sends.
type channelSource chan []byte

func (s channelSource) Run(ctx context.Context, changed func([]byte)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case raw := <-s:
			changed(raw)
		}
	}
}

// start runs a peer with fast probes, which are soon given up, and returns it with the states that it reports.
func start(t *testing.T, source Source) (*Peer, <-chan State) {
	t.Helper()
	return startWith(t, source, 100*time.Millisecond)
}

// startWith is start with a time for each probe and request.
func startWith(t *testing.T, source Source, timeout time.Duration) (*Peer, <-chan State) {
	t.Helper()
	p, err := New(Options{
		ClusterID: "milan", Kubeconfig: source, Endpoints: identity.EndpointPolicy{AllowLoopback: true},
		ProbeInterval: 20 * time.Millisecond, ProbeTimeout: timeout, RequestTimeout: timeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	states := make(chan State, 1000)
	p.Subscribe(func(s State) { states <- s })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return p, states
}

// await returns the first state that fits.
func await(t *testing.T, states <-chan State, what string, fits func(State) bool) State {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case s := <-states:
			if fits(s) {
				return s
			}
		case <-deadline:
			t.Fatalf("the peer never was %s", what)
		}
	}
}

func connected(s State) bool { return s.Connected }

func TestPeerIsLostAfterSeveralFailuresAndRegainedAtOnce(t *testing.T) {
	s := newServer(t)
	// A slow probe would count as one more loss.
	p, states := startWith(t, StaticSource(s.kubeconfig(t, nil)), time.Minute)
	got := await(t, states, "connected", connected)
	if got.ServerVersion != "v1.36.3" || got.Reason != ReasonConnected || got.Epoch != 1 {
		t.Errorf("connected as %+v", got)
	}
	s.answer(http.StatusInternalServerError)
	await(t, states, "unreachable", func(s State) bool { return !s.Connected && s.Reason == ReasonUnreachable })
	if _, err := p.Clients(); err != nil {
		t.Errorf("the clients went with the connection: %v", err)
	}
	s.answer(http.StatusOK)
	if got := await(t, states, "connected again", connected); got.Epoch != 2 {
		t.Errorf("what is watched is not begun anew after a loss: %+v", got)
	}
}

func TestALostPeerSaysItsNewestCause(t *testing.T) {
	s := newServer(t)
	s.answer(http.StatusInternalServerError)
	_, states := start(t, StaticSource(s.kubeconfig(t, nil)))
	says := func(words string) func(State) bool {
		return func(s State) bool { return s.Reason == ReasonUnreachable && strings.Contains(s.Message, words) }
	}
	await(t, states, "unreachable", says("does not answer"))
	s.mu.Lock()
	s.hang = make(chan struct{})
	s.mu.Unlock()
	await(t, states, "said to hang", says("no answer in time"))
	s.Close()
	await(t, states, "said to be away", says("nothing listens"))
}

func TestPeerThatHangsBlocksNobody(t *testing.T) {
	s := newServer(t)
	p, states := start(t, StaticSource(s.kubeconfig(t, nil)))
	await(t, states, "connected", connected)
	s.mu.Lock()
	s.hang = make(chan struct{})
	s.mu.Unlock()
	await(t, states, "unreachable", func(s State) bool { return s.Reason == ReasonUnreachable })
	clients, err := p.Clients()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.Kube.CoreV1().Pods("a").Get(t.Context(), "b", metav1.GetOptions{}); err == nil {
		t.Error("a request to a peer that hangs has no deadline")
	}
}

func TestCredentialsThatAreNotAccepted(t *testing.T) {
	s := newServer(t)
	s.answer(http.StatusUnauthorized)
	_, states := start(t, StaticSource(s.kubeconfig(t, nil)))
	got := await(t, states, "unauthorized", func(s State) bool { return s.Reason == ReasonUnauthorized })
	if got.Connected {
		t.Error("a peer that refuses us counts as connected")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	s := newServer(t)
	s.answer(http.StatusFound)
	_, states := start(t, StaticSource(s.kubeconfig(t, nil)))
	got := await(t, states, "unreachable", func(s State) bool { return s.Reason == ReasonUnreachable })
	if !strings.Contains(got.Message, "redirect") {
		t.Errorf("the message is %q", got.Message)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != http.StatusFound {
		t.Error("somebody changed the server")
	}
}

func TestNewCredentialsAreTakenWithoutRestart(t *testing.T) {
	s := newServer(t)
	source := make(channelSource)
	p, states := startWith(t, source, time.Minute)
	if _, err := p.Clients(); !errors.Is(err, ErrNotConnected) {
		t.Fatalf("before any credentials: %v", err)
	}
	source <- s.kubeconfig(t, nil)
	await(t, states, "connected with the first token", func(st State) bool { return st.Connected && st.Epoch == 1 })
	first, _ := p.Clients()
	source <- s.kubeconfig(t, nil) // the same again changes nothing
	source <- []byte("not a kubeconfig")
	await(t, states, "told about a bad kubeconfig", func(st State) bool { return st.Reason == ReasonInvalidKubeconfig })
	if second, _ := p.Clients(); second != first {
		t.Error("a bad kubeconfig changed the clients")
	}
	source <- s.kubeconfig(t, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.Token = "two" })
	await(t, states, "in its second epoch", func(st State) bool { return st.Epoch == 2 })
	clients, _ := p.Clients()
	if clients == first {
		t.Error("other credentials left the clients")
	}
	_, _ = clients.Kube.CoreV1().Pods("a").Get(t.Context(), "b", metav1.GetOptions{})
	if token := s.lastToken(); token != "Bearer two" {
		t.Errorf("the token is %q", token)
	}
}

func TestSecretSourceFollowsOneSecret(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}, Data: map[string][]byte{"kubeconfig": []byte("1")}}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}, Data: map[string][]byte{"kubeconfig": []byte("x")}}
	client := fake.NewClientset(secret, other)
	got := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = SecretSource{Client: client, Namespace: "ns", Name: "mine"}.Run(ctx, func(raw []byte) { got <- string(raw) })
	}()
	defer func() { cancel(); <-done }()
	want := func(value string) {
		t.Helper()
		deadline := time.After(2 * time.Minute)
		for {
			select {
			case raw := <-got:
				if raw == "x" {
					t.Fatal("another Secret was read")
				}
				if raw == value {
					return
				}
			case <-deadline:
				t.Fatalf("%q never came", value)
			}
		}
	}
	want("1")
	secret = secret.DeepCopy()
	secret.Data["kubeconfig"] = []byte("2")
	if _, err := client.CoreV1().Secrets("ns").Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want("2")
}

func TestStreamsHaveNoDeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		path    string
		upgrade bool
		want    bool
	}{
		"a plain request":      {path: "/api/v1/pods", want: false},
		"a list":               {path: "/api/v1/pods?limit=500", want: false},
		"a watch":              {path: "/api/v1/pods?watch=true", want: true},
		"an old watch":         {path: "/api/v1/pods?watch=1", want: true},
		"followed logs":        {path: "/api/v1/namespaces/a/pods/b/log?follow=true", want: true},
		"logs":                 {path: "/api/v1/namespaces/a/pods/b/log", want: true},
		"exec":                 {path: "/api/v1/namespaces/a/pods/b/exec?command=ls", want: true},
		"an upgrade":           {path: "/anything", upgrade: true, want: true},
		"a pod named log":      {path: "/api/v1/namespaces/a/pods/log/status", want: false},
		"a watch that is off":  {path: "/api/v1/pods?watch=false", want: false},
		"a port being forward": {path: "/api/v1/namespaces/a/pods/b/portforward", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://192.0.2.1"+tc.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if tc.upgrade {
				request.Header.Set("Upgrade", "websocket")
			}
			if got := isStream(request); got != tc.want {
				t.Errorf("stream = %v", got)
			}
		})
	}
}

func TestBackOff(t *testing.T) {
	var got []time.Duration
	for failures := range 9 {
		got = append(got, BackOff(failures, time.Second, time.Minute, 0))
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{s, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s}, got); diff != "" {
		t.Error(diff)
	}
	if got := BackOff(1000000, s, 10*s, 1); got != 8*s {
		t.Errorf("with full jitter: %s", got)
	}
}

func TestNewRefusesIncompleteOptions(t *testing.T) {
	for name, o := range map[string]Options{"no cluster": {Kubeconfig: StaticSource("")}, "no source": {ClusterID: "a"}} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestConfigIsACopy(t *testing.T) {
	s := newServer(t)
	p, states := start(t, StaticSource(s.kubeconfig(t, nil)))
	await(t, states, "connected", connected)
	config, err := p.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.Host = "https://elsewhere"
	again, _ := p.Config()
	if again.Host != s.URL || again.QPS != -1 {
		t.Errorf("the config is %s with %v requests a second", again.Host, again.QPS)
	}
	if _, err := rest.HTTPClientFor(again); err != nil {
		t.Error(err)
	}
}
