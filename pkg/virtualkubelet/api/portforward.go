package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	clientspdy "k8s.io/client-go/transport/spdy"
	criforward "k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	"k8s.io/utils/clock"
)

// servePortForward forwards connections to ports of the twin. All connections of one caller share one connection to
// the provider, which is made first, so that a refusal is an HTTP answer and not a broken stream.
func (s *Server) servePortForward(w http.ResponseWriter, r *http.Request) {
	tunnelled := wsstream.IsWebSocketRequestWithTunnelingProtocol(r)
	options := &criforward.V4Options{}
	if !tunnelled {
		var err error
		if options, err = criforward.NewV4Options(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	if !httpstream.IsUpgradeRequest(r) {
		http.Error(w, "port-forward needs an upgrade to SPDY or WebSocket", http.StatusBadRequest)
		return
	}
	call := s.admit(w, r)
	if call == nil {
		return
	}
	defer call.end()
	w, r, cancel := upgrade(w, r)
	defer cancel()

	ctx := r.Context()
	upstream, err := s.dialPortForward(ctx, call.target)
	if err != nil {
		refuse(w, fromPeer("port-forward", err))
		return
	}
	defer func() { _ = upstream.Close() }()
	go func() {
		// Neither side stays when the other is gone.
		select {
		case <-upstream.CloseChan():
			cancel()
		case <-ctx.Done():
		}
	}()

	limits := s.options.Limits
	forward := &forwarder{ctx: ctx, upstream: upstream, slots: s.slots, clock: s.options.Clock}
	if tunnelled {
		inner, request, err := tunnel(w, r)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Upgrading to WebSocket failed", "reason", err.Error())
			return
		}
		w, r = inner, request
	}
	criforward.ServePortForward(w, r, forward, "", "", options, limits.IdleTimeout, limits.DialTimeout, criforward.SupportedProtocols)
}

// dialPortForward tries SPDY inside WebSocket first and plain SPDY when the provider does not know it.
func (s *Server) dialPortForward(ctx context.Context, target Target) (httpstream.Connection, error) {
	address, err := podURL(target, "portforward", nil)
	if err != nil {
		return nil, err
	}
	inside, err := portforward.NewSPDYOverWebsocketDialerForStreamingWithLogger(
		klog.FromContext(ctx), address, webSocketConfig(target.Config, s.newGuard(ctx, target.Config)))
	if err != nil {
		return nil, err
	}
	wrapped, upgrader, err := spdyTransport(target.Config, s.newGuard(ctx, target.Config))
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: wrapped, CheckRedirect: refuseRedirect}
	plain := clientspdy.NewDialerForStreaming(upgrader, client, http.MethodPost, address)
	conn, protocol, err := portforward.NewFallbackDialerForStreaming(inside, plain, fallsBack).Dial(criforward.ProtocolV1Name)
	if err != nil {
		return nil, err
	}
	if protocol != criforward.ProtocolV1Name {
		return nil, errors.Join(fmt.Errorf("unknown stream protocol %q", bounded(protocol)), conn.Close())
	}
	return conn, nil
}

// forwarder forwards the connections of one caller.
type forwarder struct {
	ctx      context.Context // ends when either side is gone
	upstream httpstream.Connection
	slots    slots
	clock    clock.WithDelayedExecution
	requests atomic.Int64
}

var _ criforward.PortForwarder = (*forwarder)(nil)

const (
	// maxForwardError bounds in bytes what the provider may say about a failed connection.
	maxForwardError = 4 << 10
	// reasonTimeout bounds the wait for it.
	reasonTimeout = time.Second
)

// PortForward carries one connection until the remote side ends it. The library's context is no use: it never ends.
func (f *forwarder) PortForward(_ context.Context, _, _ string, port int32, local io.ReadWriteCloser) error {
	release, ok := f.slots.take()
	if !ok {
		return errors.New(f.slots.tooMany())
	}
	defer release()
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.FormatInt(f.requests.Add(1), 10))
	problems, err := f.stream(headers, corev1.StreamTypeError)
	if err != nil {
		return fromPeer("port-forward", err)
	}
	defer f.drop(problems)
	// It is only read from.
	_ = problems.Close()
	failed := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(problems, maxForwardError))
		failed <- strings.TrimSpace(string(text))
	}()
	data, err := f.stream(headers, corev1.StreamTypeData)
	if err != nil {
		return f.whyRefused(err, failed)
	}
	defer f.drop(data)

	go func() {
		_, _ = io.Copy(data, local)
		// The local side has nothing more to say but may still listen.
		_ = data.Close()
	}()
	received := make(chan struct{})
	go func() {
		defer close(received)
		_, _ = io.Copy(local, data)
	}()
	return f.outcome(received, failed)
}

// stream creates one of the two streams of a connection.
func (f *forwarder) stream(headers http.Header, kind string) (httpstream.Stream, error) {
	headers.Set(corev1.StreamType, kind)
	stream, err := f.upstream.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("creating the %s stream: %w", kind, err)
	}
	return stream, nil
}

// drop ends a stream in both directions.
func (f *forwarder) drop(stream httpstream.Stream) {
	_ = stream.Reset()
	f.upstream.RemoveStreams(stream)
}

// whyRefused prefers what the provider says over that it did not take the data stream: a port that refuses at once
// takes the streams down while they are being created.
func (f *forwarder) whyRefused(err error, failed <-chan string) error {
	late := make(chan struct{})
	timer := f.clock.AfterFunc(reasonTimeout, func() { close(late) })
	defer timer.Stop()
	select {
	case text := <-failed:
		if text != "" {
			err = errors.New(text)
		}
	case <-late:
	case <-f.ctx.Done():
	}
	return fromPeer("port-forward", err)
}

// outcome waits for the end of the data and for what the provider says about it.
func (f *forwarder) outcome(received <-chan struct{}, failed <-chan string) error {
	ended := false
	for {
		select {
		case <-received:
			received, ended = nil, true
			if failed == nil {
				return nil
			}
		case text := <-failed:
			if text != "" {
				return fromPeer("port-forward", errors.New(text))
			}
			if failed = nil; ended {
				return nil
			}
		case <-f.ctx.Done():
			return nil
		}
	}
}
