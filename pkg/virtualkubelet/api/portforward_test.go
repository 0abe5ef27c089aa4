package api

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	gwebsocket "github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnels are the ways in which a kube-apiserver opens a port-forward at a kubelet.
var tunnels = map[string]func(*testing.T, *node) (httpstream.Connection, error){
	"SPDY": func(t *testing.T, n *node) (httpstream.Connection, error) {
		transport, upgrader, err := clientspdy.RoundTripperFor(n.caller())
		if err != nil {
			t.Fatal(err)
		}
		address, _ := url.Parse(n.url + "/portForward/local/pod")
		conn, _, err := clientspdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address).Dial("portforward.k8s.io")
		return conn, err
	},
	"SPDY inside WebSocket": func(t *testing.T, n *node) (httpstream.Connection, error) {
		address, _ := url.Parse(n.url + "/portForward/local/pod/uid-1")
		dialer, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, n.caller())
		if err != nil {
			t.Fatal(err)
		}
		conn, _, err := dialer.Dial("portforward.k8s.io")
		return conn, err
	},
}

func connect(t *testing.T, conn httpstream.Connection, port, request string) (problems, data httpstream.Stream) {
	t.Helper()
	headers := http.Header{}
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, request)
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err := conn.CreateStream(headers)
	if err != nil {
		t.Fatal(err)
	}
	_ = problems.Close()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	if data, err = conn.CreateStream(headers); err != nil && port == "80" {
		t.Fatal(err) // a refused port may take its streams down while they are created
	}
	return problems, data
}

func TestPortsAreForwarded(t *testing.T) {
	for protocol, dial := range tunnels {
		for upstream, noWebSocket := range map[string]bool{"WebSocket": false, "SPDY": true} {
			t.Run(protocol+" to "+upstream, func(t *testing.T) {
				p := startProvider(t)
				p.noWebSocket = noWebSocket
				n := startNode(t, nodeOptions{remote: p.remote(t)})
				conn, err := dial(t, n)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()

				// Two connections at once, each sending before and after the other, then a refused one.
				_, first := connect(t, conn, "80", "1")
				problems, second := connect(t, conn, "80", "2")
				for stream, text := range map[httpstream.Stream]string{first: "one", second: "two"} {
					if _, err := io.WriteString(stream, text); err != nil {
						t.Fatal(err)
					}
					buffer := make([]byte, len(text))
					if _, err := io.ReadFull(stream, buffer); err != nil {
						t.Fatal(err)
					}
					equal(t, strings.ToUpper(text), string(buffer))
				}
				_ = second.Close()
				equal(t, "", readAll(t, second))
				equal(t, "", readAll(t, problems))
				equal(t, "port-forward ended", within(t, p.hung, "the second connection to end"))

				problems, _ = connect(t, conn, "81", "3")
				if text := readAll(t, problems); !strings.Contains(text, "error forwarding port 81") || !strings.Contains(text, "connection refused") {
					t.Errorf("got the error %q", text)
				}

				_ = conn.Close()
				equal(t, "port-forward ended", within(t, p.hung, "the first connection to end with its caller"))
			})
		}
	}
}

func TestPortsAreForwardedToOldWebSocketClients(t *testing.T) {
	p := startProvider(t)
	n := startNode(t, nodeOptions{remote: p.remote(t)})
	dialer := gwebsocket.Dialer{Subprotocols: []string{"v4.channel.k8s.io"}, TLSClientConfig: insecure()}
	conn, response, err := dialer.Dial(strings.Replace(n.url, "https", "wss", 1)+"/portForward/local/pod?port=80",
		http.Header{"Authorization": {"Bearer good"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	defer func() { _ = conn.Close() }()
	read := func() string {
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		return string(message)
	}
	equal(t, []string{"\x00\x50\x00", "\x01\x50\x00"}, []string{read(), read()})
	if err := conn.WriteMessage(gwebsocket.BinaryMessage, []byte("\x00hello")); err != nil {
		t.Fatal(err)
	}
	equal(t, "\x00HELLO", read())
}

func TestTheCallerLosesThePortForwardWithTheProvider(t *testing.T) {
	for protocol, dial := range tunnels {
		t.Run(protocol, func(t *testing.T) {
			p := startProvider(t)
			n := startNode(t, nodeOptions{remote: p.remote(t)})
			conn, err := dial(t, n)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, data := connect(t, conn, "80", "1")
			_, _ = io.WriteString(data, "x")
			if _, err := io.ReadFull(data, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			p.cut()
			within(t, conn.CloseChan(), "the caller's connection to end")
		})
	}
}

func TestPortForwardIsRefusedInPlainWords(t *testing.T) {
	type call struct {
		override http.HandlerFunc
		uri      string
		want     answer
	}
	status := func(code, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Location", "https://192.0.2.1/")
			w.WriteHeader(map[string]int{"forbidden": 403, "expired": 401, "moved": 307, "broken": 500}[code])
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]call{
		"forbidden there": {
			override: status("forbidden", `{"kind":"Status","message":"pods \"pod-1\" is forbidden","reason":"Forbidden","code":403}`),
			want:     answer{403, `port-forward at the provider cluster: pods "pod-1" is forbidden`}},
		"our credentials expired": {
			override: status("expired", `{"kind":"Status","message":"Unauthorized","reason":"Unauthorized","code":401}`),
			want:     answer{502, "port-forward at the provider cluster: Unauthorized"}},
		"redirected": {
			override: status("moved", ""),
			want:     answer{502, `port-forward at the provider cluster: error sending request: Post "https://192.0.2.1/": it redirects to https://192.0.2.1, which is not followed`}},
		"broken": {
			override: status("broken", "oh"),
			want:     answer{502, "port-forward at the provider cluster: unable to upgrade connection: oh"}},
		"unknown pod": {
			uri: "/portForward/local/other", want: answer{404, "pod local/other: pod not found on this node"}},
		"another uid": {
			uri: "/portForward/local/pod/uid-2", want: answer{404, "pod local/pod: pod not found on this node"}},
		"peer down": {
			uri: "/portForward/dead/pod", want: answer{502, "pod dead/pod: peer milan: the provider cluster is not connected"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProvider(t)
			p.override = c.override
			n := startNode(t, nodeOptions{remote: p.remote(t)})
			if c.uri == "" {
				c.uri = "/portForward/local/pod"
			}
			got := n.upgrading(t, c.uri)
			got.body = strings.TrimSpace(got.body)
			equal(t, c.want, got)
		})
	}
}

func TestPortForwardHasADeadline(t *testing.T) {
	p := startProvider(t)
	released := make(chan struct{})
	p.override = func(http.ResponseWriter, *http.Request) { <-released }
	n := startNode(t, nodeOptions{remote: p.remote(t), limits: Limits{DialTimeout: 50 * time.Millisecond}})
	got := n.upgrading(t, "/portForward/local/pod")
	close(released)
	equal(t, answer{502, "port-forward at the provider cluster: no answer in time\n"}, got)
}
