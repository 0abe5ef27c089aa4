package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/remotecommand"
	clientremote "k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// protocols are the ways in which a kube-apiserver, old or new, talks to a kubelet.
var protocols = map[string]func(*testing.T, *node, string) clientremote.Executor{
	"SPDY": func(t *testing.T, n *node, uri string) clientremote.Executor {
		address, err := url.Parse(n.url + uri)
		if err != nil {
			t.Fatal(err)
		}
		executor, err := clientremote.NewSPDYExecutor(n.caller(), http.MethodPost, address)
		if err != nil {
			t.Fatal(err)
		}
		return executor
	},
	"WebSocket v5": func(t *testing.T, n *node, uri string) clientremote.Executor {
		executor, err := clientremote.NewWebSocketExecutor(n.caller(), http.MethodGet, n.url+uri)
		if err != nil {
			t.Fatal(err)
		}
		return executor
	},
	"WebSocket v4": func(t *testing.T, n *node, uri string) clientremote.Executor {
		executor, err := clientremote.NewWebSocketExecutorForProtocols(n.caller(), http.MethodGet, n.url+uri, remotecommand.StreamProtocolV4Name)
		if err != nil {
			t.Fatal(err)
		}
		return executor
	},
}

type sizes []clientremote.TerminalSize

func (s *sizes) Next() *clientremote.TerminalSize {
	if len(*s) == 0 {
		return nil
	}
	first := (*s)[0]
	*s = (*s)[1:]
	return &first
}

func TestCommandsReachTheTwin(t *testing.T) {
	type outcome struct {
		Out, Err string
		Code     int
		Failure  string
	}
	type call struct {
		uri     string
		stdin   string
		stderr  bool
		sizes   sizes
		want    outcome
		skipped string // protocol that cannot do this
	}
	for name, c := range map[string]call{
		"output and errors come back": {
			uri:    "/exec/local/pod/main?command=say&command=hello&command=a+b%26c&output=1&error=1",
			stderr: true, want: outcome{Out: "out of main: hello|a b&c", Err: "err"}},
		"with the pod's uid": {
			uri: "/exec/local/pod/uid-1/init?command=say&output=1", want: outcome{Out: "out of init: "}},
		"input goes there and its end too": {
			uri: "/exec/local/pod/main?command=cat&input=1&output=1", stdin: strings.Repeat("much ", 100_000),
			want: outcome{Out: strings.Repeat("much ", 100_000)}, skipped: "WebSocket v4"},
		"the exit code comes back": {
			uri: "/exec/local/pod/main?command=exit&output=1", want: outcome{Out: "bye", Code: 3}},
		"the terminal is resized": {
			uri:   "/exec/local/pod/main?command=sizes&output=1&input=1&tty=1",
			sizes: sizes{{Width: 80, Height: 24}, {Width: 132, Height: 50}}, want: outcome{Out: "80x24 132x50 "}},
		"a failure is told, bounded and without control characters": {
			uri: "/exec/local/pod/main?command=fail&output=1", want: outcome{Failure: "no such [31mfile!"}},
		"attach": {
			uri: "/attach/local/pod/main?input=1&output=1", stdin: "typed", want: outcome{Out: "typed"}, skipped: "WebSocket v4"},
		"attach with the pod's uid": {
			uri: "/attach/local/pod/uid-1/main?input=1&output=1", stdin: "typed", want: outcome{Out: "typed"}, skipped: "WebSocket v4"},
	} {
		for protocol, executor := range protocols {
			for upstream, noWebSocket := range map[string]bool{"WebSocket": false, "SPDY": true} {
				t.Run(name+", "+protocol+" to "+upstream, func(t *testing.T) {
					if c.skipped == protocol {
						t.Skip("this protocol cannot end stdin")
					}
					p := startProvider(t)
					p.noWebSocket = noWebSocket
					n := startNode(t, nodeOptions{remote: p.remote(t)})
					var out, stderr bytes.Buffer
					options := clientremote.StreamOptions{Stdout: &out}
					if c.stderr {
						options.Stderr = &stderr
					}
					if c.stdin != "" {
						options.Stdin = strings.NewReader(c.stdin)
					}
					if c.sizes != nil {
						queue := append(sizes(nil), c.sizes...)
						reader, writer := io.Pipe()
						defer func() { _ = writer.Close() }()
						options.Stdin, options.Tty, options.TerminalSizeQueue = reader, true, &queue
					}
					err := executor(t, n, c.uri).StreamWithContext(t.Context(), options)
					got := outcome{Out: out.String(), Err: stderr.String()}
					if exit := utilexec.ExitError(nil); errors.As(err, &exit) {
						got.Code = exit.ExitStatus()
					} else if err != nil {
						got.Failure = c.want.Failure
						if c.want.Failure == "" || !strings.Contains(err.Error(), c.want.Failure) || len(err.Error()) > 2*maxMessage {
							t.Errorf("got the error %v", err)
						}
					}
					equal(t, c.want, got)
				})
			}
		}
	}
}

func TestWhoLeavesEndsTheCallAtTheProvider(t *testing.T) {
	for protocol, executor := range protocols {
		t.Run(protocol, func(t *testing.T) {
			p := startProvider(t)
			n := startNode(t, nodeOptions{remote: p.remote(t)})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stdin, never := io.Pipe()
			defer func() { _ = never.Close() }()
			out, written := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- executor(t, n, "/exec/local/pod/main?command=hang&input=1&output=1").StreamWithContext(ctx,
					clientremote.StreamOptions{Stdin: stdin, Stdout: written})
			}()
			buffer := make([]byte, 7)
			if _, err := io.ReadFull(out, buffer); err != nil {
				t.Fatal(err)
			}
			equal(t, "hanging", string(buffer))
			cancel()
			equal(t, "lost stdin", within(t, p.hung, "the command to lose its stdin"))
			if err := within(t, ended, "the caller to end"); !errors.Is(err, context.Canceled) {
				t.Errorf("the caller ended with %v", err)
			}
		})
	}
}

func TestCommandsAreAskedForExactly(t *testing.T) {
	p := startProvider(t)
	p.noWebSocket = true
	n := startNode(t, nodeOptions{remote: p.remote(t)})
	err := protocols["SPDY"](t, n, "/exec/local/pod/main?command=say&command=x&output=1").StreamWithContext(t.Context(),
		clientremote.StreamOptions{Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	uri := "/api/v1/namespaces/twin/pods/pod-1/exec?command=say&command=x&container=main&stdout=true"
	equal(t, []string{"GET " + uri + " websocket", "POST " + uri + " SPDY/3.1"}, p.questions())
}

func TestAProviderThatSaysNoIsNotAskedTwice(t *testing.T) {
	p := startProvider(t)
	p.override = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"pod-1\" is forbidden","reason":"Forbidden","code":403}`)
	}
	n := startNode(t, nodeOptions{remote: p.remote(t)})
	err := protocols["WebSocket v5"](t, n, "/exec/local/pod/main?command=say&output=1").StreamWithContext(t.Context(),
		clientremote.StreamOptions{Stdout: io.Discard})
	if err == nil || !strings.Contains(err.Error(), `exec at the provider cluster: pods "pod-1" is forbidden`) {
		t.Errorf("got the error %v", err)
	}
	equal(t, 1, len(p.questions()))
}
