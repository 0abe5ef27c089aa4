package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// maxSaid bounds what is told of what a command said before it failed.
const maxSaid = 500

// Exec runs a command in a pod's only container, through the API server, and for pods on virtual nodes on through the provider's. A command
// that fails is an error with what it said; its exit code is that of an exec.CodeExitError in it.
func (c *Cluster) Exec(ctx context.Context, namespace, pod string, command []string, in io.Reader, out io.Writer) error {
	request := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdin: in != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	sockets, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", request.URL().String())
	if err != nil {
		return fmt.Errorf("preparing a stream into pod %s: %w", pod, err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.Config, "POST", request.URL())
	if err != nil {
		return fmt.Errorf("preparing a stream into pod %s: %w", pod, err)
	}
	executor, err := remotecommand.NewFallbackExecutor(sockets, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return fmt.Errorf("preparing a stream into pod %s: %w", pod, err)
	}
	said := &kept{most: maxSaid}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: said})
	if err != nil {
		return fmt.Errorf("running %s in pod %s: %w %s", command[0], pod, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// Streams run commands in pods.
type Streams interface {
	// Exec runs a command in a pod's only container. A command that fails is an error with what it said.
	Exec(ctx context.Context, namespace, pod string, command []string, in io.Reader, out io.Writer) error
}

// Answer is what a command prints in a pod. The pod, or the API server between, may be a peer's, which says whatever it likes: of more than most bytes
// nothing is kept, and the command is not heard any further.
func Answer(ctx context.Context, streams Streams, namespace, pod string, command []string, most int) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := &kept{most: most, full: cancel}
	err := streams.Exec(ctx, namespace, pod, command, nil, said)
	if said.isOver() {
		return "", fmt.Errorf("pod %s/%s says more than %d bytes", namespace, pod, most)
	}
	return said.String(), err
}

// errTooMuch ends a stream into a kept that is full.
var errTooMuch = errors.New("more is said than was asked for")

// kept is the beginning of what a stream says. Streams may write still when they were given up.
type kept struct {
	// most is how many bytes are kept; full, unless it is nil, is called when there are more, which is an error then.
	most int
	full func()

	mu   sync.Mutex
	text bytes.Buffer
	over bool
}

// Write implements io.Writer.
func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := min(k.most-k.text.Len(), len(p))
	k.text.Write(p[:room])
	if room == len(p) {
		return room, nil
	}
	k.over = true
	if k.full == nil {
		return len(p), nil
	}
	k.full()
	return room, errTooMuch
}

// String is what is kept.
func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

func (k *kept) isOver() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}
