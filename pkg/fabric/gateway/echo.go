package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// echoPort is that of both ends. Both ask from it, so that each one's questions open the way for the other's: a gateway takes what belongs to
// something that it has begun itself.
const echoPort = 12345

const (
	// headers are those of IPv4 and UDP around a message, maxMessage is the longest that they leave room for.
	headers    = 28
	maxMessage = 65535 - headers
)

// answer is what came back: a packet of a length.
type answer struct {
	number uint64
	length int
	at     time.Time
}

// echo asks the other end, and answers it.
type echo struct {
	here, there netip.AddrPort
	answers     chan answer
	// announced is what the other end says of clusters that are reached through it. It repeats it, so what nobody takes is lost.
	announced chan []netip.Prefix
	// pace bounds how often the other end is answered.
	pace *rate.Limiter

	mu   sync.Mutex
	conn *net.UDPConn
}

func newEcho(here, there netip.Addr) *echo {
	return &echo{
		here: netip.AddrPortFrom(here, echoPort), there: netip.AddrPortFrom(there, echoPort),
		answers: make(chan answer, 64), announced: make(chan []netip.Prefix, 1), pace: rate.NewLimiter(100, 100),
	}
}

// ask sends a question, and says what is announced. It fails as long as there is no tunnel.
func (e *echo) ask(ctx context.Context, number uint64, now time.Time, announced []netip.Prefix) error {
	conn, err := e.open(ctx)
	if err != nil {
		return err
	}
	_, asked := conn.WriteToUDPAddrPort(message{question, number, now.UnixNano()}.bytes(), e.there)
	_, told := conn.WriteToUDPAddrPort(announce(announced), e.there)
	return errors.Join(asked, told)
}

// probe sends a question in a packet of a size.
func (e *echo) probe(ctx context.Context, number uint64, now time.Time, size int) error {
	conn, err := e.open(ctx)
	if err != nil {
		return err
	}
	raw := message{question, number, now.UnixNano()}.bytes()
	_, err = conn.WriteToUDPAddrPort(append(raw, make([]byte, max(size-headers-len(raw), 0))...), e.there)
	return err
}

// open opens the socket, if it is not open.
func (e *echo) open(ctx context.Context) (*net.UDPConn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn != nil {
		return e.conn, nil
	}
	listen := net.ListenConfig{Control: whole}
	listened, err := listen.ListenPacket(ctx, "udp4", e.here.String())
	if err != nil {
		return nil, err
	}
	conn, ok := listened.(*net.UDPConn)
	if !ok {
		return nil, fmt.Errorf("the socket is a %T", listened)
	}
	e.conn = conn
	closed := context.AfterFunc(ctx, func() { _ = conn.Close() })
	go func() {
		defer closed()
		e.listen(ctx, conn)
		e.mu.Lock()
		defer e.mu.Unlock()
		_ = conn.Close()
		e.conn = nil
	}()
	return conn, nil
}

// whole has the packets of a socket be sent as they are, or not at all: a size counts only if it fits.
func whole(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
	})
	return errors.Join(err, failed)
}

// listen takes what comes until the socket is closed.
func (e *echo) listen(ctx context.Context, conn *net.UDPConn) {
	buffer := make([]byte, maxMessage)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		if from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port()); from != e.there {
			continue
		}
		if ranges, ok := announcement(buffer[:n]); ok {
			select {
			case e.announced <- ranges:
			default:
			}
			continue
		}
		got, ok := parse(buffer[:n])
		if !ok {
			continue
		}
		if got.kind == question {
			if e.pace.Allow() {
				buffer[kindAt] = reply
				// An answer is as long as its question. What cannot be sent is a lost answer.
				_, _ = conn.WriteToUDPAddrPort(buffer[:n], e.there)
			}
			continue
		}
		select {
		case e.answers <- answer{got.number, n + headers, time.Now()}:
		case <-ctx.Done():
			return
		default: // The other end says more than it was asked.
		}
	}
}
