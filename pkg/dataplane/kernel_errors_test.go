package dataplane_test

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

const (
	// closedPort is one where nobody listens, echoPort one where what comes is sent back.
	closedPort, echoPort = 81, 7
)

// probe is a socket that is connected, so that it is told of errors.
type probe struct {
	trial dataplane.Trial
	conn  *net.UDPConn
}

// probes opens sockets for those trials of UDP that arrive, and meet a condition.
func (l *lab) probes(t *testing.T, port uint16, condition func(dataplane.Trip) bool) []probe {
	t.Helper()
	var all []probe
	for _, trial := range l.Trials {
		trip := dataplane.Walk(l.World, trial.From, trial.Packet)
		if trial.Packet.Protocol != dataplane.UDP || trial.Packet.Inner != nil || trial.Forged || len(predicted(trial.Packet, trial.From, trip).arrivals) == 0 || !condition(trip) {
			continue
		}
		var conn net.Conn
		err := l.in(trial.From, func() (err error) {
			dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
				return raw.Control(func(fd uintptr) {
					_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
				})
			}}
			conn, err = dialer.DialContext(t.Context(), "udp4", netip.AddrPortFrom(trial.Packet.Destination, port).String())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		all = append(all, probe{trial, conn.(*net.UDPConn)})
	}
	return all
}

// talk sends a datagram again and again until it is answered or refused, as is said, or time is over; and returns the last error.
func (p probe) talk(size int, until error) (err error) {
	answer := make([]byte, 2000)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if _, err = p.conn.Write(make([]byte, size)); err == nil {
			_ = p.conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			var n int
			if n, err = p.conn.Read(answer); err == nil && n != size {
				err = errors.New("the answer is of another size")
			}
		}
		if errors.Is(err, until) {
			return err
		}
	}
	return err
}

func throughTunnel(trip dataplane.Trip) bool {
	return slices.ContainsFunc(trip.There, func(h dataplane.Hop) bool { return h.In == dataplane.TunnelDevice })
}

func answeredThroughTunnel(trip dataplane.Trip) bool {
	_, answered := dataplane.Arrived(trip.Back)
	return answered && throughTunnel(trip)
}

// Whoever sends to where nobody listens is told, in words that it knows its own packet by: each gateway on the way translates what the
// error quotes.
func TestTheKernelTellsOfErrors(t *testing.T) {
	for _, world := range dataplane.Labs(t)[:4] {
		t.Run(world.Name, func(t *testing.T) {
			l := build(t, world)
			defer l.close()
			var damaged atomic.Int64
			for _, place := range l.places() {
				if err := l.in(place, func() error { return hearICMP(t, func(packet []byte) { damaged.Add(damage(packet)) }) }); err != nil {
					t.Fatal(err)
				}
			}
			all := l.probes(t, closedPort, throughTunnel)
			told := slices.IndexFunc(all, func(p probe) bool { return l.Told(p.trial) })
			if told < 0 {
				t.Fatal("nobody is told of anything")
			}
			for _, p := range all {
				if l.Told(p.trial) {
					if err := p.talk(10, unix.ECONNREFUSED); !errors.Is(err, unix.ECONNREFUSED) {
						t.Fatalf("%s is not told that %s is refused: %v", p.trial.From, p.trial.Packet, err)
					}
					continue
				}
				_, _ = p.conn.Write(make([]byte, 10))
				// What is told to another one meanwhile would have been told to this one.
				_ = all[told].talk(10, unix.ECONNREFUSED)
				if _, err := p.conn.Write(make([]byte, 10)); errors.Is(err, unix.ECONNREFUSED) {
					t.Errorf("%s is told that %s is refused", p.trial.From, p.trial.Packet)
				}
			}
			if n := damaged.Load(); n > 0 {
				t.Errorf("%d errors quote a header that is damaged", n)
			}
		})
	}
}

// damage is 1 if a packet is an error that quotes a header of another length than what was sent, or whose checksum is wrong. Linux does not care,
// others may.
func damage(packet []byte) int64 {
	if packet[20] != 3 || len(packet) < 48 {
		return 0
	}
	quoted := packet[28:48]
	if binary.BigEndian.Uint16(quoted[2:]) == 28+10 && checksum(quoted) == 0xffff {
		return 0
	}
	return 1
}

// A packet of the tunnel's full MTU arrives, and its answer. Of one that is larger by a byte the sender is told, by its own node.
func TestTheKernelTellsOfPacketsThatAreTooLong(t *testing.T) {
	const headers = 28
	for _, world := range dataplane.Labs(t)[:4] {
		t.Run(world.Name, func(t *testing.T) {
			l := build(t, world)
			defer l.close()
			for _, place := range l.places() {
				if err := l.in(place, func() error { return echo(t) }); err != nil {
					t.Fatal(err)
				}
			}
			all := l.probes(t, echoPort, answeredThroughTunnel)
			for i, p := range all {
				if i%(1+len(all)/8) > 0 {
					continue // It would take long, and be the same.
				}
				if err := p.talk(dataplane.LabTunnelMTU-headers, nil); err != nil {
					t.Fatalf("%s sends %s at full length: %v", p.trial.From, p.trial.Packet, err)
				}
				if err := p.talk(dataplane.LabTunnelMTU-headers+1, unix.EMSGSIZE); !errors.Is(err, unix.EMSGSIZE) {
					t.Fatalf("%s is not told that %s is too long: %v", p.trial.From, p.trial.Packet, err)
				}
			}
			if len(all) == 0 {
				t.Error("nothing arrives")
			}
		})
	}
}

// echo sends back what comes.
func echo(t *testing.T) error {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: echoPort})
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		data := make([]byte, 2000)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(data)
			if err != nil {
				return
			}
			_, _ = conn.WriteToUDPAddrPort(data[:n], from)
		}
	}()
	return nil
}
