package netlink

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// endVariable has this test binary be one end of a tunnel.
const endVariable = "LIQO_TEST_TUNNEL_END"

func TestMain(m *testing.M) {
	if end := os.Getenv(endVariable); end != "" {
		if err := runEnd(end); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func testKey(name string) PrivateKey { return sha256.Sum256([]byte(name)) }

// endState is the State of the gateway at one end of a tunnel; both ends have the same ranges.
func endState(end string) (dataplane.State, PrivateKey) {
	server := end == "server"
	other, port, endpoint := "server", uint16(0), netip.MustParseAddrPort("192.0.2.1:51820")
	if server {
		other, port, endpoint = "client", 51820, netip.AddrPort{}
	}
	input := dataplane.GatewayInput{
		Address: netip.MustParseAddr("192.0.2.200"), External: netip.MustParseAddr("10.70.0.200"), Server: server, ListenPort: port, Endpoint: endpoint,
		Key: testKey(end).Public(), PeerKey: testKey(other).Public(), MTU: 1500, TunnelMTU: 1440, Port: dataplane.DefaultOverlayPort,
		Peer: []dataplane.Range{{Own: netip.MustParsePrefix("10.244.0.0/16"), Seen: netip.MustParsePrefix("10.61.0.0/16")}},
	}
	state, _ := dataplane.Gateway(input)
	return state, testKey(end)
}

// runEnd keeps a State in the namespace of its process, and does as it is told by lines.
func runEnd(end string) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/all/forwarding", []byte("0"), 0); !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("settings can be written: %w", err)
	}
	state, key := endState(end)
	k, err := Open("", key)
	if err != nil {
		return err
	}
	defer func() { _ = k.Close() }()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "apply":
			changes, err := k.Apply(state)
			fmt.Printf("%d changes, %v\n", len(changes), err)
		case "read":
			read, err := k.Read(state)
			fmt.Printf("%q, %v, in user space: %t\n", diff(state, read), err, k.InUserSpace())
		case "forget":
			fmt.Println(k.Forget(dataplane.TunnelDevice))
		case "count":
			carried, err := k.Traffic(dataplane.TunnelDevice)
			counted, failed := k.Counted()
			recent := time.Since(carried.Handshake) < time.Minute
			fmt.Printf("received %t, sent %t, greeted %t, %v, %d counters, %v\n", carried.Received > 1440, carried.Sent > 1440, recent, err, len(counted), failed)
		case "without peer":
			state.Peers = nil
			fmt.Println("done")
		}
	}
	return nil
}

// ask sends echoes of the tunnel's full MTU to the server until one is answered.
func ask(t *testing.T, k *Kernel) string {
	t.Helper()
	var conn net.Conn
	if err := k.within(func() (err error) { conn, err = net.Dial("ip4:icmp", "169.254.18.1"); return err }); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// An echo of zeros, its checksum apart.
	echo := make([]byte, 1420)
	echo[0], echo[2], echo[3] = 8, 0xf7, 0xff
	for range 20 {
		if _, err := conn.Write(echo); err != nil {
			return err.Error()
		}
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if n, err := conn.Read(make([]byte, 2000)); err == nil {
			return fmt.Sprintf("%d bytes", n)
		}
	}
	return "no answer"
}

// end is a process that is one end of a tunnel.
type end struct {
	in  *os.File
	out *bufio.Scanner
	// kill ends the process, however busy it is.
	kill func()
}

func startEnd(t *testing.T, space, name string) end {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	// As the agents are run: no capability but NET_ADMIN, and settings cannot be written by their files.
	script := `mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec setpriv --bounding-set=-all,+net_admin --inh-caps=-all "$0"`
	command := exec.CommandContext(ctx, "nsenter", "--net="+space, "unshare", "--mount", "sh", "-ec", script, os.Args[0])
	command.Env = append(os.Environ(), endVariable+"="+name)
	command.Stderr = os.Stderr
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdin = theirs
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	e := end{ours, bufio.NewScanner(out), sync.OnceFunc(func() {
		cancel()
		_ = command.Wait()
		_, _ = ours.Close(), theirs.Close()
	})}
	t.Cleanup(e.kill)
	return e
}

// do tells an end to do something, and returns what it says.
func (e end) do(t *testing.T, line string) string {
	t.Helper()
	if _, err := fmt.Fprintln(e.in, line); err != nil {
		t.Fatal(err)
	}
	if !e.out.Scan() {
		t.Fatalf("%s: the process has ended: %v", line, e.out.Err())
	}
	return e.out.Text()
}

// Two gateways with WireGuard, where the kernel has none in their own processes, with as few rights as agents have: what was applied is read, to apply it again changes nothing, a
// packet of the full MTU passes, and none of a peer that is not wanted any more.
func TestATunnelOfWireGuard(t *testing.T) {
	one, other := namespace(t), namespace(t)
	foreign(t, one, "ip link add name eth0 type veth peer name eth0 netns "+other+"; ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up; ip link set lo up")
	foreign(t, other, "ip addr add 192.0.2.2/24 dev eth0; ip link set eth0 up; ip link set lo up")
	server, client, outside := startEnd(t, one, "server"), startEnd(t, other, "client"), opened(t, other)
	for _, e := range []end{server, client} {
		if text := e.do(t, "apply"); !strings.HasSuffix(text, "changes, <nil>") || strings.HasPrefix(text, "0 ") {
			t.Fatal(text)
		}
	}
	if text := ask(t, outside); text != "1440 bytes" {
		t.Errorf("through the tunnel: %s", text)
	}
	for _, e := range []end{server, client} {
		if text := e.do(t, "apply"); text != "0 changes, <nil>" {
			t.Error(text)
		}
		if text := e.do(t, "read"); !strings.HasPrefix(text, `"", <nil>, `) {
			t.Error(text)
		}
	}
	client.kill()
	client = startEnd(t, other, "client")
	client.do(t, "apply")
	if text := ask(t, outside); text != "1440 bytes" {
		t.Errorf("through the tunnel of the next process: %s", text)
	}
	if text := client.do(t, "count"); text != "received true, sent true, greeted true, <nil>, 2 counters, <nil>" {
		t.Errorf("counted: %s", text)
	}
	// Whoever forgot the session begins another one.
	if text := client.do(t, "forget"); text != "<nil>" {
		t.Error(text)
	}
	if text := client.do(t, "apply"); text != "1 changes, <nil>" {
		t.Error(text)
	}
	// The other end leaves out a greeting that comes right after another one; the next is sent after five seconds.
	eventually(t, 20*time.Second, func() string {
		if text := ask(t, outside); text != "1440 bytes" {
			return "an answer through the tunnel of the next session: " + text
		}
		return ""
	})
	server.do(t, "without peer")
	if text := server.do(t, "apply"); text != "1 changes, <nil>" {
		t.Error(text)
	}
	if text := ask(t, outside); text != "no answer" {
		t.Errorf("from a peer that was removed: %s", text)
	}
	// Whoever removes the device stops nobody for long.
	foreign(t, other, "ip link del "+dataplane.TunnelDevice)
	client.do(t, "apply")
	if text := client.do(t, "read"); !strings.HasPrefix(text, `"", <nil>, `) {
		t.Error(text)
	}
}

func TestAPrivateKeyIsNotTold(t *testing.T) {
	if text := fmt.Sprintf("%v %s %+v", testKey("server"), testKey("server"), []PrivateKey{testKey("server")}); text != "(secret) (secret) [(secret)]" {
		t.Error(text)
	}
}
