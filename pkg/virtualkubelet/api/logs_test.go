package api

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

const logPath = "/api/v1/namespaces/twin/pods/pod-1/log"

func TestLogParametersAreForwarded(t *testing.T) {
	for name, c := range map[string]struct{ query, want string }{
		"none":                   {"", "?container=main"},
		"follow and tail":        {"?follow=true&tailLines=10", "?container=main&follow=true&tailLines=10"},
		"tail of nothing":        {"?tailLines=0", "?container=main&tailLines=0"},
		"since seconds":          {"?sinceSeconds=60&timestamps=true", "?container=main&sinceSeconds=60&timestamps=true"},
		"since a time":           {"?sinceTime=2026-01-02T03:04:05Z", "?container=main&sinceTime=2026-01-02T03%3A04%3A05Z"},
		"previous and limited":   {"?previous=true&limitBytes=14", "?container=main&limitBytes=14&previous=true"},
		"one stream":             {"?stream=Stderr", "?container=main&stream=Stderr"},
		"all streams":            {"?stream=All&tailLines=1", "?container=main&tailLines=1"},
		"without TLS to the pod": {"?insecureSkipTLSVerifyBackend=true", "?container=main&insecureSkipTLSVerifyBackend=true"},
		"unknown are dropped":    {"?container=other&pretty=true&follow=false", "?container=main"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t)
			p.logs = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "line 1\nline 2\n") }
			n := startNode(t, nodeOptions{remote: p.remote(t)})
			code, body := n.get(t, "/containerLogs/local/pod/main"+c.query)
			equal(t, answer{200, "line 1\nline 2\n"}, answer{code, body})
			equal(t, []string{"GET " + logPath + c.want}, p.questions())
		})
	}
}

func TestLogRequestsAreRefused(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		uri  string
		logs http.HandlerFunc
		code int
		body string
	}{
		"bad number":      {uri: "/containerLogs/local/pod/main?tailLines=x", code: 422, body: "invalid query parameter tailLines: must be a whole number of at least 0"},
		"negative":        {uri: "/containerLogs/local/pod/main?limitBytes=-1", code: 422, body: "invalid query parameter limitBytes: must be a whole number of at least 1"},
		"bad time":        {uri: "/containerLogs/local/pod/main?sinceTime=now", code: 422, body: "invalid query parameter sinceTime: must be a time such as 2006-01-02T15:04:05Z"},
		"bad stream":      {uri: "/containerLogs/local/pod/main?stream=x", code: 422, body: "invalid query parameter stream: must be All, Stdout or Stderr"},
		"two sinces":      {uri: "/containerLogs/local/pod/main?sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z", code: 422, body: "at most one of sinceTime and sinceSeconds may be given"},
		"tail of one":     {uri: "/containerLogs/local/pod/main?stream=Stdout&tailLines=1", code: 422, body: "tailLines and a single stream cannot be combined"},
		"other container": {uri: "/containerLogs/local/pod/other", code: 404, body: `pod local/pod: container "other" not found in pod "pod": pod not found on this node`},
		"path tricks":     {uri: "/containerLogs/local/..%2F..%2Fpod/main", code: 400, body: `invalid pod name "../../pod": a lowercase RFC 1123 subdomain`},
		"bad namespace":   {uri: "/containerLogs/Local/pod/main", code: 400, body: `invalid namespace "Local"`},
		"bad container":   {uri: "/containerLogs/local/pod/a%20b", code: 400, body: `invalid container name "a b"`},
		"peer down":       {uri: "/containerLogs/dead/pod/main", code: 502, body: "the provider cluster is not connected"},
		"not started": {logs: status(400, `{"kind":"Status","status":"Failure","message":"container \"main\" is waiting to start","reason":"BadRequest","code":400}`),
			code: 400, body: `reading logs at the provider cluster: container "main" is waiting to start`},
		"redirect":    {logs: status(302, "{}"), code: 502, body: "reading logs at the provider cluster: "},
		"peer at 5xx": {logs: status(503, "busy"), code: 502, body: "reading logs at the provider cluster: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t)
			p.logs = c.logs
			n := startNode(t, nodeOptions{remote: p.remote(t)})
			uri := c.uri
			if uri == "" {
				uri = "/containerLogs/local/pod/main"
			}
			code, body := n.get(t, uri)
			if code != c.code || !strings.Contains(body, c.body) {
				t.Errorf("got %d %q", code, body)
			}
			if asked := p.questions(); len(asked) > 1 {
				t.Errorf("the provider was asked several times: %q", asked)
			}
		})
	}
}

// follow starts to follow logs and returns the answer.
func (n *node) follow(ctx context.Context, t *testing.T) *http.Response {
	t.Helper()
	return n.open(ctx, t, "?follow=true")
}

// open asks for the logs of a container and returns the answer.
func (n *node) open(ctx context.Context, t *testing.T, query string) *http.Response {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: insecure(), ForceAttemptHTTP2: ctx.Value(http2Key{}) != nil}
	t.Cleanup(transport.CloseIdleConnections)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/containerLogs/local/pod/main"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer good")
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

type http2Key struct{}

// speaking writes a line, waits for the end of the request or for more lines, and reports the end.
func speaking(more <-chan string, ended chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		for line := "first\n"; ; {
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
			select {
			case next, ok := <-more:
				if !ok {
					return
				}
				line = next
			case <-r.Context().Done():
				return
			}
		}
	}
}

func TestFollowedLogs(t *testing.T) {
	for protocol, http2 := range map[string]any{"HTTP/1.1": nil, "HTTP/2.0": true} {
		t.Run(protocol, func(t *testing.T) {
			p := startProvider(t)
			more, ended := make(chan string), make(chan struct{}, 1)
			p.logs = speaking(more, ended)
			n := startNode(t, nodeOptions{remote: p.remote(t), limits: Limits{DialTimeout: time.Minute}})
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), http2Key{}, http2))
			defer cancel()
			response := n.follow(ctx, t)
			equal(t, protocol, response.Proto)
			lines := bufio.NewReader(response.Body)
			line := func() string {
				text, _ := lines.ReadString('\n')
				return text
			}
			equal(t, "first\n", line())
			more <- "second\n"
			equal(t, "second\n", line())
			cancel()
			within(t, ended, "the provider to notice that the reader left")
		})
	}
}

func TestABrokenLogStreamDoesNotLookComplete(t *testing.T) {
	for protocol, http2 := range map[string]any{"HTTP/1.1": nil, "HTTP/2.0": true} {
		t.Run(protocol, func(t *testing.T) {
			p := startProvider(t)
			more, ended := make(chan string), make(chan struct{}, 1)
			p.logs = speaking(more, ended)
			n := startNode(t, nodeOptions{remote: p.remote(t)})
			response := n.follow(context.WithValue(t.Context(), http2Key{}, http2), t)
			if _, err := io.ReadFull(response.Body, make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
			p.cut()
			if _, err := io.ReadAll(response.Body); err == nil {
				t.Error("the log ended as if it were complete")
			}
			within(t, ended, "the provider's handler")
		})
	}
}

func TestSilentLogsEndAfterTheIdleTimeout(t *testing.T) {
	p := startProvider(t)
	more, ended := make(chan string), make(chan struct{}, 1)
	p.logs = speaking(more, ended)
	fake := clocktesting.NewFakeClock(time.Now())
	n := startNode(t, nodeOptions{remote: p.remote(t), clock: fake, limits: Limits{IdleTimeout: time.Hour}})
	response := n.follow(t.Context(), t)
	read := func() {
		if _, err := io.ReadFull(response.Body, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
	}
	read()
	fake.Step(59 * time.Minute)
	more <- "first\n"
	read()
	fake.Step(59 * time.Minute)
	more <- "first\n"
	read()
	fake.Step(61 * time.Minute)
	within(t, ended, "the stream to end")
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the log ended as if it were complete")
	}
}

func TestAHungProviderIsGivenUp(t *testing.T) {
	p := startProvider(t)
	asked := make(chan struct{}, 1)
	p.logs = func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}
	fake := clocktesting.NewFakeClock(time.Now())
	n := startNode(t, nodeOptions{remote: p.remote(t), clock: fake, limits: Limits{DialTimeout: time.Second}})
	got := make(chan answer, 1)
	go func() {
		got <- n.do(t, http.MethodGet, "/containerLogs/local/pod/main", tls.Certificate{}, "good")
	}()
	within(t, asked, "the provider to be asked")
	fake.Step(2 * time.Second)
	equal(t, answer{502, "reading logs at the provider cluster: no answer in time\n"}, within(t, got, "the answer"))
}
