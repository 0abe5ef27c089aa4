package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	criremote "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// serveExec runs a command in the twin's container.
func (s *Server) serveExec(w http.ResponseWriter, r *http.Request) {
	command := r.URL.Query()["command"]
	if len(command) == 0 {
		http.Error(w, "exec needs a command", http.StatusBadRequest)
		return
	}
	s.serveCommand(w, r, "exec", func(container string, streams *criremote.Options) runtime.Object {
		return &corev1.PodExecOptions{Container: container, Command: command,
			Stdin: streams.Stdin, Stdout: streams.Stdout, Stderr: streams.Stderr, TTY: streams.TTY}
	})
}

// serveAttach attaches to the main process of the twin's container.
func (s *Server) serveAttach(w http.ResponseWriter, r *http.Request) {
	s.serveCommand(w, r, "attach", func(container string, streams *criremote.Options) runtime.Object {
		return &corev1.PodAttachOptions{Container: container,
			Stdin: streams.Stdin, Stdout: streams.Stdout, Stderr: streams.Stderr, TTY: streams.TTY}
	})
}

// serveCommand serves both: they differ in what is asked from the provider only.
func (s *Server) serveCommand(w http.ResponseWriter, r *http.Request, subresource string,
	ask func(container string, streams *criremote.Options) runtime.Object) {
	streams, err := streamOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	call := s.admit(w, r)
	if call == nil {
		return
	}
	defer call.end()
	w, r, cancel := upgrade(w, r)
	defer cancel()

	run := &command{server: s, target: call.target, subresource: subresource, options: ask(call.container, streams), streams: *streams}
	idle := s.options.Limits.IdleTimeout
	creation := s.options.Limits.DialTimeout
	switch {
	case wsstream.IsWebSocketRequestWithStreamCloseProtocol(r):
		serveChannels(w, r, run, idle)
	case subresource == "exec":
		criremote.ServeExec(w, r, run, "", "", "", nil, streams, idle, creation, criremote.SupportedStreamingProtocols)
	default:
		criremote.ServeAttach(w, r, run, "", "", "", streams, idle, creation, criremote.SupportedStreamingProtocols)
	}
}

// streamOptions reads which streams the caller wants from the query alone: a form in the body would be consumed.
func streamOptions(r *http.Request) (*criremote.Options, error) {
	return criremote.NewOptions(&http.Request{Method: http.MethodGet, URL: r.URL})
}

// command is one exec or attach at the provider. It serves both interfaces of the stream library.
type command struct {
	server      *Server
	target      Target
	subresource string
	options     runtime.Object
	streams     criremote.Options
}

var (
	_ criremote.Executor = (*command)(nil)
	_ criremote.Attacher = (*command)(nil)
)

// ExecInContainer runs the command; which one, and where, is known already.
func (c *command) ExecInContainer(ctx context.Context, _, _, _ string, _ []string, in io.Reader, out, stderr io.WriteCloser,
	tty bool, resize <-chan criremote.TerminalSize, _ time.Duration) error {
	return c.run(ctx, in, out, stderr, tty, resize)
}

// AttachContainer attaches; where is known already.
func (c *command) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, stderr io.WriteCloser,
	tty bool, resize <-chan criremote.TerminalSize) error {
	return c.run(ctx, in, out, stderr, tty, resize)
}

// run connects the caller's streams with the provider's and returns when the remote side is done, with a
// utilexec.ExitError when the process ended with a code.
func (c *command) run(ctx context.Context, in io.Reader, out, stderr io.WriteCloser, tty bool, resize <-chan criremote.TerminalSize) error {
	options := remotecommand.StreamOptions{Tty: tty}
	if c.streams.Stdin {
		options.Stdin = in
	}
	// Closed before the outcome is sent: the caller reads its streams to the end first.
	if c.streams.Stdout {
		options.Stdout = out
		defer func() { _ = out.Close() }()
	}
	if c.streams.Stderr {
		options.Stderr = stderr
		defer func() { _ = stderr.Close() }()
	}
	if tty && resize != nil {
		options.TerminalSizeQueue = &sizeQueue{ctx: ctx, sizes: resize}
	}
	executor, err := c.executor(ctx)
	if err == nil {
		err = executor.StreamWithContext(ctx, options)
	}
	if err != nil {
		return fromPeer(c.subresource, err)
	}
	return nil
}

// executor tries WebSocket first and SPDY when the provider does not speak it.
func (c *command) executor(ctx context.Context) (remotecommand.Executor, error) {
	address, err := podURL(c.target, c.subresource, c.options)
	if err != nil {
		return nil, err
	}
	webSocket, err := remotecommand.NewWebSocketExecutor(
		webSocketConfig(c.target.Config, c.server.newGuard(ctx, c.target.Config)), http.MethodGet, address.String())
	if err != nil {
		return nil, err
	}
	wrapped, upgrader, err := spdyTransport(c.target.Config, c.server.newGuard(ctx, c.target.Config))
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutorRejectRedirects(wrapped, upgrader, http.MethodPost, address)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(webSocket, spdy, fallsBack)
}

// podURL is the address of a subresource of the twin.
func podURL(target Target, subresource string, options runtime.Object) (*url.URL, error) {
	// The client builds the URL only; it never sends anything.
	client, err := corev1client.NewForConfigAndClient(rest.CopyConfig(target.Config), &http.Client{})
	if err != nil {
		return nil, err
	}
	request := client.RESTClient().Post().Resource("pods").Namespace(target.Namespace).Name(target.Pod).SubResource(subresource)
	if options != nil {
		request = request.VersionedParams(options, scheme.ParameterCodec)
	}
	return request.URL(), request.Error()
}

// sizeQueue feeds the caller's terminal sizes to the provider.
type sizeQueue struct {
	ctx   context.Context
	sizes <-chan criremote.TerminalSize
}

// Next waits for a change of size; nil ends the queue.
func (q *sizeQueue) Next() *remotecommand.TerminalSize {
	select {
	case size, ok := <-q.sizes:
		if !ok {
			return nil
		}
		return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
	case <-q.ctx.Done():
		return nil
	}
}
