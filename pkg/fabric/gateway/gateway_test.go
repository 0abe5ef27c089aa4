package gateway

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/pkg/networking/inputs"
	"liqo.io/liqo/test/fakeapi"
)

// endVariable has this test binary be the gateway of one end; socketVariable is the API server's.
const (
	endVariable    = "LIQO_TEST_GATEWAY_END"
	socketVariable = "LIQO_TEST_API_SOCKET"
)

func TestMain(m *testing.M) {
	if end := os.Getenv(endVariable); end != "" {
		if err := runEnd(end == "server"); err != nil {
			fmt.Fprintln(os.Stderr, "error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func testKey(server bool) netlink.PrivateKey { return sha256.Sum256(fmt.Append(nil, server)) }

// runEnd is a gateway, in the namespace of its process, at an API server behind a socket.
func runEnd(server bool) error {
	cluster, err := agent.Connect(&rest.Config{Host: "http://api", Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", os.Getenv(socketVariable))
	}})
	if err != nil {
		return err
	}
	key := testKey(server)
	kernel, err := netlink.Open("", key)
	if err != nil {
		return err
	}
	defer func() { _ = kernel.Close() }()
	pod := inputs.GatewayPod{Address: netip.MustParseAddr("192.0.2.2"), Node: "node", Host: netip.MustParseAddr("172.31.1.1"), Server: server, Key: key.Public(), Port: 6091}
	if server {
		pod.Address, pod.ListenPort = netip.MustParseAddr("192.0.2.1"), 51840
	}
	a := New(Options{
		Cluster: cluster, Kernel: kernel, Health: &agent.Health{}, Namespace: "liqo-tenant-milan", Name: "milan", Peer: "milan", Pod: pod, Interval: 100 * time.Millisecond,
		Liqo: "liqo",
	})
	return a.Run(context.Background())
}

// end is a gateway with its cluster.
type end struct {
	api    *fakeapi.REST
	server bool
	space  string
	socket string
}

const (
	group = "networking.liqo.io/v1beta1/"
	here  = group + "namespaces/liqo-tenant-milan/"
)

// space is the file of a network namespace that ends with the test.
func space(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	command := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-c", "ip link set lo up && echo made && exec sleep 1000")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/proc/%d/ns/net", command.Process.Pid)
}

func within(t *testing.T, space, script string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "nsenter", "--net="+space, "sh", "-ec", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func newEnd(t *testing.T, server bool) *end {
	t.Helper()
	e := &end{api: fakeapi.NewREST(), server: server, space: space(t), socket: filepath.Join(t.TempDir(), "api")}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", e.socket)
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewUnstartedServer(http.HandlerFunc(e.api.ServeHTTP))
	served.Listener = listener
	served.Start()
	t.Cleanup(func() { served.CloseClientConnections(); served.Close() })
	meta := metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", UID: "u-gateway", Generation: 1}
	kind := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{Kind: kind} }
	if server {
		e.api.Put(t, here+"gatewayservers/milan", &networkingv1beta1.GatewayServer{TypeMeta: kind("GatewayServer"), ObjectMeta: meta})
	} else {
		e.api.Put(t, here+"gatewayclients/milan", &networkingv1beta1.GatewayClient{TypeMeta: kind("GatewayClient"), ObjectMeta: meta, Spec: networkingv1beta1.GatewayClientSpec{
			Endpoint: networkingv1beta1.ClientEndpoint{Addresses: []networkingv1beta1.Host{"192.0.2.77", "192.0.2.1"}, Port: 51840},
		}})
	}
	cidr := func(pod, external networkingv1beta1.CIDR) networkingv1beta1.ClusterConfig {
		return networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: []networkingv1beta1.CIDR{pod}, External: []networkingv1beta1.CIDR{external}}}
	}
	own, seen := cidr("10.244.0.0/16", "10.70.0.0/16"), cidr("10.61.0.0/16", "10.71.0.0/16")
	e.api.Put(t, here+"configurations/milan-net", &networkingv1beta1.Configuration{TypeMeta: kind("Configuration"), ObjectMeta: ofMilan("milan-net"),
		Spec: networkingv1beta1.ConfigurationSpec{Local: &own, Remote: own}, Status: networkingv1beta1.ConfigurationStatus{Remote: &seen, Isolation: "open"}})
	e.api.Put(t, here+"internalfabrics/milan", &networkingv1beta1.InternalFabric{TypeMeta: kind("InternalFabric"), ObjectMeta: meta,
		Spec: networkingv1beta1.InternalFabricSpec{GatewayIP: "192.0.2.1", Interface: networkingv1beta1.InternalFabricSpecInterface{Gateway: networkingv1beta1.InternalFabricSpecInterfaceGateway{IP: "10.70.255.254"}}}})
	// What a kubelet may say of its node, and the kernel takes for no next hop.
	for i, address := range []networkingv1beta1.IP{"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "10.70.255.254", "192.0.2.1", "192.0.2.2"} {
		node := &networkingv1beta1.InternalNode{TypeMeta: kind("InternalNode"), ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("odd-%d", i)}}
		node.Spec.Interface.Node.IP = networkingv1beta1.IP(fmt.Sprintf("10.70.255.%d", i))
		node.Status.NodeIP.Remote, node.Status.PodRanges = &address, []networkingv1beta1.CIDR{"0.0.0.0/0"}
		e.api.Put(t, group+"internalnodes/"+node.Name, node)
	}
	return e
}

// eventually waits a minute at most until nothing is missing.
func eventually(t *testing.T, condition func() (missing string)) {
	t.Helper()
	deadline, again := time.NewTimer(time.Minute), time.NewTicker(20*time.Millisecond)
	defer deadline.Stop()
	defer again.Stop()
	for {
		missing := condition()
		if missing == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("waited a minute: %s", missing)
		case <-again.C:
		}
	}
}

// latency waits for the first one that is told; it is no greeting's, which takes seconds.
func (e *end) latency(t *testing.T) {
	t.Helper()
	var told string
	eventually(t, func() string {
		var c networkingv1beta1.Connection
		e.api.Get(t, here+"connections/milan", &c)
		if told = c.Status.Latency.Value; told == "" {
			return "the tunnel tells no latency"
		}
		return ""
	})
	if latency, err := time.ParseDuration(told); err != nil || latency <= 0 || latency > time.Second {
		t.Errorf("the latency is %q", told)
	}
}

// ofMilan is the metadata of an object of some name that stands for the peer.
func ofMilan(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "liqo-tenant-milan", Name: name, CreationTimestamp: metav1.NewTime(noon), Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"},
	}
}

// trust gives an end the key of the other one.
func (e *end) trust(t *testing.T) {
	t.Helper()
	other := testKey(!e.server).Public()
	e.api.Put(t, here+"publickeies/my-key", &networkingv1beta1.PublicKey{TypeMeta: metav1.TypeMeta{Kind: "PublicKey"},
		ObjectMeta: ofMilan("my-key"), Spec: networkingv1beta1.PublicKeySpec{PublicKey: other[:]}})
}

// start starts the gateway's process and returns what ends it.
func (e *end) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	name := map[bool]string{true: "server", false: "client"}[e.server]
	command := exec.CommandContext(ctx, "nsenter", "--net="+e.space, os.Args[0])
	command.Env = append(os.Environ(), endVariable+"="+name, socketVariable+"="+e.socket)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var ended bool
	stop = func() {
		if !ended {
			ended = true
			cancel()
			_ = command.Wait()
		}
	}
	t.Cleanup(stop)
	return stop
}

// comesTo waits until the Connection has a value and a reason.
func (e *end) comesTo(t *testing.T, value networkingv1beta1.ConnectionStatusValue, reasons ...string) networkingv1beta1.Connection {
	t.Helper()
	var c networkingv1beta1.Connection
	eventually(t, func() string {
		c = networkingv1beta1.Connection{}
		e.api.Get(t, here+"connections/milan", &c)
		for _, condition := range c.Status.Conditions {
			if c.Status.Value == value && slices.Contains(reasons, condition.Reason) {
				return ""
			}
		}
		return fmt.Sprintf("the Connection of the server (%t) is %+v, want %s, %v", e.server, c.Status, value, reasons)
	})
	return c
}

// Two gateways find each other, tell so once, notice when the other one is silent, and find each other again: after the way was broken, and after one of them
// was killed. The client's first address leads nowhere.
func TestTwoGateways(t *testing.T) {
	server, client := newEnd(t, true), newEnd(t, false)
	within(t, server.space, fmt.Sprintf("ip link add name eth0 type veth peer name eth0 netns %s; ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up", client.space))
	within(t, client.space, "ip addr add 192.0.2.2/24 dev eth0; ip link set eth0 up")
	server.start(t)
	stop := client.start(t)
	up := []string{networkingv1beta1.ReasonConnected, networkingv1beta1.ReasonWireGuardUnavailable}
	for _, e := range []*end{server, client} {
		c := e.comesTo(t, networkingv1beta1.Connecting, networkingv1beta1.ReasonKeyMissing)
		if c.Status.MTU != 1440 {
			t.Errorf("before there is a tunnel, its MTU is %d", c.Status.MTU)
		}
		e.trust(t)
	}
	for _, e := range []*end{server, client} {
		c := e.comesTo(t, networkingv1beta1.Connected, up...)
		if c.Spec.GatewayRef.Name != "milan" || c.Labels["liqo.io/remote-cluster-id"] != "milan" || len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != "u-gateway" {
			t.Errorf("the Connection is %+v", c)
		}
		e.latency(t)
	}
	server.administrators(t)
	before := client.api.Applied(here + "connections/milan")
	within(t, server.space, "ip link set eth0 down")
	for _, e := range []*end{server, client} {
		e.comesTo(t, networkingv1beta1.ConnectionError, networkingv1beta1.ReasonNoHandshake)
	}
	within(t, server.space, "ip link set eth0 up")
	for _, e := range []*end{server, client} {
		e.comesTo(t, networkingv1beta1.Connected, up...)
	}
	if writes := client.api.Applied(here+"connections/milan") - before; writes > 4 {
		t.Errorf("two changes were written %d times", writes)
	}
	stop()
	server.comesTo(t, networkingv1beta1.ConnectionError, networkingv1beta1.ReasonNoHandshake)
	client.start(t)
	server.comesTo(t, networkingv1beta1.Connected, up...)
	client.comesTo(t, networkingv1beta1.Connected, up...)
}

// A pod that is rolled out beside the one that has the tunnel does not take it away, though it has its key: the kernel gets nothing, and nothing is
// told, before the pod is the one that the gateway's object names.
func TestAPodThatIsRolledOutStandsBy(t *testing.T) {
	server, client := newEnd(t, true), newEnd(t, false)
	within(t, server.space, fmt.Sprintf("ip link add name eth0 type veth peer name eth0 netns %s; ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up", client.space))
	within(t, client.space, "ip addr add 192.0.2.2/24 dev eth0; ip link set eth0 up")
	names := func(pod networkingv1beta1.IP) {
		var gateway networkingv1beta1.GatewayClient
		client.api.Get(t, here+"gatewayclients/milan", &gateway)
		gateway.Status.InternalEndpoint = &networkingv1beta1.InternalGatewayEndpoint{IP: &pod}
		client.api.Put(t, here+"gatewayclients/milan", &gateway)
	}
	names("192.0.2.99")
	server.trust(t)
	client.trust(t)
	server.start(t)
	client.start(t)
	// By then the client would have had the time: it is the server that waits.
	server.comesTo(t, networkingv1beta1.Connecting, networkingv1beta1.ReasonNoHandshake)
	var told networkingv1beta1.Connection
	client.api.Get(t, here+"connections/milan", &told)
	if links := within(t, client.space, "ip -o link show"); strings.Contains(links, dataplane.TunnelDevice) || told.Name != "" {
		t.Errorf("who stands by has told %+v, and has the devices\n%s", told, links)
	}
	names("192.0.2.2")
	for _, e := range []*end{server, client} {
		e.comesTo(t, networkingv1beta1.Connected, networkingv1beta1.ReasonConnected, networkingv1beta1.ReasonWireGuardUnavailable)
	}
}
