package netlink

import (
	"encoding/binary"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// steps calls a function before each change of the next passes, and returns how often it did.
func (k *Kernel) steps(look func(next string)) (count *int) {
	count = new(int)
	k.stop = func(change string) error {
		*count++
		look(change)
		return nil
	}
	return count
}

// forwards has new devices of a namespace forward from the start, as those of nodes and pods do.
func (p *place) forwards(t *testing.T) {
	t.Helper()
	foreign(t, p.namespace, `cd /proc/sys/net/ipv4/conf; for name in all default; do echo 1 > $name/forwarding; echo 0 > $name/rp_filter; done`)
}

// refuses adds a route that the kernel refuses: nobody sends from such an address.
func refuses(state dataplane.State) dataplane.State {
	state.Routes = append(slices.Clone(state.Routes), dataplane.Route{
		Table: dataplane.LocalTable, Destination: netip.MustParsePrefix("10.99.0.0/16"), Device: state.Links[0].Name, Source: parsed("192.0.2.99"),
	})
	return state
}

// isOpen says how a place lets packets pass that it should not: by a device that is up the firewall has to be there, and by one that forwards
// the rules, too.
func (p *place) isOpen(t *testing.T, kinds ...dataplane.LinkKind) string {
	t.Helper()
	read, err := opened(t, p.namespace).Read(p.state)
	if err != nil {
		t.Fatal(err)
	}
	is := ""
	for _, link := range read.Links {
		forwards := slices.Contains(read.Devices, dataplane.Setting{Device: link.Name, Name: "forwarding", Value: 1})
		switch {
		case !slices.Contains(kinds, link.Kind):
		case diff(dataplane.State{Firewall: p.state.Firewall}, dataplane.State{Firewall: read.Firewall}) != "":
			is += link.Name + " is up without the firewall; "
		case forwards && diff(dataplane.State{Rules: p.state.Rules}, dataplane.State{Rules: read.Rules}) != "":
			is += link.Name + " forwards without the rules; "
		}
	}
	return is
}

// However far a pass has come that puts a State there, or takes it away: by no device of ours do packets come that the firewall does not see, or
// go on that the rules do not lead.
func TestNothingIsOpenWhileAStateComesOrGoes(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			p.forwards(t)
			steps := p.kernel.steps(func(next string) {
				if is := p.isOpen(t, dataplane.VXLAN, dataplane.WireGuard); is != "" {
					t.Errorf("before %q: %s", next, is)
				}
			})
			apply(t, p.kernel, p.state)
			if d := p.differs(t); *steps < 5 || d != "" {
				t.Fatalf("after %d changes (-want +got):\n%s", *steps, d)
			}
			last := ""
			steps = p.kernel.steps(func(next string) {
				// The tunnel's device is somebody else's here, and stays.
				if is := p.isOpen(t, dataplane.VXLAN); is != "" {
					t.Errorf("before %q: %s", next, is)
				}
				last = next
			})
			apply(t, p.kernel, dataplane.State{})
			if *steps < 5 || !strings.HasPrefix(last, "remove table ") {
				t.Errorf("of %d changes, the last one is %q", *steps, last)
			}
		})
	}
}

// Where the kernel refuses a route, the firewall is there, and nothing is forwarded. Where another State was in place, what is not allowed any more
// is blocked, and the rest goes on.
func TestTheFirewallIsThereThoughARouteIsRefused(t *testing.T) {
	narrower := map[string]dataplane.State{
		"node":    nodeState(t, func(i *dataplane.NodeInput) { i.Fabrics, i.MTU = i.Fabrics[1:], 1400 }),
		"gateway": gatewayState(t, func(i *dataplane.GatewayInput) { i.Reach, i.MTU = i.Reach[:1], 1400 }),
	}
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			p.forwards(t)
			refused := func(state dataplane.State) dataplane.State {
				t.Helper()
				p.state = state
				if _, err := p.kernel.Apply(refuses(state)); err == nil || !strings.Contains(err.Error(), "add route to 10.99.0.0/16") {
					t.Fatalf("the error is %v", err)
				}
				read, err := p.kernel.Read(state)
				if err != nil {
					t.Fatal(err)
				}
				if d := diff(dataplane.State{Firewall: state.Firewall}, dataplane.State{Firewall: read.Firewall}); d != "" {
					t.Errorf("the firewall (-want +got):\n%s", d)
				}
				return read
			}
			first := refused(p.state)
			if is := p.isOpen(t, dataplane.VXLAN, dataplane.WireGuard); is != "" || len(first.Links) == 0 {
				t.Errorf("%s%s", is, first)
			}
			apply(t, p.kernel, p.state)
			if second := refused(narrower[name]); !slices.Equal(second.Devices, p.state.Devices) {
				t.Errorf("a place that was open is closed:\n%s", second)
			}
			apply(t, p.kernel, p.state)
		})
	}
}

// tunnelDevice is the device of a gateway's tunnel, as the process that encrypts has it.
func (p *place) tunnelDevice(t *testing.T) *os.File {
	t.Helper()
	fd := -1
	err := p.kernel.within(func() (err error) {
		if fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return err
		}
		request, err := unix.NewIfreq(dataplane.TunnelDevice)
		if err != nil {
			return err
		}
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	})
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), dataplane.TunnelDevice)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// datagram is one of UDP without content, with no checksum but that of IP.
func datagram(from, to netip.Addr) []byte {
	packet := make([]byte, 28)
	packet[0], packet[3], packet[8], packet[9], packet[25] = 0x45, 28, 64, unix.IPPROTO_UDP, 8
	copy(packet[12:], from.AsSlice())
	copy(packet[16:], to.AsSlice())
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(packet[i:]))
	}
	binary.BigEndian.PutUint16(packet[10:], ^uint16(sum+sum>>16)) //nolint:gosec // Folded.
	return packet
}

// While a gateway gets its State, what a peer sends goes nowhere, nor does it when the kernel refuses a route. The firewall alone would let pass what
// goes to a node by an address that it has among pods; that node drops it if it comes by the overlay, as the rules have it.
func TestNothingOfAPeerGoesOnBeforeAllIsThere(t *testing.T) {
	p := places(t)["gateway"]
	p.forwards(t)
	foreign(t, p.namespace, `ip link set lo up; ip link add name eth0 type veth peer name eth1; ip link set eth0 up; ip link set eth1 up
		ip addr add 10.244.1.200/24 dev eth0; ip route add default via 10.244.1.1; ip neigh add 10.244.1.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent`)
	tunnel := p.tunnelDevice(t)
	sends := func(destinations ...string) (forwarded int) {
		t.Helper()
		counted := func() int {
			count, err := strconv.Atoi(strings.TrimSpace(foreign(t, p.namespace, `awk '/^Ip: [0-9]/ {print $7}' /proc/net/snmp`)))
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
		before := counted()
		for _, to := range destinations {
			_, _ = tunnel.Write(datagram(parsed("10.244.5.5"), parsed(to))) // A device that is down takes nothing.
		}
		return counted() - before
	}
	const bridge, node, pod = "10.244.1.1", "172.31.1.1", "10.244.2.5"
	steps := p.kernel.steps(func(next string) {
		if forwarded := sends(bridge, node, pod); forwarded > 0 {
			t.Errorf("before %q, %d packets go on", next, forwarded)
		}
	})
	if _, err := p.kernel.Apply(refuses(p.state)); err == nil {
		t.Fatal("the route is not refused")
	}
	if forwarded := sends(bridge, node, pod); forwarded > 0 || *steps < 5 {
		t.Errorf("after %d changes and one that was refused, %d packets go on", *steps, forwarded)
	}
	settings := 0
	p.kernel.steps(func(next string) {
		if forwarded := sends(bridge, node, pod); forwarded > 0 && settings == 0 {
			t.Errorf("before %q, %d packets go on", next, forwarded)
		}
		if strings.HasPrefix(next, "change setting ") {
			settings++
		}
	})
	apply(t, p.kernel, p.state)
	p.kernel.stop = nil
	if forwarded := sends(pod); forwarded != 1 {
		t.Errorf("in the end, of one packet to a pod %d go on", forwarded)
	}
	if forwarded := sends(node); forwarded != 0 {
		t.Errorf("in the end, of one packet to a node %d go on", forwarded)
	}
}
