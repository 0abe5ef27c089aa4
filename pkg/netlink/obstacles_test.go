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
	} {
		foreign(t, file, step.command)
		got, err := Obstacles(k)
		if diff := cmp.Diff(step.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", step.what, err, diff)
		}
	}
}
