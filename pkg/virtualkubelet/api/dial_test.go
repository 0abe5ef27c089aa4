package api

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	clientremote "k8s.io/client-go/tools/remotecommand"
)

// Streams are dialed as everything else to the provider is, so that what is refused there is refused for them, too: also where the
// name of the provider's API server leads elsewhere in between.
func TestStreamsGoNowhereElse(t *testing.T) {
	for call, run := range map[string]func(*testing.T, *node) string{
		"exec":         func(t *testing.T, n *node) string { return whyNot(t, n, "/exec/local/pod/main?command=say&output=1") },
		"attach":       func(t *testing.T, n *node) string { return whyNot(t, n, "/attach/local/pod/main?output=1") },
		"port-forward": func(t *testing.T, n *node) string { return n.upgrading(t, "/portForward/local/pod").body },
	} {
		// An API server that does not speak WebSocket is dialed twice, with another dialer.
		for upstream, allowed := range map[string]int64{"WebSocket": 0, "SPDY": 1} {
			t.Run(call+" by "+upstream, func(t *testing.T) {
				p := startProvider(t)
				p.noWebSocket = true
				config := p.config(t)
				var dialed atomic.Int64
				config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					if dialed.Add(1) > allowed {
						return nil, errors.New("it leads into this cluster")
					}
					return (&net.Dialer{}).DialContext(ctx, network, address)
				}
				n := startNode(t, nodeOptions{remote: remoteFunc(func(_, _, _ string) (Target, error) {
					return Target{Config: config, Namespace: "twin", Pod: "pod-1", Containers: []string{"main"}}, nil
				})})
				if got := run(t, n); !strings.Contains(got, "it leads into this cluster") {
					t.Errorf("answered %q", got)
				}
				equal(t, allowed+1, dialed.Load())
				p.mu.Lock()
				defer p.mu.Unlock()
				equal(t, int(allowed), len(p.conns))
			})
		}
	}
}

// whyNot runs a command, and returns why it failed.
func whyNot(t *testing.T, n *node, uri string) string {
	t.Helper()
	err := protocols["WebSocket v5"](t, n, uri).StreamWithContext(t.Context(), clientremote.StreamOptions{Stdout: io.Discard})
	if err == nil {
		t.Fatal("it was answered")
	}
	return err.Error()
}
