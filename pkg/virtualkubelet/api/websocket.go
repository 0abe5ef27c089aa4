package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	gwebsocket "github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/tools/portforward"
	criremote "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
	utilexec "k8s.io/utils/exec"
)

// serveChannels serves a command over the WebSocket protocol v5.channel.k8s.io, which the library for container
// runtimes does not know: it is v4 with a signal that closes one channel, such as stdin.
func serveChannels(w http.ResponseWriter, r *http.Request, run *command, idle time.Duration) {
	channels := []wsstream.ChannelType{
		remotecommand.StreamStdIn:  ifWanted(run.streams.Stdin, wsstream.ReadChannel),
		remotecommand.StreamStdOut: ifWanted(run.streams.Stdout, wsstream.WriteChannel),
		remotecommand.StreamStdErr: ifWanted(run.streams.Stderr, wsstream.WriteChannel),
		remotecommand.StreamErr:    wsstream.WriteChannel,
		remotecommand.StreamResize: wsstream.ReadChannel,
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		remotecommand.StreamProtocolV5Name: {Binary: true, Channels: channels},
	})
	conn.SetIdleTimeout(idle)
	_, streams, err := conn.Open(w, r)
	if err != nil {
		klog.FromContext(r.Context()).V(2).Info("Upgrading to WebSocket failed", "reason", err.Error())
		return
	}
	defer func() { _ = conn.Close() }()

	var sizes chan criremote.TerminalSize
	if run.streams.TTY {
		sizes = make(chan criremote.TerminalSize)
		go readSizes(r.Context().Done(), streams[remotecommand.StreamResize], sizes)
	}
	err = run.run(r.Context(), streams[remotecommand.StreamStdIn], streams[remotecommand.StreamStdOut],
		streams[remotecommand.StreamStdErr], run.streams.TTY, sizes)
	outcome, err := json.Marshal(statusOfCommand(err))
	if err == nil {
		_, err = streams[remotecommand.StreamErr].Write(outcome)
	}
	if err != nil {
		klog.FromContext(r.Context()).V(2).Info("The caller went away before the outcome", "reason", err.Error())
	}
}

func ifWanted(wanted bool, channel wsstream.ChannelType) wsstream.ChannelType {
	if wanted {
		return channel
	}
	return wsstream.IgnoreChannel
}

func readSizes(done <-chan struct{}, source io.Reader, sizes chan<- criremote.TerminalSize) {
	defer close(sizes)
	decoder := json.NewDecoder(source)
	for {
		size := criremote.TerminalSize{}
		if decoder.Decode(&size) != nil {
			return
		}
		select {
		case sizes <- size:
		case <-done:
			return
		}
	}
}

// statusOfCommand is how the end of a command is told to the caller since v4; kubectl exits with the code in it.
func statusOfCommand(err error) *metav1.Status {
	if err == nil {
		return &metav1.Status{Status: metav1.StatusSuccess}
	}
	if exit := utilexec.ExitError(nil); errors.As(err, &exit) && exit.Exited() {
		return &metav1.Status{
			Status:  metav1.StatusFailure,
			Reason:  remotecommand.NonZeroExitCodeReason,
			Message: fmt.Sprintf("command terminated with non-zero exit code: %v", exit),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
				Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(exit.ExitStatus()),
			}}},
		}
	}
	return &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
		Code: int32(statusOf(err)), Message: err.Error(),
	}
}

// tunnel accepts SPDY inside WebSocket, as kubectl port-forward sends it, and returns the request and the writer with
// which the SPDY server then works as if they had come without the WebSocket around.
func tunnel(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, error) {
	upgrader := gwebsocket.Upgrader{
		Subprotocols:   []string{constants.WebsocketsSPDYTunnelingPortForwardV1},
		ReadBufferSize: frameBuffer, WriteBufferSize: frameBuffer,
		// Callers prove who they are with certificates or tokens, never with cookies: origins do not matter.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, nil, err
	}
	inner := r.Clone(r.Context())
	inner.Method = http.MethodPost
	for _, name := range []string{wsstream.WebSocketProtocolHeader, "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions"} {
		inner.Header.Del(name)
	}
	inner.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	inner.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	inner.Header.Set(httpstream.HeaderProtocolVersion, constants.PortForwardV1Name)
	logger := klog.FromContext(r.Context())
	return &tunnelWriter{header: http.Header{}, conn: portforward.NewTunnelingConnectionWithLogger(logger, conn)}, inner, nil
}

// tunnelWriter is the response of a request that arrived inside a WebSocket connection: the WebSocket upgrade was the
// answer, so status and headers go nowhere.
type tunnelWriter struct {
	header http.Header
	conn   net.Conn
}

// Header returns headers that nobody reads.
func (t *tunnelWriter) Header() http.Header { return t.header }

// WriteHeader does nothing.
func (t *tunnelWriter) WriteHeader(int) {}

// Write drops an error text.
func (t *tunnelWriter) Write(p []byte) (int, error) { return len(p), nil }

// Hijack returns the connection inside.
func (t *tunnelWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return t.conn, bufio.NewReadWriter(bufio.NewReader(t.conn), bufio.NewWriter(t.conn)), nil
}
