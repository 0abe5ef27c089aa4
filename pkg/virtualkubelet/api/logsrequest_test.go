package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// asking is the provider's remote whose logs have to be asked for.
func (p *provider) asking(t *testing.T, request func(context.Context) error) Remote {
	inner := p.remote(t).(remoteFunc)
	return remoteFunc(func(namespace, pod, uid string) (Target, error) {
		target, err := inner(namespace, pod, uid)
		target.RequestLogs = request
		return target, err
	})
}

func forbidden(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","message":"pods \"pod-1\" is forbidden","reason":"Forbidden","code":403}`)
}

// V14: the provider lets logs be read of the pods that were asked for, a moment after that.
func TestLogsAreAskedForOnce(t *testing.T) {
	p := startProvider(t)
	var asked, refused atomic.Int32
	p.logs = func(w http.ResponseWriter, _ *http.Request) {
		if asked.Load() == 0 || refused.Load() < 3 {
			refused.Add(1)
			forbidden(w)
			return
		}
		_, _ = io.WriteString(w, "line\n")
	}
	n := startNode(t, nodeOptions{remote: p.asking(t, func(context.Context) error { asked.Add(1); return nil })})
	for range 2 {
		code, body := n.get(t, "/containerLogs/local/pod/main?tailLines=5")
		equal(t, answer{200, "line\n"}, answer{code, body})
	}
	equal(t, int32(1), asked.Load())
	for _, question := range p.questions() {
		equal(t, "GET "+logPath+"?container=main&tailLines=5", question)
	}
}

func TestLogsThatAreNotPermitted(t *testing.T) {
	for name, c := range map[string]struct {
		request func(context.Context) error
		code    int
		body    string
	}{
		"the provider never does": {func(context.Context) error { return nil }, 403,
			"reading logs at the provider cluster: it did not permit reading the logs of this pod in time"},
		"asking fails": {func(context.Context) error { return errors.New("connection refused") }, 502,
			"reading logs at the provider cluster: asking for permission: connection refused"},
		"the pod is being removed": {func(context.Context) error { return fmt.Errorf("it is going: %w", ErrNotFound) }, 404, "it is going"},
		"there is nobody to ask":   {nil, 403, `pods "pod-1" is forbidden`},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t)
			p.logs = func(w http.ResponseWriter, _ *http.Request) { forbidden(w) }
			n := startNode(t, nodeOptions{remote: p.asking(t, c.request), limits: Limits{GrantTimeout: 100 * time.Millisecond}})
			code, body := n.get(t, "/containerLogs/local/pod/main")
			if code != c.code || !strings.Contains(body, c.body) {
				t.Errorf("got %d %q, want %d %q", code, body, c.code, c.body)
			}
		})
	}
}
