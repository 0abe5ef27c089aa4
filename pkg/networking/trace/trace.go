package trace

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	configv1alpha1 "liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/networking/inputs"
)

// Cluster is what a cluster knows of its network.
type Cluster struct {
	// ID of the cluster.
	ID string
	// Nodes are all InternalNodes, IPs all IP resources.
	Nodes []networkingv1beta1.InternalNode
	IPs   []ipamv1alpha1.IP
	// Peerings are those whose networks are connected.
	Peerings []Peering
}

// Peering is what a cluster knows of one peer.
type Peering struct {
	// Peer is its cluster ID.
	Peer string
	// Configuration and Fabric of the peer.
	Configuration networkingv1beta1.Configuration
	Fabric        networkingv1beta1.InternalFabric
	// Node is the one that the gateway runs on; Server tells which end of the tunnel it is.
	Node   string
	Server bool
}

// Question is a packet whose way is asked for.
type Question struct {
	// From is the ID of the cluster that sends it, Source the address of a pod there, or the name of a node.
	From, Source string
	// Destination is its address as the sender knows it.
	Destination netip.Addr
	// Protocol is dataplane.TCP, UDP or ICMP; Port that of the destination.
	Protocol string
	Port     uint16
	// Size of the whole packet in bytes.
	Size int
}

const (
	// wire is the MTU that networks of nodes and pods are taken to have: that of the ways to the peers is what counts.
	wire = 1500
	// client is the port that packets are sent from.
	client = 40000
	// echo is the type of ICMP's question.
	echo = 8
)

// Trace sends a packet, and its answer. It fails if the question or the objects make no sense.
func Trace(clusters []Cluster, q Question) (dataplane.Trip, error) {
	b := builder{clusters: clusters, world: map[dataplane.Place]dataplane.State{}}
	home := b.cluster(q.From)
	if home == nil {
		return dataplane.Trip{}, fmt.Errorf("nothing is known of cluster %s", q.From)
	}
	packet := dataplane.Packet{Protocol: q.Protocol, Destination: q.Destination, Size: q.Size, SourcePort: client, DestinationPort: q.Port}
	if q.Protocol == dataplane.ICMP {
		packet.SourcePort, packet.DestinationPort, packet.Type = client, client, echo
	}
	pods := map[string][]netip.Addr{}
	from := dataplane.Place(q.From + " node " + q.Source)
	if address, err := netip.ParseAddr(q.Source); err == nil {
		if home.nodeOf(address) == nil {
			return dataplane.Trip{}, fmt.Errorf("%s is no pod of cluster %s: it lies in the pod ranges of none of its nodes", address, q.From)
		}
		packet.Source, from = address, podPlace(q.From, address)
		pods[q.From] = append(pods[q.From], address)
	} else if !slices.ContainsFunc(home.Nodes, func(n networkingv1beta1.InternalNode) bool { return n.Name == q.Source }) {
		return dataplane.Trip{}, fmt.Errorf("%q is neither an address nor a node of cluster %s", q.Source, q.From)
	}
	if err := b.receivers(home, q.Destination, pods); err != nil {
		return dataplane.Trip{}, err
	}
	for i := range clusters {
		if err := b.add(&clusters[i], pods[clusters[i].ID]); err != nil {
			return dataplane.Trip{}, fmt.Errorf("cluster %s: %w", clusters[i].ID, err)
		}
	}
	return dataplane.Walk(b.world, from, packet), nil
}

// builder makes the world that packets walk through.
type builder struct {
	clusters []Cluster
	world    map[dataplane.Place]dataplane.State
}

func (b *builder) cluster(id string) *Cluster {
	i := slices.IndexFunc(b.clusters, func(c Cluster) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &b.clusters[i]
}

// receivers puts there what may answer to an address that a cluster sends to: a pod or an IP resource of the peer in whose range it lies.
func (b *builder) receivers(home *Cluster, destination netip.Addr, pods map[string][]netip.Addr) error {
	for i := range home.Peerings {
		p := &home.Peerings[i]
		mapping, err := inputs.Mapping(&p.Configuration)
		if err != nil {
			return err
		}
		own, found := mapping.Restore(destination)
		peer := b.cluster(p.Peer)
		if !found || peer == nil {
			continue
		}
		if peer.nodeOf(own) != nil {
			pods[p.Peer] = append(pods[p.Peer], own)
		}
		for _, ip := range peer.IPs {
			if address, err := ip.Spec.IP.Addr(); err == nil && string(ip.Status.IP) == own.String() {
				b.world[dataplane.Place(p.Peer+" "+address.String())] = alone(address, p.Peer+" lan")
			}
		}
	}
	return nil
}

// nodeOf is the node that has a pod of that address.
func (c *Cluster) nodeOf(pod netip.Addr) *networkingv1beta1.InternalNode {
	for i := range c.Nodes {
		for _, text := range c.Nodes[i].Status.PodRanges {
			if prefix, err := text.Prefix(); err == nil && prefix.Contains(pod) {
				return &c.Nodes[i]
			}
		}
	}
	return nil
}

func podPlace(cluster string, pod netip.Addr) dataplane.Place {
	return dataplane.Place(cluster + " pod " + pod.String())
}

func gatewayPlace(cluster, peer string) dataplane.Place {
	return dataplane.Place(cluster + " gateway to " + peer)
}

// keyOf stands for the key of a gateway: whether the real ones fit is told by the Connection.
func keyOf(cluster, peer string) dataplane.Key {
	return dataplane.Key(sha256.Sum256([]byte(cluster + "/" + peer)))
}

// add puts a cluster's places into the world: its gateways, its nodes, and pods.
func (b *builder) add(c *Cluster, pods []netip.Addr) error {
	var fabrics []networkingv1beta1.InternalFabric
	for i := range c.Peerings {
		p := &c.Peerings[i]
		fabrics = append(fabrics, p.Fabric)
		address, state, err := c.gateway(p)
		if err != nil {
			return fmt.Errorf("its gateway to %s: %w", p.Peer, err)
		}
		b.world[gatewayPlace(c.ID, p.Peer)] = alone(address, podWire(c.ID, address)).With(state)
		pods = append(pods, address)
	}
	for i := range c.Nodes {
		self := &c.Nodes[i]
		input, _, err := inputs.Node(inputs.NodeObjects{Self: self, Fabrics: fabrics, IPs: c.IPs, MTU: wire, Port: dataplane.DefaultOverlayPort})
		if err != nil {
			return fmt.Errorf("node %s: %w", self.Name, err)
		}
		state, _ := dataplane.Node(input)
		b.world[dataplane.Place(c.ID+" node "+self.Name)] = c.surroundings(self, input.Self.VTEP, pods).With(state)
	}
	for _, pod := range pods {
		if _, there := b.world[podPlace(c.ID, pod)]; !there && !c.isGateway(pod) {
			b.world[podPlace(c.ID, pod)] = alone(pod, podWire(c.ID, pod))
		}
	}
	return nil
}

func (c *Cluster) isGateway(pod netip.Addr) bool {
	return slices.ContainsFunc(c.Peerings, func(p Peering) bool { return string(p.Fabric.Spec.GatewayIP) == pod.String() })
}

// gateway is the State of a gateway, and the address of its pod.
func (c *Cluster) gateway(p *Peering) (netip.Addr, dataplane.State, error) {
	address, err := p.Fabric.Spec.GatewayIP.Addr()
	if err != nil {
		return address, dataplane.State{}, err
	}
	there := keyOf(p.Peer, c.ID)
	fabrics := make([]networkingv1beta1.InternalFabric, 0, len(c.Peerings))
	for i := range c.Peerings {
		fabrics = append(fabrics, c.Peerings[i].Fabric)
	}
	configuration := p.Configuration.DeepCopy()
	if told := &configuration.Status; told.Isolation == "" && len(told.SharedPods) == 0 {
		told.Isolation = string(configv1alpha1.IsolationOpen) // Controller managers that do not tell it yet tell of pods alone.
	}
	input, _, err := inputs.Gateway(inputs.GatewayObjects{
		Configuration: configuration, Fabric: &p.Fabric, Fabrics: fabrics, Nodes: c.Nodes, IPs: c.IPs,
		PublicKey: &networkingv1beta1.PublicKey{Spec: networkingv1beta1.PublicKeySpec{PublicKey: there[:]}},
		Pod: inputs.GatewayPod{Address: address, Node: p.Node, Server: p.Server, Key: keyOf(c.ID, p.Peer), MTU: wire, Port: dataplane.DefaultOverlayPort,
			Wish: int(p.Fabric.Spec.MTU) + dataplane.TunnelOverhead4},
	})
	if err != nil {
		return address, dataplane.State{}, err
	}
	state, _ := dataplane.Gateway(input)
	return address, state, nil
}

func podWire(cluster string, pod netip.Addr) string { return cluster + " " + pod.String() }

// alone is the State of what has one device: a pod, or something in the nodes' network.
func alone(address netip.Addr, on string) dataplane.State {
	return dataplane.State{
		Links: []dataplane.Link{{
			Name: "eth0", Kind: dataplane.Ethernet, MTU: wire, Addresses: []netip.Prefix{netip.PrefixFrom(address, address.BitLen())}, Wire: on,
		}},
		Routes: []dataplane.Route{everything("eth0")},
	}
}

func everything(device string) dataplane.Route {
	return dataplane.Route{Table: dataplane.MainTable, Destination: netip.PrefixFrom(netip.IPv4Unspecified(), 0), Device: device}
}

// surroundings are what a CNI has on a node: the ways to its own pods and to those of the other nodes.
func (c *Cluster) surroundings(self *networkingv1beta1.InternalNode, address netip.Addr, pods []netip.Addr) dataplane.State {
	state := alone(address, c.ID+" lan")
	state.Devices = []dataplane.Setting{{Device: "eth0", Name: "forwarding", Value: 1}}
	for i, pod := range pods {
		if node := c.nodeOf(pod); node != self {
			continue
		}
		device := fmt.Sprintf("pod%d", i)
		state.Links = append(state.Links, dataplane.Link{Name: device, Kind: dataplane.Ethernet, MTU: wire, Wire: podWire(c.ID, pod)})
		state.Routes = append(state.Routes, dataplane.Route{Table: dataplane.MainTable, Destination: netip.PrefixFrom(pod, pod.BitLen()), Device: device})
		state.Devices = append(state.Devices, dataplane.Setting{Device: device, Name: "forwarding", Value: 1})
	}
	for i := range c.Nodes {
		other := &c.Nodes[i]
		if other == self || other.Status.NodeIP.Remote == nil {
			continue
		}
		via, err := other.Status.NodeIP.Remote.Addr()
		if err != nil {
			continue
		}
		for _, text := range other.Status.PodRanges {
			if prefix, err := text.Prefix(); err == nil {
				state.Routes = append(state.Routes, dataplane.Route{Table: dataplane.MainTable, Destination: prefix, Device: "eth0", Via: via})
			}
		}
	}
	return state
}
