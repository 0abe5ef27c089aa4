// Package port finds ports of loopback for processes that are started again.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	// lowest and count are the ports to choose from. They are none of those that Linux gives outgoing connections by default (32768 and
	// above): one of these could take the port while its process restarts.
	lowest, count = 20000, 10000
	tries         = 100
)

// Listen listens at a port of loopback that nobody listened at. Who closes the listener may give the port to a process.
func Listen() (net.Listener, error) {
	var err error
	for range tries {
		var listener net.Listener
		if listener, err = At(lowest + rand.IntN(count)); err == nil {
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
