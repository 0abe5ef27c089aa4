package peer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"liqo.io/liqo/pkg/kube/reconcile"
)

const (
	dialTimeout = 10 * time.Second
	// maxResponse bounds the body of an ordinary answer, in bytes. Lists are paged, with smaller pages if the objects are large.
	maxResponse = 64 << 20
)

// boundedTransport gives ordinary requests a deadline and their answers a bound, and refuses redirects.
type boundedTransport struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if isStream(request) {
		response, err := t.next.RoundTrip(request)
		return refuseRedirect(response, err)
	}
	ctx, cancel := context.WithTimeout(request.Context(), t.timeout)
	response, err := refuseRedirect(t.next.RoundTrip(request.WithContext(ctx)))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &boundedBody{body: response.Body, left: maxResponse, cancel: cancel}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *boundedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func refuseRedirect(response *http.Response, err error) (*http.Response, error) {
	if err != nil || response.StatusCode < 300 || response.StatusCode >= 400 || response.StatusCode == http.StatusNotModified {
		return response, err
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("the peer answered with a redirect (%d), which is not followed", response.StatusCode)
}

// isStream tells whether a request lives as long as its caller wants: watches, followed logs, and upgraded connections.
func isStream(request *http.Request) bool {
	if request.Header.Get("Upgrade") != "" {
		return true
	}
	query := request.URL.Query()
	if on(query.Get("watch")) || on(query.Get("follow")) {
		return true
	}
	for _, suffix := range []string{"/log", "/exec", "/attach", "/portforward"} {
		if strings.HasSuffix(request.URL.Path, suffix) {
			return true
		}
	}
	return false
}

func on(value string) bool { return value == "true" || value == "1" }

// boundedBody ends the request's deadline with the body, and the body at its bound.
type boundedBody struct {
	body   io.ReadCloser
	left   int64
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: the peer's is larger than %d bytes", reconcile.ErrOversized, maxResponse)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	defer b.cancel()
	return b.body.Close()
}
