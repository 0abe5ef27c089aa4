package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	gwebsocket "github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/clock"
)

const (
	// maxHandshake is how many bytes the provider may send before it accepts a stream: TLS, headers, an error text.
	maxHandshake = 1 << 20
	// frameBuffer holds one WebSocket message of client-go's size and its channel number.
	frameBuffer = 33 << 10
	pingPeriod  = 5 * time.Second
)

var errTalkative = errors.New("it sent too much before it accepted the stream")

// guard bounds in time and bytes how the provider accepts one stream. Once open, the connection is as any other.
type guard struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	clock   clock.WithDelayedExecution
	timeout time.Duration
	// connect is how other connections to the provider are made, with what they refuse.
	connect func(ctx context.Context, network, address string) (net.Conn, error)

	conn atomic.Pointer[guardedConn]
}

func (s *Server) newGuard(ctx context.Context, config *rest.Config) *guard {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &guard{ctx: ctx, cancel: cancel, clock: s.options.Clock, timeout: s.options.Limits.DialTimeout, connect: config.Dial}
	if g.connect == nil {
		g.connect = (&net.Dialer{}).DialContext
	}
	return g
}

// dial connects; the given context is ignored because some of client-go's dialers come without one.
func (g *guard) dial(_ context.Context, network, address string) (net.Conn, error) {
	timer := g.clock.AfterFunc(g.timeout, func() { g.cancel(errNoAnswer) })
	conn, err := g.connect(g.ctx, network, address)
	if err != nil {
		timer.Stop()
		return nil, g.explain(err)
	}
	guarded := &guardedConn{Conn: conn, guard: g}
	guarded.left.Store(maxHandshake)
	guarded.release = context.AfterFunc(g.ctx, func() { _ = conn.Close() })
	guarded.timer = timer
	g.conn.Store(guarded)
	return guarded, nil
}

// open lifts the bounds: the provider has accepted the stream.
func (g *guard) open() {
	if conn := g.conn.Load(); conn != nil {
		conn.timer.Stop()
		conn.release()
		conn.opened.Store(true)
	}
}

// explain prefers the reason for which we gave up over what the broken connection says.
func (g *guard) explain(err error) error {
	if cause := context.Cause(g.ctx); errors.Is(cause, errNoAnswer) || errors.Is(cause, errTalkative) {
		return cause
	}
	return err
}

type guardedConn struct {
	net.Conn
	guard   *guard
	timer   clock.Timer
	release func() bool
	opened  atomic.Bool
	left    atomic.Int64
}

// Read counts what comes before the stream is open.
func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.opened.Load() {
		return n, err
	}
	if c.left.Add(-int64(n)) < 0 {
		c.guard.cancel(errTalkative)
		return 0, errTalkative
	}
	if err != nil {
		return n, c.guard.explain(err)
	}
	return n, nil
}

// Close closes the connection.
func (c *guardedConn) Close() error {
	c.timer.Stop()
	c.release()
	return c.Conn.Close()
}

// webSocketConfig returns a copy of the config whose WebSocket upgrades are dialed through the guard.
func webSocketConfig(config *rest.Config, g *guard) *rest.Config {
	config = rest.CopyConfig(config)
	// First in the chain is innermost: credentials are added around it.
	config.WrapTransport = transport.Wrappers(func(inner http.RoundTripper) http.RoundTripper {
		if upgrader, ok := inner.(*websocket.RoundTripper); ok {
			return &webSocketUpgrade{RoundTripper: upgrader, guard: g}
		}
		return inner
	}, config.WrapTransport)
	return config
}

// webSocketUpgrade replaces the dialing of client-go's round tripper, which has neither deadline nor bounds.
type webSocketUpgrade struct {
	*websocket.RoundTripper
	guard *guard
}

// RoundTrip upgrades a request to a WebSocket connection. A refusal by the provider is an UpgradeFailureError.
func (u *webSocketUpgrade) RoundTrip(r *http.Request) (*http.Response, error) {
	protocols := r.Header[wsstream.WebSocketProtocolHeader]
	header := r.Header.Clone()
	delete(header, wsstream.WebSocketProtocolHeader)
	dialer := gwebsocket.Dialer{
		NetDialContext: u.guard.dial, Proxy: u.Proxier, TLSClientConfig: u.TLSConfig, Subprotocols: protocols,
		ReadBufferSize: frameBuffer, WriteBufferSize: frameBuffer,
	}
	address := *r.URL
	address.Scheme = strings.Replace(address.Scheme, "http", "ws", 1)
	conn, response, err := dialer.DialContext(r.Context(), address.String(), header)
	if errors.Is(err, gwebsocket.ErrBadHandshake) {
		return nil, &httpstream.UpgradeFailureError{Cause: refusal(response)}
	}
	if err != nil {
		return nil, u.guard.explain(err)
	}
	u.guard.open()
	u.Conn = conn
	return response, nil
}

// refusal reads why the provider did not upgrade, as a status where it sent one.
func refusal(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxHandshake))
	if err != nil {
		return fmt.Errorf("unable to upgrade connection: %s", response.Status)
	}
	status := metav1.Status{}
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && int(status.Code) == response.StatusCode {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("unable to upgrade connection: %s: %s", response.Status, body)
}

// fallsBack says whether SPDY is worth a try after WebSocket failed: not when the provider said no to the call itself.
func fallsBack(err error) bool {
	if status := peerStatus(err); status != nil {
		switch status.Code {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests:
			return false
		}
	}
	return httpstream.IsUpgradeFailure(err)
}

// spdyTransport returns a round tripper and upgrader for SPDY that dial through the guard. Proxies are not supported:
// every API server that can be reached through one speaks WebSocket.
func spdyTransport(config *rest.Config, g *guard) (http.RoundTripper, clientspdy.Upgrader, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, err
	}
	if tlsConfig == nil {
		// Without any configuration the library would not verify the server.
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	upgrader, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{
		UpgradeTransport: &http.Transport{DialContext: g.dial, TLSClientConfig: tlsConfig},
		PingPeriod:       pingPeriod,
	})
	if err != nil {
		return nil, nil, err
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, upgrader)
	if err != nil {
		return nil, nil, err
	}
	return wrapped, clientspdy.NewUpgraderForStreaming(&openingUpgrader{UpgradeRoundTripper: upgrader, guard: g}), nil
}

// openingUpgrader opens the guard once the provider has upgraded.
type openingUpgrader struct {
	httpstream.UpgradeRoundTripper
	guard *guard
}

// NewConnection makes a stream connection of the response to an upgrade request.
func (u *openingUpgrader) NewConnection(response *http.Response) (httpstream.Connection, error) {
	conn, err := u.UpgradeRoundTripper.NewConnection(response)
	if err != nil {
		return nil, u.guard.explain(err)
	}
	u.guard.open()
	return conn, nil
}

// refuseRedirect is for http.Client.CheckRedirect: a peer must not send us, and our credentials, elsewhere.
func refuseRedirect(to *http.Request, _ []*http.Request) error {
	return fmt.Errorf("it redirects to %s, which is not followed", (&url.URL{Scheme: to.URL.Scheme, Host: to.URL.Host}).String())
}
