package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

const (
	readHeaderTimeout = 30 * time.Second
	keepAliveTimeout  = 90 * time.Second
	maxHeaderBytes    = 256 << 10
	// When the server stops, requests and streams have a time each: however long the requests take, a stream may say goodbye.
	requestsTimeout = 10 * time.Second
	streamsTimeout  = 10 * time.Second
	// Connections wait so long for the client CA to be read before the first one is accepted. An API server waits 10 s for its TLS handshake.
	clientCAPatience = 5 * time.Second
	clientCAPoll     = 10 * time.Millisecond
)

// Server is the kubelet endpoint of one virtual node.
type Server struct {
	options Options
	auth    *guardian
	metrics *metrics
	slots   slots
	handler http.Handler

	// streams counts handlers whose connection was hijacked, which http.Server.Shutdown does not wait for.
	streams sync.WaitGroup
}

// New returns a Server that is ready to Run. It fails when an option is missing or its metrics are registered already.
func New(options Options) (*Server, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	s := &Server{options: options, auth: newGuardian(&options), slots: make(slots, options.Limits.Streams)}
	var err error
	if s.metrics, err = newMetrics(options.Registerer, s.slots); err != nil {
		return nil, err
	}
	s.handler = s.auth.authenticated(s.routes())
	return s, nil
}

// Handler returns the whole endpoint, authentication included. Client certificates are taken from the request's TLS
// state, so the server around it must ask for them.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern, route string, needs access, handler http.HandlerFunc) {
		mux.Handle(pattern, s.metrics.counted(route, s.auth.authorized(needs, handler)))
	}
	handle("GET /healthz", "healthz", access{subresources: []string{"healthz", "proxy"}}, serveHealthz)
	handle("GET /metrics", "metrics", access{subresources: []string{"metrics"}},
		promhttp.HandlerFor(s.options.Gatherer, promhttp.HandlerOpts{}).ServeHTTP)
	aboutPods := func(pattern, route string, needs access, handler http.HandlerFunc) {
		handle(pattern, route, needs, s.working(handler))
	}
	aboutPods("GET /pods", "pods", access{subresources: []string{"pods", "proxy"}}, s.servePods)
	aboutPods("GET /runningpods", "runningpods", access{subresources: []string{"pods", "proxy"}}, s.serveRunningPods)
	aboutPods("GET /runningpods/{$}", "runningpods", access{subresources: []string{"pods", "proxy"}}, s.serveRunningPods)
	aboutPods("GET /containerLogs/{namespace}/{pod}/{container}", "containerLogs", access{subresources: []string{"proxy"}}, s.serveLogs)

	runs := access{verb: "create", subresources: []string{"proxy"}}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		for _, path := range []string{"/{namespace}/{pod}/{container}", "/{namespace}/{pod}/{uid}/{container}"} {
			aboutPods(method+" /exec"+path, "exec", runs, s.serveExec)
			aboutPods(method+" /attach"+path, "attach", runs, s.serveAttach)
		}
		for _, path := range []string{"/{namespace}/{pod}", "/{namespace}/{pod}/{uid}"} {
			aboutPods(method+" /portForward"+path, "portForward", runs, s.servePortForward)
		}
	}
	usage := s.options.Usage.ServeHTTP
	for _, path := range []string{"resource", "cadvisor", "probes"} {
		aboutPods("GET /metrics/"+path, "usage", access{subresources: []string{"metrics"}}, usage)
	}
	aboutPods("GET /stats/summary", "usage", access{subresources: []string{"stats"}}, usage)
	// The subtrees of a kubelet that are not offered here keep a kubelet's permission, so that 403 comes before 404.
	handle("/run/", "other", runs, http.NotFound)
	handle("/stats/", "other", access{subresources: []string{"stats"}}, http.NotFound)
	handle("/metrics/", "other", access{subresources: []string{"metrics"}}, http.NotFound)
	handle("/logs/", "other", access{subresources: []string{"log"}}, http.NotFound)
	handle("/", "other", access{subresources: []string{"proxy"}}, http.NotFound)
	return mux
}

// working answers whoever asks about pods of which nothing is known.
func (s *Server) working(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.options.Working() {
			refuse(w, fmt.Errorf("node %s: %w", s.options.NodeName, ErrStandsBy))
			return
		}
		next(w, r)
	}
}

// Run serves until the context ends, then ends all streams and returns once they are gone, or after 10 s each for requests and
// streams. The error is nil after a regular stop.
func (s *Server) Run(ctx context.Context) error {
	listener := s.options.Listener
	if listener == nil {
		var err error
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address); err != nil {
			return fmt.Errorf("listening for the kubelet API: %w", err)
		}
	}
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if runner, ok := s.options.ClientCA.(dynamiccertificates.ControllerRunner); ok {
		background.Go(func() { runner.Run(ctx, 1) })
		s.awaitClientCA(ctx)
	}

	server := &http.Server{
		Handler:           s.handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       keepAliveTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logr.ToSlogHandler(klog.FromContext(ctx).V(2)), slog.LevelInfo),
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: s.options.GetCertificate,
			// Asked for, not required: whoever comes with a token is as welcome; the guardian verifies both.
			ClientAuth: tls.RequestClientCert,
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	klog.FromContext(ctx).Info("Serving the kubelet API", "address", listener.Addr().String())
	s.options.Serving()

	select {
	case err := <-served:
		return fmt.Errorf("serving the kubelet API: %w", err)
	case <-ctx.Done():
	}
	return s.shutdown(context.WithoutCancel(ctx), server, served)
}

// awaitClientCA returns when client certificates can be verified: whoever comes earlier would be told that nobody knows him. It does not wait
// for ever, because tokens need no CA.
func (s *Server) awaitClientCA(ctx context.Context) {
	err := wait.PollUntilContextTimeout(ctx, clientCAPoll, clientCAPatience, true, func(context.Context) (bool, error) {
		_, known := s.options.ClientCA.VerifyOptions()
		return known, nil
	})
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Info("The CA of the cluster's clients is not known yet; only tokens are accepted until it is")
	}
}

func (s *Server) shutdown(ctx context.Context, server *http.Server, served <-chan error) error {
	return errors.Join(stop(ctx, server, served), s.drain(ctx))
}

// stop ends the listener and waits for the requests that are under way.
func stop(ctx context.Context, server *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, requestsTimeout)
	defer cancel()
	err := server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("stopping the kubelet API: %w", err), server.Close())
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serving the kubelet API: %w", ended))
	}
	return err
}

// drain waits for the streams.
func (s *Server) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, streamsTimeout)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		s.streams.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return errors.New("stopping the kubelet API: some streams did not end in time")
	}
}
