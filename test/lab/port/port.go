// Package port finds ports of loopback for processes that are started again.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

const (
	// lowest and blocks × size are the ports to choose from. They are none of those that Linux gives outgoing connections by default (32768 and
	// above): one of these could take the port while its process restarts.
	lowest, blocks, size = 20000, 20, 500
)

// own is the block of ports of this process. Suites run side by side: what one has chosen, and its process does not listen at yet, would be free to
// another. It is claimed by listening at its first port for as long as this process lives.
var own = sync.OnceValues(func() (*block, error) {
	var err error
	for _, i := range rand.Perm(blocks) {
		first := lowest + i*size
		var claim net.Listener
		if claim, err = At(first); err == nil {
			return &block{claim: claim, first: first, next: rand.IntN(size)}, nil
		}
	}
	return nil, fmt.Errorf("looking for ports that no other process chooses from: %w", err)
})

type block struct {
	claim net.Listener
	first int

	mu   sync.Mutex
	next int
}

// take is a port that was not taken for as long as possible.
func (b *block) take() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	return b.first + 1 + b.next%(size-1)
}

// Listen listens at a port of loopback that nobody listened at. Who closes the listener may give the port to a process.
func Listen() (net.Listener, error) {
	ports, err := own()
	if err != nil {
		return nil, err
	}
	for range size - 1 {
		var listener net.Listener
		if listener, err = At(ports.take()); err == nil {
			return listener, nil
		}
	}
	return nil, fmt.Errorf("looking for a free port: %w", err)
}

// At listens at a port of loopback.
func At(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

// Of is the port of a listener.
func Of(listener net.Listener) int {
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port
}
