package netlink

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObstaclesOfAHost(t *testing.T) {
	file := namespace(t)
	k := opened(t, file)
	foreign(t, file, `ip link add eth7 type veth peer name eth8
		ip address add 192.0.2.7/24 dev eth7
		ip link set eth7 up
		ip link set eth8 up
		sysctl -q -w net.ipv4.ip_forward=1`)
	for _, step := range []struct {
		what, command string
		want          []string
	}{
		{"a host that forwards", "true", nil},
		{"it does not any more", "sysctl -q -w net.ipv4.ip_forward=0", []string{"net.ipv4.conf.eth7.forwarding is 0"}},
		{"it does again, and a firewall accepts", `sysctl -q -w net.ipv4.ip_forward=1
			nft 'add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy accept; }'`, nil},
		{"the firewall drops what is forwarded", "nft 'chain ip filter FORWARD { policy drop; }'", []string{"chain FORWARD of the firewall's table filter drops what no rule accepts"}},
		{"what comes to the host is another matter", `nft 'delete table ip filter'
			nft 'add table ip filter; add chain ip filter INPUT { type filter hook input priority 0; policy drop; }'`, nil},
		{"a route leads to a peer, and one beside it elsewhere", `ip route add 10.61.0.0/16 dev eth8 table local proto 79; ip route add 10.62.0.0/24 dev eth7`, nil},
		{"one to a part of the peer's range leads elsewhere", "ip route add 10.61.7.0/24 dev eth7", []string{
			"the route to 10.61.7.0/24 in the main table takes packets that are for 10.61.0.0/16 of a peer"}},
		{"so does one that says there is no way", "ip route replace unreachable 10.61.7.0/24", []string{
			"the route to 10.61.7.0/24 in the main table takes packets that are for 10.61.0.0/16 of a peer"}},
		{"with rules of others the peer's comes first", "ip rule add pref 9 fwmark 0x200 lookup 2004", nil},
	} {
		foreign(t, file, step.command)
		got, err := Obstacles(k)
		if diff := cmp.Diff(step.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", step.what, err, diff)
		}
	}
}
