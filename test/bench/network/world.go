package main

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strings"

	"liqo.io/liqo/pkg/netlink"
)

// Names of the two clusters of a world. Connections go from the first to the second, whose gateway is the server.
const (
	here  = "here"
	there = "there"
)

// Sizes of packets, in bytes: of the machines' network, and of the tunnel.
const (
	mtu       = 1500
	tunnelMTU = 1440
)

// tunnelPort is where the server's gateway listens, nodePort the port of its node that leads to it.
const (
	tunnelPort = 51840
	nodePort   = 30840
	overlay    = 6091
)

// cluster has two nodes: the gateway is a pod of the first one, the pod that connects or is connected to is on the second one.
type cluster struct {
	name                      string
	first, second, pod, gate  *space
	pods                      netip.Prefix // of the cluster
	podAddress, gateAddress   netip.Addr
	firstAddress, nextAddress netip.Addr
}

// world is two clusters whose nodes hear each other.
type world struct {
	name        string
	here, there *cluster
	// middle is what connects the nodes. As all namespaces, it ends when nobody refers to it any more.
	middle *space
}

func (w *world) clusters() []*cluster { return []*cluster{w.here, w.there} }

func key(world, cluster string) netlink.PrivateKey { return sha256.Sum256([]byte(world + cluster)) }

// clusterOf says which addresses a cluster of a world has: in the bare one each has its own ranges, otherwise both have the same.
func clusterOf(world, name string) *cluster {
	number := map[string]int{here: 1, there: 2}[name]
	prefix := "10.244"
	if world == bare {
		prefix = fmt.Sprintf("10.%d", number)
	}
	address := func(format string, args ...any) netip.Addr { return netip.MustParseAddr(fmt.Sprintf(format, args...)) }
	return &cluster{
		name: name, pods: netip.MustParsePrefix(prefix + ".0.0/16"), podAddress: address("%s.2.2", prefix), gateAddress: address("%s.1.200", prefix),
		firstAddress: address("172.31.%d.1", number), nextAddress: address("172.31.%d.2", number),
	}
}

// build makes a world: namespaces, and what a CNI and kube-proxy have in them.
func build(name string) (*world, error) {
	w := &world{name: name, here: clusterOf(name, here), there: clusterOf(name, there)}
	middle, err := newSpace()
	if err != nil {
		return nil, err
	}
	w.middle = middle
	if err := middle.run("ip link add middle type bridge\nip link set middle up\n"); err != nil {
		return nil, err
	}
	for _, c := range w.clusters() {
		for _, s := range []**space{&c.first, &c.second, &c.pod, &c.gate} {
			if *s, err = newSpace(); err != nil {
				return nil, err
			}
		}
		if err := c.wire(middle); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// wire connects the namespaces of a cluster. Nodes track connections in all worlds, the bare one included, as kube-proxy has all nodes do: so the
// ratio to the bare way says what Liqo adds.
func (c *cluster) wire(middle *space) error {
	port := func(n int) string { return fmt.Sprintf("port%s%d", c.name, n) }
	var script strings.Builder
	for i, node := range []*space{c.first, c.second} {
		fmt.Fprintf(&script, "ip link add %s type veth peer name eth0 netns %s\nip link set %[1]s master middle up\n", port(i), node.path())
	}
	if err := middle.run(script.String()); err != nil {
		return err
	}
	for _, node := range []struct {
		at, pod             *space
		own, other, address netip.Addr
		others              int
	}{{c.first, c.gate, c.firstAddress, c.nextAddress, c.gateAddress, 2}, {c.second, c.pod, c.nextAddress, c.firstAddress, c.podAddress, 1}} {
		range4 := node.address.As4()
		rest := netip.PrefixFrom(netip.AddrFrom4([4]byte{range4[0], range4[1], byte(node.others), 0}), 24)
		if err := node.at.run(fmt.Sprintf(`echo 1 > /proc/sys/net/ipv4/ip_forward
			ip link set eth0 up
			ip addr add %[1]s/16 dev eth0
			ip route add default dev eth0
			ip link add veth0 type veth peer name eth0 netns %[2]s
			ip link set veth0 up
			echo 1 > /proc/sys/net/ipv4/conf/veth0/proxy_arp
			echo 0 > /proc/sys/net/ipv4/neigh/veth0/proxy_delay
			ip route add %[3]s dev veth0
			ip route add %[4]s via %[5]s
			nft -f - <<'END'
table ip cluster {
	chain prerouting { type nat hook prerouting priority dstnat; ip daddr %[1]s udp dport %[6]d dnat to %[3]s:%[7]d; }
	chain forward { type filter hook forward priority filter; ct state invalid drop; ct state established,related accept; }
	chain postrouting { type nat hook postrouting priority srcnat; oifname "eth0" ip saddr %[8]s ip daddr != { 10.0.0.0/8, %[5]s } masquerade; }
}
END
`, node.own, node.pod.path(), node.address, rest, node.other, nodePort, tunnelPort, c.pods)); err != nil {
			return err
		}
		if err := node.pod.run(fmt.Sprintf("ip link set eth0 up\nip addr add %s/32 dev eth0\nip route add default via 169.254.1.1 dev eth0 onlink\n", node.address)); err != nil {
			return err
		}
	}
	return nil
}
