package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/netlink"
)

// What is compared, by the names of their worlds.
const (
	// bare is WireGuard between the gateways, on the same way from pod to pod: plain routes, no overlay, no translation, no firewall of ours.
	bare = "bare"
	// liqo is what the agents make, with equal ranges at both ends: both translate.
	liqo = "liqo"
	// large is the same with many peers, nodes and pods.
	large = "large"
)

// scale is how much the large clusters have besides the way that is measured.
type scale struct{ peers, nodes, pods int }

// Roles of the namespaces that have a State.
const (
	firstNode  = "first"
	secondNode = "second"
	gateway    = "gateway"
)

// seen is how a cluster sees the other one, in the worlds where both have the same ranges.
var seen = map[string]dataplane.Range{
	here:  {Own: netip.MustParsePrefix("10.244.0.0/16"), Seen: netip.MustParsePrefix("10.61.0.0/16")},
	there: {Own: netip.MustParsePrefix("10.244.0.0/16"), Seen: netip.MustParsePrefix("10.62.0.0/16")},
}

// target is the address under which the connecting pod reaches the other one.
func (w *world) target() netip.AddrPort {
	address := w.there.podAddress
	if w.name != bare {
		raw, prefix := address.As4(), seen[here].Seen.Addr().As4()
		address = netip.AddrFrom4([4]byte{prefix[0], prefix[1], raw[2], raw[3]})
	}
	return netip.AddrPortFrom(address, trafficPort)
}

// peer are the keys, ports and endpoint of a gateway.
type tunnel struct {
	own, other netlink.PrivateKey
	port       uint16
	endpoint   netip.AddrPort
}

func tunnelOf(world, cluster string) tunnel {
	if cluster == there {
		return tunnel{own: key(world, there), other: key(world, here), port: tunnelPort}
	}
	return tunnel{own: key(world, here), other: key(world, there), endpoint: netip.AddrPortFrom(clusterOf(world, there).firstAddress, nodePort)}
}

// bareState is a tunnel and nothing else.
func bareState(cluster string) dataplane.State {
	t := tunnelOf(bare, cluster)
	own, other := dataplane.TunnelEnds(cluster == there)
	far := map[string]string{here: there, there: here}[cluster]
	return dataplane.State{
		Links: []dataplane.Link{{
			Name: dataplane.TunnelDevice, Kind: dataplane.WireGuard, MTU: tunnelMTU, Addresses: []netip.Prefix{netip.PrefixFrom(own, 30)},
			Port: t.port, Key: t.own.Public(),
		}},
		Peers: []dataplane.Peer{{
			Device: dataplane.TunnelDevice, Key: t.other.Public(), Endpoint: t.endpoint, Keepalive: 25,
			Allowed: []netip.Prefix{clusterOf(bare, far).pods, netip.PrefixFrom(other, 32)},
		}},
		Devices: []dataplane.Setting{{Device: dataplane.TunnelDevice, Name: "forwarding", Value: 1}},
	}
}

// bareRoutes lead packets through the bare tunnel.
func (w *world) bareRoutes() error {
	for i, c := range w.clusters() {
		far := w.clusters()[1-i]
		for _, route := range []struct {
			at   *space
			text string
		}{
			{c.pod, fmt.Sprintf("%s via 169.254.1.1 dev eth0 onlink mtu %d", far.pods, tunnelMTU)},
			{c.second, fmt.Sprintf("%s via %s mtu %d", far.pods, c.firstAddress, tunnelMTU)},
			{c.first, fmt.Sprintf("%s via %s dev veth0 onlink mtu %d", far.pods, c.gateAddress, tunnelMTU)},
			{c.gate, fmt.Sprintf("%s dev %s", far.pods, dataplane.TunnelDevice)},
		} {
			if err := route.at.run("ip route add " + route.text + "\necho 1 > /proc/sys/net/ipv4/ip_forward\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// nodes of a cluster: the two of the way, and those that a large cluster has besides.
func (c *cluster) nodes(s scale) []dataplane.InternalNode {
	number := c.firstAddress.As4()[2]
	nodes := []dataplane.InternalNode{
		{VTEP: c.firstAddress, External: netip.MustParseAddr("10.70.255.254"), Pods: []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24")}},
		{VTEP: c.nextAddress, External: netip.MustParseAddr("10.70.255.253"), Pods: []netip.Prefix{netip.MustParsePrefix("10.244.2.0/24")}},
	}
	for i := range s.nodes {
		node := dataplane.InternalNode{VTEP: netip.AddrFrom4([4]byte{172, 31, number + 10, byte(i + 1)}), External: netip.AddrFrom4([4]byte{10, 70, 254, byte(i + 1)})}
		for p := range s.pods {
			node.Pods = append(node.Pods, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(3 + i), byte(p + 1)}), 32))
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func (c *cluster) fabrics(s scale) []dataplane.InternalFabric {
	fabrics := []dataplane.InternalFabric{{Gateway: c.gateAddress, Remote: []netip.Prefix{seen[c.name].Seen}, MTU: tunnelMTU}}
	for i := range max(0, s.peers-1) {
		at := byte(i + 1)
		fabrics = append(fabrics, dataplane.InternalFabric{
			Gateway: netip.AddrFrom4([4]byte{10, 244, 2, at}), MTU: tunnelMTU,
			Remote: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{11, at, 0, 0}), 16), netip.PrefixFrom(netip.AddrFrom4([4]byte{12, at, 0, 0}), 16)},
		})
	}
	return fabrics
}

// state is what a namespace of a world has from its agent.
func state(world string, c *cluster, role string, s scale) (dataplane.State, []dataplane.Problem) {
	nodes := c.nodes(s)
	switch role {
	case firstNode, secondNode:
		self := nodes[0]
		if role == secondNode {
			self = nodes[1]
		}
		return dataplane.Node(dataplane.NodeInput{Self: self, Fabrics: c.fabrics(s), MTU: mtu, Port: overlay})
	}
	t := tunnelOf(world, c.name)
	return dataplane.Gateway(dataplane.GatewayInput{
		Address: c.gateAddress, External: netip.MustParseAddr("10.70.255.252"), Server: c.name == there,
		Key: t.own.Public(), PeerKey: t.other.Public(), Endpoint: t.endpoint, ListenPort: t.port,
		Peer: []dataplane.Range{seen[c.name]}, Reach: []netip.Prefix{c.pods}, Nodes: nodes, Host: c.firstAddress, MTU: mtu, TunnelMTU: tunnelMTU, Port: overlay,
	})
}

// String names a scale as scaleOf reads it.
func (s scale) String() string { return fmt.Sprintf("%d,%d,%d", s.peers, s.nodes, s.pods) }

func scaleOf(text string) (s scale, err error) {
	for i, part := range strings.Split(text, ",") {
		if *[]*int{&s.peers, &s.nodes, &s.pods}[i], err = strconv.Atoi(part); err != nil {
			return s, err
		}
	}
	return s, nil
}

// hold has the gateway of a world in the namespace that it runs in, as the gateway's agent does: its process runs WireGuard.
func hold(ctx context.Context, place, size string) error {
	// As the agents.
	debug.SetGCPercent(50)
	worldName, name, _ := strings.Cut(place, "/")
	s, err := scaleOf(size)
	if err != nil {
		return err
	}
	wanted := bareState(name)
	if worldName != bare {
		var problems []dataplane.Problem
		if wanted, problems = state(worldName, clusterOf(worldName, name), gateway, s); len(problems) > 0 {
			return fmt.Errorf("what is wanted has problems: %v", problems)
		}
	}
	kernel, err := netlink.Open("", tunnelOf(worldName, name).own)
	if err != nil {
		return err
	}
	defer func() { _ = kernel.Close() }()
	states, placed := make(chan dataplane.State, 1), false
	states <- wanted
	return kernel.Keep(ctx, states, func(r netlink.Report) {
		switch {
		case r.Err != nil:
			fmt.Println(r.Err)
		case !placed:
			placed = true
			fmt.Println(ready)
		}
	})
}

// inhabit puts what the agents make into a world. Gateways are processes, as in clusters.
func (w *world) inhabit(ctx context.Context, s scale) (gates []*child, err error) {
	for _, c := range w.clusters() {
		if w.name != bare {
			for role, at := range map[string]*space{firstNode: c.first, secondNode: c.second} {
				wanted, problems := state(w.name, c, role, s)
				kernel, err := netlink.Open(at.path())
				if err != nil {
					return nil, err
				}
				_, err = kernel.Apply(wanted)
				if err := cmp.Or(err, kernel.Close()); err != nil || len(problems) > 0 {
					return nil, fmt.Errorf("node %s: %w, %v", role, err, problems)
				}
			}
		}
		gate, err := c.gate.again(ctx, roleHold, w.name+"/"+c.name, s.String())
		if err != nil {
			return nil, err
		}
		gates = append(gates, gate)
	}
	if w.name == bare {
		return gates, w.bareRoutes()
	}
	return gates, nil
}
