package dataplane_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// arrival is where a packet arrived, and the addresses that it had there.
type arrival struct {
	place               dataplane.Place
	source, destination netip.Addr
}

func (a arrival) String() string {
	return fmt.Sprintf("%s, from %s to %s", a.place, a.source, a.destination)
}

// outcome is what became of a trial: nothing, an arrival, an arrival and an answer from the address that was asked.
type outcome struct {
	arrivals []arrival
	answered bool
	// segments are, of a connection of TCP, how much either end sends at once at most, in bytes: the one that was asked first.
	segments [2]int
}

// is tells whether two outcomes are the same.
func (o outcome) is(other outcome) bool {
	return o.answered == other.answered && o.segments == other.segments && slices.Equal(o.arrivals, other.arrivals)
}

func (o outcome) String() string {
	return fmt.Sprintf("%v, answered: %t, segments: %d", o.arrivals, o.answered, o.segments)
}

// witness notes what happens in a lab.
type witness struct {
	lab *lab
	sync.Mutex
	// seen is what became of each trial, by its number.
	seen map[int]*outcome

	// want is what should become of each trial, trips why; send sends it.
	want  []outcome
	trips []dataplane.Trip
	send  []func() error
}

func (w *witness) note(trial int, what func(*outcome)) {
	w.Lock()
	defer w.Unlock()
	if w.seen[trial] == nil {
		w.seen[trial] = &outcome{}
	}
	what(w.seen[trial])
}

func (w *witness) arrived(trial int, a arrival) {
	w.note(trial, func(o *outcome) {
		if !slices.Contains(o.arrivals, a) {
			o.arrivals = append(o.arrivals, a)
		}
	})
}

func (w *witness) outcome(trial int) outcome {
	w.Lock()
	defer w.Unlock()
	if seen := w.seen[trial]; seen != nil {
		return outcome{slices.Clone(seen.arrivals), seen.answered, seen.segments}
	}
	return outcome{}
}

// predicted is what Walk says that becomes of a trial. Of TCP it is only seen whether both ends agreed.
func predicted(p dataplane.Packet, from dataplane.Place, trip dataplane.Trip) outcome {
	there, ok := dataplane.Arrived(trip.There)
	if !ok {
		return outcome{}
	}
	back, again := dataplane.Arrived(trip.Back)
	answered := again && back.Place == from && back.After.Source == p.Destination && back.After.SourcePort == p.DestinationPort
	if p.Protocol == dataplane.TCP && !answered {
		return outcome{}
	}
	o := outcome{[]arrival{{there.Place, there.After.Source, there.After.Destination}}, answered, [2]int{}}
	if p.Protocol == dataplane.TCP && there.Place != from {
		o.segments = [2]int{there.After.Segment - timestamps, back.After.Segment - timestamps}
	}
	return o
}

// timestamps take a part of each segment, in bytes.
const timestamps = 12

// The kernel does with packets what Walk says, in the same worlds: to where they arrive, the addresses that are seen there, and the answer. So
// what the properties prove of Walk is true of the kernel.
func TestTheKernelAgreesWithWalk(t *testing.T) {
	for _, world := range dataplane.Labs(t) {
		t.Run(world.Name, func(t *testing.T) {
			l := build(t, world)
			defer l.close()
			w := &witness{lab: l, seen: map[int]*outcome{}}
			for _, place := range l.places() {
				w.serve(t, place)
			}
			w.try(t)
		})
	}
}

// try sends everything, waits until all that should arrive has, and compares. It does so twice: what arrived although it should not, and late, is
// seen by the end of the second time.
func (w *witness) try(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	arriving := 0
	for i, trial := range w.lab.Trials {
		trip := dataplane.Walk(w.lab.World, trial.From, trial.Packet)
		w.expect(trial, trip)
		if len(w.want[i].arrivals) > 0 {
			arriving++
		}
		send, err := w.sender(ctx, i, trial)
		if err != nil {
			t.Fatal(err)
		}
		w.send = append(w.send, send)
	}
	intruding := 0
	for i, trial := range w.lab.Intruders {
		w.expect(trial, dataplane.Trip{There: w.lab.Intrude(trial)})
		if len(w.want[len(w.lab.Trials)+i].arrivals) > 0 {
			intruding++
		}
		packet := udp(trial.Packet, strconv.Itoa(len(w.lab.Trials)+i))
		w.send = append(w.send, func() error {
			_, err := w.lab.tunnels[trial.From].Write(packet)
			return err
		})
	}
	for range 2 {
		w.sendAll(ctx)
		for i, trial := range append(slices.Clone(w.lab.Trials), w.lab.Intruders...) {
			if got := w.outcome(i); !got.is(w.want[i]) {
				t.Errorf("%s sends %s\nWalk: %s\nkernel: %s\n%s", trial.From, trial.Packet, w.want[i], got, w.trips[i])
			}
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d trials, of which %d arrive; %d intruders, of which %d arrive", len(w.lab.Trials), arriving, len(w.lab.Intruders), intruding)
	if arriving == 0 || intruding == 0 {
		t.Error("nothing arrives")
	}
}

func (w *witness) expect(trial dataplane.Trial, trip dataplane.Trip) {
	w.want = append(w.want, predicted(trial.Packet, trial.From, trip))
	w.trips = append(w.trips, trip)
}

// sendAll sends everything once, and until it arrives what should.
func (w *witness) sendAll(ctx context.Context) {
	w.Lock()
	clear(w.seen)
	w.Unlock()
	for i := range w.send {
		_ = w.send[i]() // That there is no way is an answer too.
	}
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); {
		pause(ctx, 300*time.Millisecond)
		missing := 0
		for i, want := range w.want {
			if !w.outcome(i).is(want) {
				missing++
				_ = w.send[i]()
			}
		}
		if missing == 0 {
			return
		}
	}
}

// pause is the time between two rounds of sending what may have been lost.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serve has a place answer what arrives, and note it.
func (w *witness) serve(t *testing.T, place dataplane.Place) {
	t.Helper()
	err := w.lab.in(place, func() error {
		if err := w.serveUDP(t, place); err != nil {
			return err
		}
		if err := w.serveICMP(t, place); err != nil {
			return err
		}
		for _, port := range []int{dataplane.AskedPort, 80, 443, 6443, 8080, 30080} {
			listener, err := net.ListenTCP("tcp4", &net.TCPAddr{Port: port})
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = listener.Close() })
			go serveTCP(listener, place)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// serveTCP tells each client what it looks like.
func serveTCP(listener *net.TCPListener, place dataplane.Place) {
	for {
		conn, err := listener.AcceptTCP()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = conn.Close() }()
			remote, local := conn.RemoteAddr().(*net.TCPAddr), conn.LocalAddr().(*net.TCPAddr)
			fmt.Fprintf(conn, "%s|%s|%s|%d\n", place, remote.IP, local.IP, segment(conn))
		}()
	}
}

// segment is how much one end of a connection sends at once at most, in bytes.
func segment(conn syscall.Conn) (size int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { size, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG) })
	return size
}

func (w *witness) serveUDP(t *testing.T, place dataplane.Place) error {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: 80})
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if err := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1) }); err != nil {
		return err
	}
	go func() {
		data, control := make([]byte, 2000), make([]byte, 200)
		for {
			n, m, _, from, err := conn.ReadMsgUDPAddrPort(data, control)
			if err != nil {
				return
			}
			messages, err := unix.ParseSocketControlMessage(control[:m])
			trial, malformed := strconv.Atoi(string(data[:n]))
			if err != nil || len(messages) == 0 || malformed != nil {
				continue
			}
			// The destination is the last of three numbers of four bytes; as the second it is the source of the answer.
			to := messages[0].Data[8:12]
			w.arrived(trial, arrival{place, from.Addr(), netip.AddrFrom4([4]byte(to))})
			answer := unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: [4]byte(to)})
			_, _, _ = conn.WriteMsgUDPAddrPort(data[:n], answer, from)
		}
	}()
	return nil
}

// serveICMP notes the echoes that arrive; the kernel answers them. It notes the answers too.
func (w *witness) serveICMP(t *testing.T, place dataplane.Place) error {
	return hearICMP(t, func(packet []byte) {
		trial, malformed := strconv.Atoi(strings.TrimRight(string(packet[28:]), " "))
		if malformed != nil {
			return
		}
		source, destination := netip.AddrFrom4([4]byte(packet[12:16])), netip.AddrFrom4([4]byte(packet[16:20]))
		switch packet[20] {
		case 8:
			w.arrived(trial, arrival{place, source, destination})
		case 0:
			asked := w.lab.Trials[trial]
			if asked.From == place && asked.Packet.Destination == source {
				w.note(trial, func(o *outcome) { o.answered = true })
			}
		}
	})
}

// hearICMP calls a function with each packet of ICMP that arrives, its header before it.
func hearICMP(t *testing.T, hear func(packet []byte)) error {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_ICMP)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "icmp")
	t.Cleanup(func() { _ = file.Close() })
	go func() {
		packet := make([]byte, 2000)
		for {
			n, err := file.Read(packet)
			if err != nil {
				return
			}
			if n >= 28 {
				hear(packet[:n])
			}
		}
	}()
	return nil
}

// sender returns what sends a trial.
func (w *witness) sender(ctx context.Context, i int, trial dataplane.Trial) (send func() error, err error) {
	err = w.lab.in(trial.From, func() error {
		switch trial.Packet.Protocol {
		case dataplane.UDP:
			if trial.Forged {
				send, err = sendForged(ctx, i, trial.Packet)
				break
			}
			send, err = w.sendUDP(ctx, i, trial.Packet)
		case dataplane.ICMP:
			send, err = w.sendICMP(ctx, i, trial.Packet)
		default:
			send = w.sendTCP(ctx, i, trial)
		}
		return err
	})
	return send, err
}

func (w *witness) sendUDP(ctx context.Context, i int, p dataplane.Packet) (func() error, error) {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	to := netip.AddrPortFrom(p.Destination, p.DestinationPort)
	go func() {
		data := make([]byte, 100)
		for {
			_, from, err := conn.ReadFromUDPAddrPort(data)
			if err != nil && ctx.Err() != nil {
				return
			}
			if err == nil && from == to {
				w.note(i, func(o *outcome) { o.answered = true })
			}
		}
	}()
	payload := []byte(strconv.Itoa(i))
	if p.Inner != nil {
		payload = vxlan(p, udp(*p.Inner, strconv.Itoa(i)))
	}
	return func() error {
		_, err := conn.WriteToUDPAddrPort(payload, to)
		return err
	}, nil
}

// sendForged sends a packet whose header says what it likes.
func sendForged(ctx context.Context, i int, p dataplane.Packet) (func() error, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = unix.Close(fd) })
	packet := udp(p, strconv.Itoa(i))
	return func() error {
		return unix.Sendto(fd, packet, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: p.Destination.As4()})
	}, nil
}

func (w *witness) sendICMP(ctx context.Context, i int, p dataplane.Packet) (func() error, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = unix.Close(fd) })
	echo := binary.BigEndian.AppendUint16([]byte{8, 0, 0, 0}, uint16(i)) //nolint:gosec // Up to 65535.
	echo = append(echo, 0, 0)
	echo = append(echo, strconv.Itoa(i)...)
	if len(echo)%2 == 1 {
		echo = append(echo, ' ')
	}
	binary.BigEndian.PutUint16(echo[2:], ^checksum(echo))
	return func() error {
		return unix.Sendto(fd, echo, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: p.Destination.As4()})
	}, nil
}

// sendTCP connects, and reads from the other end how it is seen.
func (w *witness) sendTCP(ctx context.Context, i int, trial dataplane.Trial) func() error {
	var busy sync.Mutex
	return func() error {
		if !busy.TryLock() {
			return nil
		}
		go func() {
			defer busy.Unlock()
			_ = w.lab.in(trial.From, func() error {
				dialer := net.Dialer{Timeout: 3 * time.Second}
				conn, err := dialer.DialContext(ctx, "tcp4", netip.AddrPortFrom(trial.Packet.Destination, trial.Packet.DestinationPort).String())
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }()
				line := make([]byte, 200)
				n, err := conn.Read(line)
				if parts := strings.Split(strings.TrimSpace(string(line[:n])), "|"); err == nil && len(parts) == 4 {
					w.arrived(i, arrival{dataplane.Place(parts[0]), netip.MustParseAddr(parts[1]), netip.MustParseAddr(parts[2])})
					w.note(i, func(o *outcome) {
						o.answered = true
						if parts[0] != string(trial.From) {
							there, _ := strconv.Atoi(parts[3])
							o.segments = [2]int{there, segment(conn.(*net.TCPConn))}
						}
					})
				}
				return err
			})
		}()
		return nil
	}
}
