package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// endless sends pieces until the reader leaves.
func endless(piece []byte, ended chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		for r.Context().Err() == nil {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}
}

// W8: a provider that serves logs without end, drips them, never answers or sends the caller elsewhere costs no more than the
// bounds; what is followed and used goes on.
func TestW8EndlessStreams(t *testing.T) {
	t.Run("a log without end is cut, and does not look complete", func(t *testing.T) {
		p := startProvider(t)
		ended := make(chan struct{}, 1)
		p.logs = endless(bytes.Repeat([]byte("x"), 4096), ended)
		n := startNode(t, nodeOptions{remote: p.remote(t), limits: Limits{LogBytes: 1 << 20}})
		read, err := n.log(t.Context(), t, "")
		if err == nil {
			t.Error("the log ended as if it were complete")
		}
		if most := 2 << 20; read > most {
			t.Errorf("%d bytes came through, most are to be %d", read, most)
		}
		within(t, ended, "the provider's handler")
	})
	t.Run("a caller that asks for some bytes gets no more, and a complete answer", func(t *testing.T) {
		p := startProvider(t)
		ended := make(chan struct{}, 1)
		p.logs = endless(bytes.Repeat([]byte("x"), 4096), ended)
		n := startNode(t, nodeOptions{remote: p.remote(t)})
		read, err := n.log(t.Context(), t, "?limitBytes=10000")
		if err != nil {
			t.Error(err)
		}
		equal(t, 10000, read)
		within(t, ended, "the provider's handler")
	})
	t.Run("a log that drips is cut", func(t *testing.T) {
		p := startProvider(t)
		more, ended := make(chan string), make(chan struct{}, 1)
		p.logs = speaking(more, ended)
		fake := clocktesting.NewFakeClock(time.Now())
		n := startNode(t, nodeOptions{remote: p.remote(t), clock: fake, limits: Limits{LogTimeout: time.Minute}})
		response := n.open(t.Context(), t, "")
		if _, err := io.ReadFull(response.Body, make([]byte, 6)); err != nil {
			t.Fatal(err)
		}
		// Only the time counts that the provider is waited for: a step during a write to the caller is none.
		stepping, stop := context.WithCancel(t.Context())
		stepped := make(chan struct{})
		go func() {
			defer close(stepped)
			wait.UntilWithContext(stepping, func(context.Context) { fake.Step(61 * time.Second) }, 10*time.Millisecond)
		}()
		within(t, ended, "the provider's handler")
		stop()
		<-stepped
		if _, err := io.ReadAll(response.Body); err == nil {
			t.Error("the log ended as if it were complete")
		}
	})
	t.Run("a followed log goes on beyond the bounds of one that is not", func(t *testing.T) {
		p := startProvider(t)
		more, ended := make(chan string), make(chan struct{}, 1)
		p.logs = speaking(more, ended)
		fake := clocktesting.NewFakeClock(time.Now())
		n := startNode(t, nodeOptions{remote: p.remote(t), clock: fake, limits: Limits{LogTimeout: time.Minute, LogBytes: 3}})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		response := n.follow(ctx, t)
		for range 20 {
			if _, err := io.ReadFull(response.Body, make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
			fake.Step(time.Hour)
			more <- "first\n"
		}
		cancel()
		within(t, ended, "the provider's handler")
	})
	t.Run("a redirect is not followed", func(t *testing.T) {
		p := startProvider(t)
		elsewhere := make(chan struct{}, 1)
		p.logs = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				elsewhere <- struct{}{}
				return
			}
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
		n := startNode(t, nodeOptions{remote: p.remote(t)})
		got := n.do(t, http.MethodGet, "/containerLogs/local/pod/main", tls.Certificate{}, "good")
		if got.code < 400 {
			t.Errorf("got %+v", got)
		}
		select {
		case <-elsewhere:
			t.Error("the redirect was followed")
		default:
		}
	})
}

// slowReader gives pieces, each after some time of a fake clock.
type slowReader struct {
	clock *clocktesting.FakeClock
	each  time.Duration
	left  int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	r.clock.Step(r.each)
	return copy(p, "0123456789"), nil
}

func TestLogBounds(t *testing.T) {
	for name, c := range map[string]struct {
		options corev1.PodLogOptions
		each    time.Duration
		// reading is how long the caller takes for each piece.
		reading time.Duration
		pieces  int
		want    int
		err     error
	}{
		"a log":                             {pieces: 3, want: 30},
		"a log that is too long":            {pieces: 30, want: 110, err: errLogTooLong},
		"a log that is too slow":            {pieces: 10, each: 25 * time.Second, want: 30, err: errLogTooSlow},
		"a caller that is slow":             {pieces: 5, reading: 50 * time.Second, want: 50},
		"fewer bytes than there are":        {pieces: 30, options: corev1.PodLogOptions{LimitBytes: ptr.To[int64](25)}, want: 25},
		"more bytes than there are":         {pieces: 2, options: corev1.PodLogOptions{LimitBytes: ptr.To[int64](25)}, want: 20},
		"a followed log":                    {pieces: 30, each: 50 * time.Second, options: corev1.PodLogOptions{Follow: true}, want: 300},
		"a followed log, some bytes of it":  {pieces: 30, options: corev1.PodLogOptions{Follow: true, LimitBytes: ptr.To[int64](25)}, want: 25},
		"a log of the caller's bytes, long": {pieces: 30, options: corev1.PodLogOptions{LimitBytes: ptr.To[int64](250)}, want: 110, err: errLogTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			fake := clocktesting.NewFakeClock(time.Now())
			server := &Server{options: Options{Clock: fake, Limits: Limits{IdleTimeout: time.Hour, LogTimeout: time.Minute, LogBytes: 100}}}
			ctx, cancel := context.WithCancelCause(t.Context())
			bounds := server.boundLogs(cancel, &slowReader{fake, c.each, c.pieces}, &c.options)
			defer bounds.stop()
			got, buffer := 0, make([]byte, 1000)
			var err error
			for err == nil {
				var n int
				n, err = bounds.Read(buffer)
				got += n
				fake.Step(c.reading)
			}
			if errors.Is(err, io.EOF) {
				err = context.Cause(ctx)
			}
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %d bytes and error %v, want %d and %v", got, err, c.want, c.err)
			}
		})
	}
}

// log reads a log to its end.
func (n *node) log(ctx context.Context, t *testing.T, query string) (int, error) {
	t.Helper()
	response := n.open(ctx, t, query)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", response.StatusCode, readAll(t, response.Body))
	}
	read, err := io.Copy(io.Discard, response.Body)
	return int(read), err
}
