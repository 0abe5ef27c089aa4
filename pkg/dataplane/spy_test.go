package dataplane_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/netlink"
)

// spy sees each packet that carries a mark, wherever in a lab it leaves a place, comes out of the overlay, or arrives.
type spy struct {
	lab *lab
	sync.Mutex
	seen map[string][]string
	next int
}

// mark begins the marks of packets; what follows it tells them apart.
const mark = "hostile-"

func newSpy(t *testing.T, l *lab) *spy {
	t.Helper()
	s := &spy{lab: l, seen: map[string][]string{}}
	for _, place := range l.places() {
		if err := l.in(place, func() error { return s.watch(t, place) }); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// mark is a new one. All have the same length.
func (s *spy) mark() string {
	s.Lock()
	defer s.Unlock()
	s.next++
	return fmt.Sprintf("%s%06d", mark, s.next)
}

func (s *spy) note(packet []byte, where string) {
	for at := bytes.Index(packet, []byte(mark)); at >= 0 && at+len(mark)+6 <= len(packet); at = -1 {
		s.Lock()
		token := string(packet[at : at+len(mark)+6])
		if !slices.Contains(s.seen[token], where) {
			s.seen[token] = append(s.seen[token], where)
		}
		s.Unlock()
	}
}

// sightings are where a mark was seen, in order.
func (s *spy) sightings(token string) []string {
	s.Lock()
	defer s.Unlock()
	return slices.Sorted(slices.Values(s.seen[token]))
}

// watch looks at what passes the devices of a place, and at what its firewall lets in for the place itself.
func (s *spy) watch(t *testing.T, place dataplane.Place) error {
	for _, protocol := range []int{unix.IPPROTO_ICMP, unix.IPPROTO_IPIP, unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
		err := s.hear(t, unix.AF_INET, protocol, func(packet []byte, _ unix.Sockaddr) {
			if !overlays(packet) { // What it carries comes out elsewhere.
				s.note(packet, string(place)+" itself")
			}
		})
		if err != nil {
			return err
		}
	}
	if err := s.hear(t, unix.AF_INET6, unix.IPPROTO_ICMPV6, func(packet []byte, _ unix.Sockaddr) { s.note(packet, string(place)+" itself") }); err != nil {
		return err
	}
	devices, err := net.Interfaces()
	if err != nil {
		return err
	}
	names := map[int]string{}
	for _, d := range devices {
		names[d.Index] = d.Name
	}
	everything := int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL)))
	return s.hear(t, unix.AF_PACKET, everything, func(frame []byte, from unix.Sockaddr) {
		if link, ok := from.(*unix.SockaddrLinklayer); ok {
			if where := passing(names[link.Ifindex], link.Pkttype == unix.PACKET_OUTGOING, frame); where != "" {
				s.note(frame, string(place)+" "+where)
			}
		}
	})
}

// passing says what a frame on a device means; nothing if it means nothing by itself: it comes in, and is not past anything yet.
func passing(device string, leaves bool, frame []byte) string {
	outer := len(frame) > 14 && overlays(frame[14:])
	switch {
	case device == "lo" || outer && strings.HasPrefix(device, "eth"), outer && strings.HasPrefix(device, "veth"):
		return ""
	case leaves:
		return "by " + device
	case device == dataplane.NodeDevice || device == dataplane.GatewayDevice:
		return "unpacks"
	default:
		return ""
	}
}

// overlays tells whether a packet of IP carries another one in VXLAN.
func overlays(packet []byte) bool {
	return len(packet) > 28 && packet[9] == unix.IPPROTO_UDP && binary.BigEndian.Uint16(packet[22:]) == dataplane.DefaultOverlayPort
}

// hear calls a function with all that a raw socket of a place gets.
func (s *spy) hear(t *testing.T, family, protocol int, hear func(packet []byte, from unix.Sockaddr)) error {
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 300_000})
	over := make(chan struct{})
	ended := make(chan struct{})
	t.Cleanup(func() {
		close(over)
		<-ended
		_ = unix.Close(fd)
	})
	go func() {
		defer close(ended)
		packet := make([]byte, 1<<17)
		for {
			n, from, err := unix.Recvfrom(fd, packet, 0)
			select {
			case <-over:
				return
			default:
			}
			if err == nil {
				hear(packet[:n], from)
			}
		}
	}()
	return nil
}

// put sends packets where an attacker has them: into the tunnel of a gateway, onto the overlay's device of one that was taken over, or, without a
// device, from a pod.
func (s *spy) put(place dataplane.Place, device string, packets [][]byte) error {
	if device == dataplane.TunnelDevice {
		for _, packet := range packets {
			_, _ = s.lab.tunnels[place].Write(packet) // What is no packet at all, the kernel does not take.
		}
		return nil
	}
	return s.lab.in(place, func() error {
		family, protocol := unix.AF_INET, unix.IPPROTO_RAW
		to := func(packet []byte) unix.Sockaddr { return &unix.SockaddrInet4{Addr: [4]byte(packet[16:20])} }
		if device != "" {
			link, err := net.InterfaceByName(device)
			if err != nil {
				return err
			}
			family, protocol = unix.AF_PACKET, 0
			to = func([]byte) unix.Sockaddr { return &unix.SockaddrLinklayer{Ifindex: link.Index} }
		}
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(fd) }()
		for _, packet := range packets {
			if err := unix.Sendto(fd, packet, 0, to(packet)); err != nil {
				return err
			}
		}
		return nil
	})
}

// until waits until a mark was seen somewhere, and sends it again and again meanwhile.
func (s *spy) until(t *testing.T, token, where string, send func()) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for !slices.Contains(s.sightings(token), where) {
		if time.Now().After(deadline) {
			t.Fatalf("%q was not seen within 40 s; seen: %q", where, s.sightings(token))
		}
		send()
		pause(t.Context(), 5*time.Millisecond)
	}
}

// count is what a counter of a place says.
func (l *lab) count(t *testing.T, place dataplane.Place, counter string) uint64 {
	t.Helper()
	kernel, err := netlink.Open(path(l.spaces[place]))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kernel.Close() }()
	dropped, err := kernel.Counted()
	if _, ok := dropped[counter]; err != nil || !ok {
		t.Errorf("%s has no counter %s: %v", place, counter, err)
	}
	return dropped[counter]
}

// tell runs a script in a place and returns what it prints.
func (l *lab) tell(t *testing.T, place dataplane.Place, script string) string {
	t.Helper()
	var out bytes.Buffer
	if err := l.output(t, l.spaces[place], script, &out); err != nil {
		t.Fatalf("%s: %v\n%s", place, err, out.String())
	}
	return out.String()
}

// kernelState is all in a place that packets must not change.
func (l *lab) kernelState(t *testing.T, place dataplane.Place) string {
	t.Helper()
	return l.tell(t, place, `ip -4 -o address; ip rule; ip -6 rule; ip -4 route show table all; ip route show cache
		# What the kernel has at each device by itself comes some time after the device.
		ip -6 -o address | grep -v "scope link\|scope host" || true
		ip -6 route show table all | grep -v "fe80::\|ff00::\| ::1 " || true
		for device in cni-liqo liqo liqo-tunnel; do
			[ ! -e /sys/class/net/$device ] || { ip neighbour show dev $device; ip -6 neighbour show dev $device; bridge fdb show dev $device; }
		done
		nft -s list table ip cni 2>/dev/null || true
		nft -s list table ip kube-proxy 2>/dev/null || true`) + l.firewall(t, place)
}

// firewall is what the agents have in the firewall of a place.
func (l *lab) firewall(t *testing.T, place dataplane.Place) string {
	t.Helper()
	kernel, err := netlink.Open(path(l.spaces[place]))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kernel.Close() }()
	read, err := kernel.Read(l.Ours[place])
	if err != nil {
		t.Fatal(err)
	}
	return dataplane.State{Firewall: read.Firewall}.String()
}

// without applies the States of places in which rules that have certain words are missing, and returns what puts them back.
func (l *lab) without(t *testing.T, openings map[dataplane.Place][]string) (restore func()) {
	t.Helper()
	put := func(place dataplane.Place, state dataplane.State) error {
		kernel, err := netlink.Open(path(l.spaces[place]))
		if err != nil {
			return err
		}
		state.Peers = nil
		_, err = kernel.Apply(state)
		return errors.Join(err, kernel.Close())
	}
	for place, words := range openings {
		state := l.Ours[place]
		tables := slices.Clone(state.Firewall)
		for i := range tables {
			tables[i].Chains = slices.Clone(tables[i].Chains)
			for j, chain := range tables[i].Chains {
				tables[i].Chains[j].Rules = slices.DeleteFunc(slices.Clone(chain.Rules), func(r dataplane.ChainRule) bool {
					return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(r.String(), word) })
				})
				if len(tables[i].Chains[j].Rules) == 0 {
					tables[i].Chains[j].Rules = nil
				}
			}
		}
		state.Routes = slices.DeleteFunc(slices.Clone(state.Routes), func(r dataplane.Route) bool { return r.Blackhole && slices.Contains(words, "blackhole") })
		state.Firewall = tables
		if state.String() == l.Ours[place].String() {
			t.Fatalf("%s has no rule with %q", place, words)
		}
		if err := put(place, state); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for place := range openings {
			if err := put(place, l.Ours[place]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// header is a header of IPv4 that says what it likes, before its payload.
type header struct {
	protocol byte
	from, to string
	options  []byte
	id       uint16
	// fragment is the offset in units of 8 bytes, with flags.
	fragment uint16
	ttl      byte
}

const moreFragments, dontFragment = 0x2000, 0x4000

func (h header) packet(payload []byte) []byte {
	raw := make([]byte, 20, 20+len(h.options)+len(payload))
	raw = append(raw, h.options...)
	raw[0], raw[8], raw[9] = 0x40|byte(len(raw)/4), max(h.ttl, 1), h.protocol //nolint:gosec // A header has up to 60 bytes.
	if h.ttl == 0 {
		raw[8] = 64
	}
	binary.BigEndian.PutUint16(raw[2:], uint16(len(raw)+len(payload))) //nolint:gosec // Up to 65535.
	binary.BigEndian.PutUint16(raw[4:], h.id)
	binary.BigEndian.PutUint16(raw[6:], h.fragment)
	copy(raw[12:], netip.MustParseAddr(h.from).AsSlice())
	copy(raw[16:], netip.MustParseAddr(h.to).AsSlice())
	binary.BigEndian.PutUint16(raw[10:], ^checksum(raw))
	return append(raw, payload...)
}

// datagram is the header of UDP without a checksum, and what it carries.
func datagram(from, to uint16, payload string) []byte {
	raw := binary.BigEndian.AppendUint16(nil, from)
	raw = binary.BigEndian.AppendUint16(raw, to)
	raw = binary.BigEndian.AppendUint16(raw, uint16(8+len(payload))) //nolint:gosec // Short.
	return append(append(raw, 0, 0), payload...)
}

// udpPacket is one to port 80.
func udpPacket(from, to, payload string) []byte {
	return header{protocol: unix.IPPROTO_UDP, from: from, to: to}.packet(datagram(1000, 80, payload))
}

// tcpPacket has the flags that are said, and a right checksum: connections are told of no other.
func tcpPacket(from, to string, port uint16, flags byte, payload string) []byte {
	raw := binary.BigEndian.AppendUint16(nil, 80)
	raw = binary.BigEndian.AppendUint16(raw, port)
	raw = append(raw, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, flags, 0xff, 0, 0, 0, 0, 0)
	raw = append(raw, payload...)
	pseudo := slices.Concat(netip.MustParseAddr(from).AsSlice(), netip.MustParseAddr(to).AsSlice(), []byte{0, unix.IPPROTO_TCP})
	pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(raw))) //nolint:gosec // Short.
	binary.BigEndian.PutUint16(raw[16:], ^checksum(even(append(pseudo, raw...))))
	return header{protocol: unix.IPPROTO_TCP, from: from, to: to}.packet(raw)
}

func even(raw []byte) []byte {
	if len(raw)%2 == 1 {
		return append(raw, 0)
	}
	return raw
}

// icmpPacket is one of a type and code, with four bytes of its own and what it quotes.
func icmpPacket(from, to string, kind, code byte, own [4]byte, quoted []byte) []byte {
	raw := append(append([]byte{kind, code, 0, 0}, own[:]...), quoted...)
	binary.BigEndian.PutUint16(raw[2:], ^checksum(even(slices.Clone(raw))))
	return header{protocol: unix.IPPROTO_ICMP, from: from, to: to}.packet(raw)
}

// frame is a packet as it is on a device of Ethernet.
func frame(to dataplane.MAC, kind uint16, packet []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(slices.Clone(to[:]), 2, 0, 0, 0, 0, 1), kind), packet...)
}
