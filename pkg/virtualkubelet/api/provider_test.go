package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/proxy"
	apiproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/rest"
	criforward "k8s.io/cri-streaming/pkg/streaming/portforward"
	criremote "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"
)

const (
	creation = 10 * time.Second
	idle     = time.Minute
)

// provider is an API server with a kubelet behind it, built from the code that the real ones use.
type provider struct {
	front, back *httptest.Server
	noWebSocket bool             // as an API server before 1.30, or a proxy that lets SPDY through only
	override    http.HandlerFunc // answers instead of everything when set

	mu    sync.Mutex
	asked []string // method and URI of each request, with the protocol that it upgrades to

	conns []net.Conn // all that were ever accepted
	// logs writes the answer to a log request.
	logs http.HandlerFunc
	// hung gets a value when a command that waits for its stdin lost it.
	hung chan string
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{hung: make(chan string, 10)}
	p.back = httptest.NewServer(http.HandlerFunc(p.kubelet))
	t.Cleanup(p.back.Close)
	p.front = httptest.NewUnstartedServer(http.HandlerFunc(p.apiserver))
	p.front.Listener = &recording{Listener: p.front.Listener, provider: p}
	p.front.StartTLS()
	t.Cleanup(p.front.Close)
	return p
}

// recording remembers connections, which the test server does not once they are hijacked.
type recording struct {
	net.Listener
	provider *provider
}

func (r *recording) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	r.provider.mu.Lock()
	defer r.provider.mu.Unlock()
	if err == nil {
		r.provider.conns = append(r.provider.conns, conn)
	}
	return conn, err
}

// cut breaks all connections.
func (p *provider) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
}

// config connects to it.
func (p *provider) config(t *testing.T) *rest.Config {
	t.Helper()
	config := &rest.Config{Host: p.front.URL, BearerToken: "tenant", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	return config
}

// remote resolves the pod "local/pod" to "twin/pod-1" here.
func (p *provider) remote(t *testing.T) Remote {
	config := p.config(t)
	return remoteFunc(func(namespace, pod, uid string) (Target, error) {
		if namespace == "dead" {
			return Target{}, fmt.Errorf("peer milan: %w", ErrNotConnected)
		}
		if namespace != "local" || pod != "pod" || (uid != "" && uid != "uid-1") {
			return Target{}, ErrNotFound
		}
		return Target{Config: config, Namespace: "twin", Pod: "pod-1", Containers: []string{"main", "init"}}, nil
	})
}

func (p *provider) questions() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

func (p *provider) apiserver(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Upgrade")))
	p.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer tenant" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if p.override != nil {
		p.override(w, r)
		return
	}
	action, isPod := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/twin/pods/pod-1/")
	if !isPod {
		http.NotFound(w, r)
		return
	}
	if action == "log" {
		p.logs(w, r)
		return
	}
	if p.noWebSocket && wsstream.IsWebSocketRequest(r) {
		http.Error(w, "no WebSocket here", http.StatusForbidden)
		return
	}
	location, _ := url.Parse(p.back.URL + "/" + action)
	location.RawQuery = r.URL.RawQuery
	var handler http.Handler = proxy.NewUpgradeAwareHandler(location, nil, false, true, failing{})
	query := r.URL.Query()
	wants := func(name string) bool { return query.Get(name) == "true" }
	switch {
	case wsstream.IsWebSocketRequestWithTunnelingProtocol(r):
		handler = apiproxy.NewTunnelingHandler(handler)
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		handler = apiproxy.NewStreamTranslatorHandler(location, nil, 0, apiproxy.Options{
			Stdin: wants("stdin"), Stdout: wants("stdout"), Stderr: wants("stderr"), Tty: wants("tty")})
	}
	handler.ServeHTTP(w, r)
}

type failing struct{}

func (failing) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

func (p *provider) kubelet(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	wants := func(name string) bool { return query.Get(name) == "true" }
	streams := &criremote.Options{Stdin: wants("stdin"), Stdout: wants("stdout"), Stderr: wants("stderr"), TTY: wants("tty")}
	switch r.URL.Path {
	case "/exec":
		criremote.ServeExec(w, r, p, "", "", query.Get("container"), query["command"], streams, idle, creation, criremote.SupportedStreamingProtocols)
	case "/attach":
		criremote.ServeAttach(w, r, p, "", "", query.Get("container"), streams, idle, creation, criremote.SupportedStreamingProtocols)
	case "/portforward":
		criforward.ServePortForward(w, r, p, "", "", &criforward.V4Options{}, idle, creation, criforward.SupportedProtocols)
	}
}

// ExecInContainer plays a few commands.
func (p *provider) ExecInContainer(ctx context.Context, _, _, container string, command []string, in io.Reader, out, stderr io.WriteCloser,
	_ bool, resize <-chan criremote.TerminalSize, _ time.Duration) error {
	switch command[0] {
	case "say":
		_, _ = fmt.Fprintf(out, "out of %s: %s", container, strings.Join(command[1:], "|"))
		if stderr != nil {
			_, _ = io.WriteString(stderr, "err")
		}
		_ = out.Close()
	case "cat":
		_, err := io.Copy(out, in)
		_ = out.Close()
		return err
	case "exit":
		_, _ = io.WriteString(out, "bye")
		return utilexec.CodeExitError{Err: errors.New("command terminated with exit code 3"), Code: 3}
	case "sizes":
		for range 2 {
			size := <-resize
			_, _ = fmt.Fprintf(out, "%dx%d ", size.Width, size.Height)
		}
		_ = out.Close()
	case "hang":
		_, _ = io.WriteString(out, "hanging")
		_, _ = io.Copy(io.Discard, in)
		p.hung <- "lost stdin"
	case "fail":
		return errors.New("no such \x1b[31mfile" + strings.Repeat("!", 5000))
	}
	return nil
}

// AttachContainer echoes.
func (p *provider) AttachContainer(ctx context.Context, _, _, container string, in io.Reader, out, stderr io.WriteCloser,
	tty bool, resize <-chan criremote.TerminalSize) error {
	return p.ExecInContainer(ctx, "", "", container, []string{"cat"}, in, out, stderr, tty, resize, 0)
}

// PortForward echoes on port 80, in capitals, and refuses all others.
func (p *provider) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	if port != 80 {
		return errors.New("connection refused")
	}
	buffer := make([]byte, 1024)
	for {
		n, err := stream.Read(buffer)
		if n > 0 {
			if _, err := io.WriteString(stream, strings.ToUpper(string(buffer[:n]))); err != nil {
				return err
			}
		}
		if err != nil {
			p.hung <- "port-forward ended"
			return nil
		}
	}
}

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("after %q: %v", text, err)
	}
	return string(text)
}

// within fails the test when nothing comes.
func within[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(2 * time.Minute):
		t.Fatalf("waited two minutes for %s", what)
		panic("unreachable")
	}
}

func equal[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
