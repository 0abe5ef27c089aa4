package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/kube/signal"
)

const (
	// patience is how long the one who asks, and the one who answers, wait.
	patience = 10 * time.Second
	// maxAnswer is how long an answer may be, in bytes: that of a cluster with thousands of nodes is long.
	maxAnswer = 64 << 20
)

// Paths at which an agent answers.
const (
	healthPath = "/healthz"
	statePath  = "/state"
	diffPath   = "/diff"
	repairPath = "/repair"
)

// Reader reads what of ours is in the kernel.
type Reader interface {
	Read(wanted dataplane.State) (dataplane.State, error)
}

// Health is how an agent is, and what it wants. The zero value is that of one that begins.
type Health struct {
	// Repair is raised when somebody asks the agent to compare the kernel with what it wants, and to put right what differs; nil if nobody can.
	Repair signal.Signal

	mu     sync.Mutex
	said   bool
	why    error
	wanted dataplane.State
}

// Set says how the agent is: nil if it does what it can.
func (h *Health) Set(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said, h.why = true, why
}

// Want says what the agent wants to have in the kernel.
func (h *Health) Want(state dataplane.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted = state
}

func (h *Health) get() (dataplane.State, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.said {
		return h.wanted, errors.New("the agent has not read all that it needs yet")
	}
	return h.wanted, h.why
}

// Serve answers on the loopback address until the context ends.
func (h *Health) Serve(ctx context.Context, port int, kernel Reader) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address(port))
	if err != nil {
		return fmt.Errorf("listening for probes: %w", err)
	}
	mux := http.NewServeMux()
	for path, answer := range map[string]func(dataplane.State, error) (string, error){
		healthPath: func(_ dataplane.State, why error) (string, error) { return "", why },
		statePath:  func(wanted dataplane.State, _ error) (string, error) { return wanted.String(), nil },
		diffPath: func(wanted dataplane.State, _ error) (string, error) {
			there, err := kernel.Read(wanted)
			return Differences(wanted, there), err
		},
		repairPath: func(dataplane.State, error) (string, error) { h.Repair.Raise(); return "", nil },
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			text, err := answer(h.get())
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			_, _ = io.WriteString(w, text)
		})
	}
	server := &http.Server{ReadHeaderTimeout: patience, Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering probes: %w", err)
	}
	return nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// ask asks the agent that runs in the same pod.
func ask(ctx context.Context, port int, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address(port)+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("the agent does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return string(text), err
}
