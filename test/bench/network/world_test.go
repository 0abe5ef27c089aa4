package main

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// A bare way whose nodes track no connections would make Liqo look dearer than it is: on real nodes kube-proxy has all connections tracked.
func TestNodesOfTheBareWayTrackConnections(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	w, err := build(bare)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range w.clusters() {
		if err := c.pod.in(func() error { return greet(c.gateAddress) }); err != nil {
			t.Fatal(err)
		}
		for name, node := range map[string]*space{firstNode: c.first, secondNode: c.second} {
			var tracked []byte
			err := node.in(func() (err error) {
				tracked, err = os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_count")
				return err
			})
			if err != nil || strings.TrimSpace(string(tracked)) == "0" {
				t.Errorf("node %s of cluster %s tracks %q connections, %v", name, c.name, tracked, err)
			}
		}
	}
}

// greet opens a connection to a port where nobody is, and has it refused.
func greet(address netip.Addr) error {
	conn, err := net.Dial("udp4", netip.AddrPortFrom(address, trafficPort).String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{requests}); err != nil {
		return err
	}
	_, _ = conn.Read(make([]byte, 1))
	return nil
}
