package port

import (
	"net"
	"testing"
)

// A port that was given away is not given again at once, although nobody listens at it yet, and none of it is of another process's block.
func TestPortsAreGivenOnce(t *testing.T) {
	given := map[int]bool{}
	for range size / 2 {
		listener, err := Listen()
		if err != nil {
			t.Fatal(err)
		}
		port := Of(listener)
		if given[port] {
			t.Fatalf("port %d is given twice", port)
		}
		given[port] = true
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	ports, err := own()
	if err != nil {
		t.Fatal(err)
	}
	for port := range given {
		if port <= ports.first || port >= ports.first+size {
			t.Errorf("port %d is not in the block of %d", port, ports.first)
		}
	}
	if _, err := net.Listen("tcp", ports.claim.Addr().String()); err == nil {
		t.Error("another process could claim the same block")
	}
}
