package netlink

import (
	"fmt"
	"testing"
)

// What a host sends from, and how large its packets may be; what is ours is no part of it.
func TestHostAddresses(t *testing.T) {
	p := places(t)["node"]
	foreign(t, p.namespace, `ip link set lo up; ip link add name eth0 mtu 1400 type veth peer name eth1; ip link set eth0 up; ip addr add 172.31.1.2/24 dev eth0; ip addr add fd00::2/64 dev eth0
		ip addr add 172.31.1.7/24 dev eth0; ip addr add 192.0.2.1/24 dev eth1`)
	apply(t, p.kernel, p.state)
	all, err := p.kernel.HostAddresses()
	want := "[{lo 127.0.0.1 127.0.0.0/8 65536 false} {eth0 172.31.1.2 172.31.1.0/24 1400 true} {eth0 172.31.1.7 172.31.1.0/24 1400 true} {eth1 192.0.2.1 192.0.2.0/24 1500 false}]"
	if text := fmt.Sprint(all); err != nil || text != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}
