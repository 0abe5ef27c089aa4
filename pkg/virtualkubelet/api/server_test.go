package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	clientremote "k8s.io/client-go/tools/remotecommand"

	"liqo.io/liqo/test/fakeapi"
)

func TestPodsAndHealth(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "local", Name: name}, Status: corev1.PodStatus{Phase: phase}}
	}
	n := startNode(t, nodeOptions{remote: startProvider(t).remote(t), pods: []*corev1.Pod{pod("a", corev1.PodRunning), pod("b", corev1.PodPending)}})
	item := func(name, phase string) string {
		return `{"metadata":{"name":"` + name + `","namespace":"local"},"spec":{"containers":null},"status":{"phase":"` + phase + `"}}`
	}
	list := func(items ...string) string {
		return `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[` + strings.Join(items, ",") + "]}\n"
	}
	for path, want := range map[string]string{
		"/pods": list(item("a", "Running"), item("b", "Pending")), "/runningpods/": list(item("a", "Running")), "/healthz": "ok",
	} {
		code, body := n.get(t, path)
		equal(t, answer{200, want}, answer{code, body})
	}
	if _, body := n.get(t, "/metrics"); !strings.Contains(body, `liqo_virtual_kubelet_api_requests_total{code="200",route="pods"} 1`) {
		t.Errorf("got the metrics %s", body)
	}
}

// Who stands by for another virtual kubelet knows nothing of the node's pods: it says so, rather than that there are none.
func TestWhoStandsBySaysSo(t *testing.T) {
	var working atomic.Bool
	n := startNode(t, nodeOptions{remote: startProvider(t).remote(t), working: working.Load})
	want := answer{502, "node virtual: this virtual kubelet stands by for another one, or has just taken over the node; try again in a moment\n"}
	for _, path := range []string{"/pods", "/runningpods", "/containerLogs/local/pod/main"} {
		equal(t, want, n.do(t, http.MethodGet, path, tls.Certificate{}, "good"))
	}
	for _, path := range []string{"/exec/local/pod/main?command=x&output=1", "/attach/local/pod/main?output=1", "/portForward/local/pod"} {
		equal(t, want, n.upgrading(t, path))
	}
	if code, body := n.get(t, "/healthz"); code != 200 {
		t.Errorf("its health is %d: %s", code, body)
	}
	working.Store(true)
	if code, body := n.get(t, "/pods"); code != 200 {
		t.Errorf("when it works, pods are %d: %s", code, body)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	p := startProvider(t)
	more, ended := make(chan string), make(chan struct{}, 2)
	p.logs = speaking(more, ended)
	n := startNode(t, nodeOptions{remote: p.remote(t), limits: Limits{Streams: 1}})
	response := n.follow(t.Context(), t)
	if _, err := io.ReadFull(response.Body, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	want := answer{429, "too many streams to the provider cluster: 1 are running, the most that is allowed; close some and try again\n"}
	equal(t, want, n.do(t, http.MethodGet, "/containerLogs/local/pod/main", tls.Certificate{}, "good"))
	equal(t, want, n.upgrading(t, "/exec/local/pod/main?command=x&output=1"))
	equal(t, want, n.upgrading(t, "/portForward/local/pod"))
	if _, body := n.get(t, "/metrics"); !strings.Contains(body, "liqo_virtual_kubelet_api_streams 1") {
		t.Errorf("got the metrics %s", body)
	}
	close(more)
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	within(t, ended, "the first stream")
	p.logs = func(http.ResponseWriter, *http.Request) {}
	for got := want; got.code == 429; {
		got = n.do(t, http.MethodGet, "/containerLogs/local/pod/main", tls.Certificate{}, "good")
	}
}

func TestForwardedConnectionsCountAsStreams(t *testing.T) {
	p := startProvider(t)
	n := startNode(t, nodeOptions{remote: p.remote(t), limits: Limits{Streams: 1}})
	conn, err := tunnels["SPDY"](t, n)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	problems, _ := connect(t, conn, "81", "1")
	if text := readAll(t, problems); !strings.Contains(text, "too many streams") {
		t.Errorf("got %q", text)
	}
}

func TestStoppingEndsAllStreams(t *testing.T) {
	p := startProvider(t)
	n := startNode(t, nodeOptions{remote: p.remote(t)}) // its Run must return: see the cleanup
	stdin, never := io.Pipe()
	out, written := io.Pipe()
	t.Cleanup(func() {
		// Runs before the node's cleanup; the stream itself is left open until the node stops.
		go func() { _, _ = io.Copy(io.Discard, out) }()
	})
	go func() {
		_ = protocols["SPDY"](t, n, "/exec/local/pod/main?command=hang&input=1&output=1").StreamWithContext(context.WithoutCancel(t.Context()),
			clientremote.StreamOptions{Stdin: stdin, Stdout: written})
		_, _ = never.Close(), written.Close()
	}()
	if _, err := io.ReadFull(out, make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
}

// A provider that accepts connections and then sends without end, or nothing, must not cost more than the bounds.
func TestAHostileProviderIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		behave func(net.Conn)
		want   string
	}{
		"endless headers": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n")
			for line := "X-Filler: " + strings.Repeat("x", 4000) + "\r\n"; ; {
				if _, err := io.WriteString(conn, line); err != nil {
					return
				}
			}
		}, "it sent too much before it accepted the stream"},
		"silence": {func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }, "no answer in time"},
		"closed":  {func(conn net.Conn) { _ = conn.Close() }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer func() { _ = conn.Close() }()
						_, _ = conn.Read(make([]byte, 4096))
						c.behave(conn)
					}()
				}
			}()
			config := *startProvider(t).config(t)
			config.Host = "http://" + listener.Addr().String()
			config.TLSClientConfig.Insecure = false
			n := startNode(t, nodeOptions{limits: Limits{DialTimeout: 2 * time.Second}, remote: remoteFunc(func(_, _, _ string) (Target, error) {
				return Target{Config: &config, Namespace: "twin", Pod: "pod-1"}, nil
			})})
			err = protocols["WebSocket v5"](t, n, "/exec/local/pod/main?command=x&output=1").StreamWithContext(t.Context(),
				clientremote.StreamOptions{Stdout: io.Discard})
			if err == nil || !strings.Contains(err.Error(), "exec at the provider cluster: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v", err)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := New(Options{Limits: Limits{Streams: -1}})
	for _, want := range []string{"Remote", "LocalClient", "GetCertificate", "NodeName", "must not be negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error %v", want, err)
		}
	}
	registry := prometheus.NewRegistry()
	options := Options{Remote: remoteFunc(nil), NodeName: "n", LocalClient: newClient(t, startProvider(t).config(t)), Registerer: registry,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }}
	server, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	if server.Handler() == nil {
		t.Error("no handler")
	}
	if _, err := New(options); err == nil {
		t.Error("metrics were registered twice")
	}
	options.Registerer, options.Address = nil, "127.0.0.1:-1"
	server, err = New(options)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "listening for the kubelet API") {
		t.Errorf("Run ended with %v", err)
	}
}

func TestClientCA(t *testing.T) {
	ca := newAuthority(t, "ca")
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca.pem(), 0o600); err != nil {
		t.Fatal(err)
	}
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data: map[string]string{"client-ca-file": string(ca.pem())}}
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct {
		objects []runtime.Object
		err     error
		file    string
		want    string // the kind of provider
		failure string
	}{
		"published":                  {objects: []runtime.Object{published}, file: file, want: "ConfigMap"},
		"may not read, file":         {err: apierrors.NewForbidden(resource, "x", nil), file: file, want: "file"},
		"may not read, no file":      {err: apierrors.NewForbidden(resource, "x", nil)},
		"not published, file":        {file: file, want: "file"},
		"not published, broken file": {file: file + "x", failure: "reading the client CA from file"},
		"API server down":            {err: apierrors.NewServiceUnavailable("down"), file: file, failure: "reading the client CA from ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(c.objects...)
			if c.err != nil {
				fakeapi.React(&client.Fake, "get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
			}
			provider, err := ClientCA(t.Context(), client, c.file)
			got := ""
			switch provider.(type) {
			case *dynamiccertificates.ConfigMapCAController:
				got = "ConfigMap"
			case *dynamiccertificates.DynamicFileCAContent:
				got = "file"
			}
			equal(t, c.want, got)
			if provider != nil {
				equal(t, string(ca.pem()), loaded(t, provider))
			}
			if (c.failure == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.failure)) {
				t.Errorf("got the error %v", err)
			}
		})
	}
}

// A kube-apiserver that comes before the CA of its certificate is read waits for it, and is not refused; nothing counts as served before.
func TestCallersWaitForTheClientCA(t *testing.T) {
	reviews := httptest.NewServer(&reviewer{})
	t.Cleanup(reviews.Close)
	ca := &lateCA{authority: newAuthority(t, "client-ca")}
	certificate := newCertificate(t, nil, pkix.Name{CommonName: "serving"}, true)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	knownWhenServing := make(chan bool, 1)
	server, err := New(Options{
		Remote: remoteFunc(nil), LocalClient: newClient(t, &rest.Config{Host: reviews.URL, QPS: -1}), ClientCA: ca, NodeName: "virtual", Listener: socket,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
		Serving:        func() { knownWhenServing <- ca.asked.Load() >= lateCAQuestions },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- server.Run(ctx) }()
	n := &node{Server: server, url: "https://" + socket.Addr().String()}
	client := newCertificate(t, ca.authority, pkix.Name{CommonName: "kube-apiserver"}, false)
	equal(t, answer{http.StatusOK, "ok"}, n.do(t, http.MethodGet, "/healthz", client, ""))
	equal(t, true, within(t, knownWhenServing, "to be told that the server serves"))
	cancel()
	if err := within(t, stopped, "the server to stop"); err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// lateCAQuestions is how often a lateCA must be asked before it knows.
const lateCAQuestions = 3

// lateCA is a client CA that is not known at once.
type lateCA struct {
	*authority
	dynamiccertificates.CAContentProvider
	asked atomic.Int32
}

func (l *lateCA) VerifyOptions() (x509.VerifyOptions, bool) {
	pool := x509.NewCertPool()
	pool.AddCert(l.cert)
	return x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, l.asked.Add(1) >= lateCAQuestions
}

func (l *lateCA) RunOnce(context.Context) error { return nil }

func (l *lateCA) Run(ctx context.Context, _ int) { <-ctx.Done() }

type listener chan struct{}

func (l listener) Enqueue() { close(l) }

// loaded runs a provider until it has its content.
func loaded(t *testing.T, provider dynamiccertificates.CAContentProvider) string {
	t.Helper()
	changed := make(listener)
	provider.AddListener(changed)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		provider.(dynamiccertificates.ControllerRunner).Run(ctx, 1)
	}()
	if provider.CurrentCABundleContent() == nil {
		within(t, changed, "the client CA to be read")
	}
	cancel()
	<-stopped
	return string(provider.CurrentCABundleContent())
}
