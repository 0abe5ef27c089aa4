package netlink

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// namespace makes a network namespace that ends with the test, and returns its file.
func namespace(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	type result struct {
		file *os.File
		err  error
	}
	made := make(chan result)
	go func() {
		// Never unlocked: the thread that has another namespace ends with the goroutine.
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- result{err: err}
			return
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		made <- result{file, err}
	}()
	r := <-made
	if r.err != nil {
		t.Fatal(r.err)
	}
	t.Cleanup(func() { _ = r.file.Close() })
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.file.Fd())
}

// foreign runs a command as somebody else would, in a namespace.
func foreign(t *testing.T, namespace, command string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "nsenter", "--net="+namespace, "sh", "-ec", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func opened(t *testing.T, namespace string) *Kernel {
	t.Helper()
	k, err := Open(namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// apply applies a State and returns what was changed.
func apply(t *testing.T, k *Kernel, state dataplane.State) []string {
	t.Helper()
	changes, err := k.Apply(state)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

// eventually waits for a condition, which says what is missing.
func eventually(t *testing.T, within time.Duration, condition func() (missing string)) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		missing := condition()
		if missing == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after %s: %s", within, missing)
		case <-again.C:
		}
	}
}

func prefixList(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

var (
	nodeOne = dataplane.InternalNode{
		VTEP: netip.MustParseAddr("172.31.1.1"), External: netip.MustParseAddr("10.70.0.1"),
		Addresses: []netip.Addr{netip.MustParseAddr("172.31.1.1")}, Pods: prefixList("10.244.1.0/24"),
	}
	nodeTwo = dataplane.InternalNode{
		VTEP: netip.MustParseAddr("172.31.1.2"), External: netip.MustParseAddr("10.70.0.2"),
		Addresses: []netip.Addr{netip.MustParseAddr("172.31.1.2")}, Pods: prefixList("10.244.2.0/24", "10.244.3.7/32", "0.0.0.0/8", "255.0.0.0/8"),
	}
	fabrics = []dataplane.InternalFabric{
		{Gateway: netip.MustParseAddr("10.244.1.200"), Remote: prefixList("10.61.0.0/16", "10.71.0.0/16"), MTU: 1440},
		{Gateway: netip.MustParseAddr("10.244.1.201"), Remote: prefixList("10.62.0.0/16", "10.63.0.0/16"), MTU: 1380},
	}
	ips = []dataplane.IP{
		{Address: netip.MustParseAddr("10.96.0.1"), External: netip.MustParseAddr("10.70.0.100"), Masquerade: true},
		{Address: netip.MustParseAddr("192.0.2.50"), External: netip.MustParseAddr("10.70.0.101"),
			Ports: []dataplane.Port{{Protocol: dataplane.TCP, Number: 631}, {Protocol: dataplane.UDP, Number: 53}}},
	}
)

// sound fails the test if a State has problems.
func sound(t *testing.T, state dataplane.State, problems []dataplane.Problem) dataplane.State {
	t.Helper()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return state
}

func nodeState(t *testing.T, change func(*dataplane.NodeInput)) dataplane.State {
	t.Helper()
	input := dataplane.NodeInput{Self: nodeTwo, Fabrics: fabrics, IPs: ips, MTU: 1500, Port: dataplane.DefaultOverlayPort}
	if change != nil {
		change(&input)
	}
	state, problems := dataplane.Node(input)
	return sound(t, state, problems)
}

// gatewayState is that of a gateway, but for the peers of its WireGuard device, which are not the kernel's business here.
func gatewayState(t *testing.T, change func(*dataplane.GatewayInput)) dataplane.State {
	t.Helper()
	input := dataplane.GatewayInput{
		Address: fabrics[0].Gateway, External: netip.MustParseAddr("10.70.0.200"), ListenPort: 51820, Server: true,
		Peer: []dataplane.Range{
			{Own: netip.MustParsePrefix("10.244.0.0/16"), Seen: netip.MustParsePrefix("10.61.0.0/16")},
			{Own: netip.MustParsePrefix("10.70.0.0/16"), Seen: netip.MustParsePrefix("10.71.0.0/16")},
		},
		Reach: prefixList("10.244.0.0/16", "10.70.0.0/16"), IPs: ips, Nodes: []dataplane.InternalNode{nodeOne, nodeTwo}, Host: nodeOne.VTEP,
		MTU: 1500, TunnelMTU: 1440, Port: dataplane.DefaultOverlayPort,
	}
	if change != nil {
		change(&input)
	}
	state, problems := dataplane.Gateway(input)
	state.Peers = nil
	return sound(t, state, problems)
}

// withTunnel has the device that WireGuard in user space makes.
const withTunnel = "ip tuntap add dev " + dataplane.TunnelDevice + " mode tun"

// place is a namespace with a State that is to be in it.
type place struct {
	namespace string
	kernel    *Kernel
	state     dataplane.State
}

// places are a node and a gateway, with nothing of ours in them yet.
func places(t *testing.T) map[string]*place {
	t.Helper()
	all := map[string]*place{"node": {state: nodeState(t, nil)}, "gateway": {state: gatewayState(t, nil)}}
	for name, p := range all {
		p.namespace = namespace(t)
		p.kernel = opened(t, p.namespace)
		if name == "gateway" {
			foreign(t, p.namespace, withTunnel)
		}
	}
	return all
}

// differs says how what is there differs from what is wanted.
func (p *place) differs(t *testing.T) string {
	t.Helper()
	read, err := p.kernel.Read(p.state)
	if err != nil {
		t.Fatal(err)
	}
	return diff(p.state, read)
}
