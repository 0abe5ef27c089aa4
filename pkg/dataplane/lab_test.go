package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/netlink"
)

// lab is a world in the kernel: a network namespace for each place, and one for what is between the nodes of each cluster.
type lab struct {
	dataplane.Lab
	spaces map[dataplane.Place]*os.File
	// tunnels are the devices of gateways, as the process that encrypts has them.
	tunnels map[dataplane.Place]*os.File
}

// space makes a network namespace that ends with the test.
func space(t *testing.T) *os.File {
	t.Helper()
	var file *os.File
	inNew := make(chan error)
	go func() {
		// Never unlocked: the thread that has another namespace ends with the goroutine.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			file, err = os.Open("/proc/thread-self/ns/net")
		}
		inNew <- err
	}()
	if err := <-inNew; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func path(file *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()) }

// in calls a function in a place.
func (l *lab) in(place dataplane.Place, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Setns(int(l.spaces[place].Fd()), unix.CLONE_NEWNET)
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// run runs a script in a place.
func (l *lab) run(t *testing.T, file *os.File, script string) {
	t.Helper()
	var out bytes.Buffer
	if err := l.output(t, file, script, &out); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), script)
	}
}

// output runs a script and takes what it prints.
func (l *lab) output(t *testing.T, file *os.File, script string, out io.Writer) error {
	t.Helper()
	command := exec.CommandContext(t.Context(), "nsenter", "--net="+path(file), "sh", "-eu")
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(script), out, out
	return command.Run()
}

// build builds a world. What is not the agents' is made by ip and nft from the text of its State, what is theirs by package netlink.
func build(t *testing.T, world dataplane.Lab) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	l := &lab{Lab: world, spaces: map[dataplane.Place]*os.File{}, tunnels: map[dataplane.Place]*os.File{}}
	for place := range world.World {
		l.spaces[place] = space(t)
		l.run(t, l.spaces[place], `cd /proc/sys/net/ipv4/conf
			for name in forwarding rp_filter accept_local send_redirects; do for device in all default lo; do echo 0 > $device/$name; done; done
			echo 0 > /proc/sys/net/ipv4/icmp_ratelimit
			ip link set lo up`)
	}
	l.wire(t)
	for place := range world.World {
		l.place(t, place)
	}
	for place := range l.tunnels {
		go l.relay(place)
	}
	return l
}

// wire connects the devices that hear each other: two by a pair, more by a bridge.
func (l *lab) wire(t *testing.T) {
	t.Helper()
	type end struct {
		place  dataplane.Place
		device string
	}
	wires := map[string][]end{}
	for place := range l.World {
		for _, link := range l.Environment(place).Links {
			wires[link.Wire] = append(wires[link.Wire], end{place, link.Name})
		}
	}
	for name, ends := range wires {
		middle := space(t)
		var script strings.Builder
		script.WriteString("ip link add middle type bridge\nip link set middle up\n")
		for i, e := range ends {
			fmt.Fprintf(&script, "ip link add port%d type veth peer name %s netns %s\nip link set port%d master middle up\n", i, e.device, path(l.spaces[e.place]), i)
		}
		if strings.Contains(name, "veth") {
			script.Reset()
			fmt.Fprintf(&script, "ip link add %s netns %s type veth peer name %s netns %s\n", ends[0].device, path(l.spaces[ends[0].place]), ends[1].device, path(l.spaces[ends[1].place]))
		}
		l.run(t, middle, script.String())
	}
}

// place makes what is in a place.
func (l *lab) place(t *testing.T, place dataplane.Place) {
	t.Helper()
	environment, ours := l.Environment(place), l.Ours[place]
	var script, firewall strings.Builder
	for line := range strings.Lines(environment.String()) {
		switch {
		case strings.HasPrefix(line, "sysctl"): // Later: the devices of the agents have settings too.
		case strings.HasPrefix(line, "ip link set"):
			device := strings.Fields(line)[3]
			fmt.Fprintf(&script, "ip link set %s mtu 1500 up\n", device)
			// The pod's neighbour is whoever forwards for it.
			fmt.Fprintf(&script, "case %s in veth*) echo 1 > /proc/sys/net/ipv4/conf/%[1]s/proxy_arp; echo 0 > /proc/sys/net/ipv4/neigh/%[1]s/proxy_delay;; esac\n", device)
		case strings.HasPrefix(line, "ip route replace default") && strings.Contains(environment.Links[0].Wire, "veth"):
			// By one neighbour, not by as many as there are addresses: the kernel keeps about a thousand for all namespaces together.
			script.WriteString("ip route replace default via 169.254.1.1 dev eth0 onlink\n")
		case strings.HasPrefix(line, "ip "):
			script.WriteString(line)
		default:
			firewall.WriteString(line)
		}
	}
	fmt.Fprintf(&script, "nft -f - <<'END'\n%sEND\n", firewall.String())
	l.run(t, l.spaces[place], script.String())
	for _, link := range ours.Links {
		if link.Kind == dataplane.WireGuard {
			if err := l.in(place, func() error { return l.openTunnel(place, link.Name) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	kernel, err := netlink.Open(path(l.spaces[place]))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kernel.Close() }()
	if _, err := kernel.Apply(ours); err != nil {
		t.Fatalf("%s: %v", place, err)
	}
	ours.Peers = nil // They are relay's.
	read, err := kernel.Read(ours)
	if diff := cmp.Diff(sortedLines(ours), sortedLines(read)); err != nil || diff != "" {
		t.Fatalf("%s is read otherwise than it was applied: %v (-want +got)\n%s", place, err, diff)
	}
	if changes, err := kernel.Apply(ours); err != nil || changes != nil {
		t.Fatalf("%s is changed when it is there: %q, %v", place, changes, err)
	}
	var settings strings.Builder
	for _, s := range environment.Devices {
		fmt.Fprintf(&settings, "echo %d > /proc/sys/net/ipv4/conf/%s/%s\n", s.Value, s.Device, s.Name)
	}
	l.run(t, l.spaces[place], settings.String())
}

// sortedLines are the text of a State: the order of routes and neighbours has no meaning in the kernel.
func sortedLines(state dataplane.State) []string {
	return slices.Sorted(strings.Lines(state.String()))
}

// openTunnel makes the device of a tunnel. Its packets are carried by relay: what WireGuard lets through, in the clear.
func (l *lab) openTunnel(place dataplane.Place, name string) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return err
	}
	l.tunnels[place] = os.NewFile(uintptr(fd), name)
	return nil
}

// relay carries what comes out of a gateway's tunnel to the other end, as WireGuard does: by whose addresses it is, there and here.
func (l *lab) relay(from dataplane.Place) {
	buffer := make([]byte, 65536)
	for {
		n, err := l.tunnels[from].Read(buffer)
		if err != nil {
			return
		}
		packet := buffer[:n]
		if n < 20 || packet[0]>>4 != 4 {
			continue
		}
		source, destination := netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))
		for to := range l.tunnels {
			if allowed(l.Ours[from], l.Ours[to], destination) && allowed(l.Ours[to], l.Ours[from], source) {
				_, _ = l.tunnels[to].Write(packet)
			}
		}
	}
}

// allowed tells whether an address may be at the other end of a tunnel.
func allowed(here, there dataplane.State, address netip.Addr) bool {
	return slices.ContainsFunc(here.Peers, func(p dataplane.Peer) bool {
		is := func(l dataplane.Link) bool { return l.Kind == dataplane.WireGuard && l.Key == p.Key }
		return slices.ContainsFunc(there.Links, is) && slices.ContainsFunc(p.Allowed, func(r netip.Prefix) bool { return r.Contains(address) })
	})
}

// close ends what runs.
func (l *lab) close() {
	for _, file := range l.tunnels {
		_ = file.Close()
	}
}

// places are all, in order.
func (l *lab) places() []dataplane.Place { return slices.Sorted(maps.Keys(l.World)) }

// checksum is the sum that the Internet's checksums are made of: of what has the right one it is 0xffff.
func checksum(raw []byte) uint16 {
	sum := uint32(0)
	for i := 0; i < len(raw); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(raw[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum) //nolint:gosec // Folded.
}

// vxlan is a packet of IP as the overlay carries it.
func vxlan(p dataplane.Packet, inner []byte) []byte {
	header := binary.BigEndian.AppendUint32([]byte{8, 0, 0, 0}, dataplane.VNI<<8)
	header = append(append(header, p.MAC[:]...), 2, 0, 0, 0, 0, 1, 8, 0)
	return append(header, inner...)
}

// udp is a packet of UDP as it is on the wire.
func udp(p dataplane.Packet, payload string) []byte {
	packet := make([]byte, 28+len(payload))
	packet[0], packet[8], packet[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet))) //nolint:gosec // Short.
	copy(packet[12:], p.Source.AsSlice())
	copy(packet[16:], p.Destination.AsSlice())
	binary.BigEndian.PutUint16(packet[10:], ^checksum(packet[:20]))
	binary.BigEndian.PutUint16(packet[20:], p.SourcePort)
	binary.BigEndian.PutUint16(packet[22:], p.DestinationPort)
	binary.BigEndian.PutUint16(packet[24:], uint16(8+len(payload))) //nolint:gosec // Short. Its own checksum may be missing.
	copy(packet[28:], payload)
	return packet
}
