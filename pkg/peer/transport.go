package peer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const dialTimeout = 10 * time.Second

// boundedTransport gives ordinary requests a deadline, refuses redirects, and has all that is decoded pass the intake.
type boundedTransport struct {
	next    http.RoundTripper
	timeout time.Duration
	intake  *intake
}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if isStream(request) {
		response, err := refuseRedirect(t.next.RoundTrip(request))
		if err != nil || isRaw(request, response) {
			return response, err
		}
		return t.taken(request.Context(), response, true)
	}
	ctx, cancel := context.WithTimeout(request.Context(), t.timeout)
	response, err := refuseRedirect(t.next.RoundTrip(request.WithContext(ctx)))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &closing{ReadCloser: response.Body, cancel: cancel}
	return t.taken(ctx, response, false)
}

func (t *boundedTransport) taken(ctx context.Context, response *http.Response, watch bool) (*http.Response, error) {
	if err := t.intake.take(ctx, response, watch); err != nil {
		return nil, err
	}
	return response, nil
}

// isRaw tells whether an answer is passed on byte by byte to somebody who asked for it: logs and upgraded connections. A refusal of
// these is not.
func isRaw(request *http.Request, response *http.Response) bool {
	return response.StatusCode == http.StatusSwitchingProtocols || response.StatusCode == http.StatusOK && !on(request.URL.Query().Get("watch"))
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

// closing ends a request's deadline with its body.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (c *closing) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}
