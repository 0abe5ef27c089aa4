package gateway

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// echoPort is that of both ends. Both ask from it, so that each one's questions open the way for the other's: a gateway takes what belongs to
// something that it has begun itself.
const echoPort = 12345

// answer is what came back.
type answer struct {
	number uint64
	at     time.Time
}

// echo asks the other end, and answers it.
type echo struct {
	here, there netip.AddrPort
	answers     chan answer
	// pace bounds how often the other end is answered.
	pace *rate.Limiter

	mu   sync.Mutex
	conn *net.UDPConn
}

func newEcho(here, there netip.Addr) *echo {
	return &echo{
		here: netip.AddrPortFrom(here, echoPort), there: netip.AddrPortFrom(there, echoPort),
		answers: make(chan answer, 16), pace: rate.NewLimiter(20, 20),
	}
}

// ask sends a question. It fails as long as there is no tunnel.
func (e *echo) ask(ctx context.Context, number uint64, now time.Time) error {
	conn, err := e.open(ctx)
	if err != nil {
		return err
	}
	_, err = conn.WriteToUDPAddrPort(message{question, number, now.UnixNano()}.bytes(), e.there)
	return err
}

// open opens the socket, if it is not open.
func (e *echo) open(ctx context.Context) (*net.UDPConn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conn != nil {
		return e.conn, nil
	}
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(e.here))
	if err != nil {
		return nil, err
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

// listen takes what comes until the socket is closed.
func (e *echo) listen(ctx context.Context, conn *net.UDPConn) {
	buffer := make([]byte, 2*messageSize)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		got, ok := parse(buffer[:n])
		if from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port()); !ok || from != e.there {
			continue
		}
		if got.kind == question {
			if e.pace.Allow() {
				got.kind = reply
				// What cannot be sent is a lost answer.
				_, _ = conn.WriteToUDPAddrPort(got.bytes(), e.there)
			}
			continue
		}
		select {
		case e.answers <- answer{got.number, time.Now()}:
		case <-ctx.Done():
			return
		default: // The other end says more than it was asked.
		}
	}
}
