package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"liqo.io/liqo/test/lab/spec"
)

// pool is the range that labs take their subnets from.
var pool = netip.MustParsePrefix("172.30.0.0/16")

// routedBits is the prefix length of each network of a routed lab.
const routedBits = 27

// Endpoint is one network namespace on the switch.
type Endpoint struct {
	// Cluster is the cluster that the endpoint belongs to.
	Cluster string `json:"cluster"`
	// Node is the node's name; empty for the control plane.
	Node string `json:"node,omitempty"`
	// Namespace is the name of the network namespace.
	Namespace string `json:"namespace"`
	// Port is the name of the endpoint's interface on the switch, Bridge that of the bridge which it is plugged into.
	Port   string `json:"port"`
	Bridge string `json:"bridge"`
	// Address is its address, Subnet the range that it reaches directly, Gateway where the rest goes.
	Address netip.Addr   `json:"address"`
	Subnet  netip.Prefix `json:"subnet"`
	Gateway netip.Addr   `json:"gateway"`
	// PodCIDR is the node's share of the cluster's pod range; invalid for a control plane.
	PodCIDR netip.Prefix `json:"podCIDR,omitzero"`
	// Encapsulated tells that the node's own program brings what is for the pods of other nodes there, and needs no routes.
	Encapsulated bool `json:"encapsulated,omitempty"`
	// ServiceCIDR is the cluster's Service range if other clusters reach it by way of this node; else invalid.
	ServiceCIDR netip.Prefix `json:"serviceCIDR,omitzero"`
}

// Plan is the whole network of a lab as one value.
type Plan struct {
	// Lab is the lab's name.
	Lab string `json:"lab"`
	// Subnet is the lab's range; its first address is the host's.
	Subnet netip.Prefix `json:"subnet"`
	// Flat tells whether pod ranges of other clusters are routed.
	Flat bool `json:"flat,omitempty"`
	// Routed tells whether each cluster has a network of its own.
	Routed bool `json:"routed,omitempty"`
	// Endpoints are all namespaces but the switch.
	Endpoints []Endpoint `json:"endpoints"`
}

// Choose returns the first /24 of the pool that overlaps with none of the taken
// ranges: routes of the host and subnets of other labs.
func Choose(taken []netip.Prefix) (netip.Prefix, error) {
	base := pool.Addr().As4()
	for i := range 256 {
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{base[0], base[1], byte(i), 0}), 24)
		if !slices.ContainsFunc(taken, candidate.Overlaps) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, errors.New("no /24 of 172.30.0.0/16 is free on this machine: take another lab down, or remove the host's routes into that range")
}

// NewPlan lays out the network of a lab within its subnet.
func NewPlan(lab spec.Lab, subnet netip.Prefix) Plan {
	p := Plan{Lab: lab.Name, Subnet: subnet, Flat: lab.Flat, Routed: lab.Routed}
	at := Endpoint{Bridge: "br0", Subnet: subnet, Gateway: p.HostAddress(), Address: p.HostAddress().Next()}
	add := func(e Endpoint) {
		at.Address = at.Address.Next()
		e.Address, e.Bridge, e.Subnet, e.Gateway = at.Address, at.Bridge, at.Subnet, at.Gateway
		e.Port = fmt.Sprintf("p%d", len(p.Endpoints)+1)
		p.Endpoints = append(p.Endpoints, e)
	}
	for i, c := range lab.Clusters {
		if lab.Routed {
			at = clusterNetwork(subnet, i+1)
		}
		add(Endpoint{Cluster: c.Name, Namespace: p.namespace(c.Name)})
		for i, n := range c.NodesOf(spec.Real) {
			e := Endpoint{Cluster: c.Name, Node: n.Name, Namespace: p.namespace(c.Name + "-" + n.Name), PodCIDR: c.NodeCIDR(i), Encapsulated: c.CNI == spec.Flannel}
			if lab.FlatServices && i == 0 {
				e.ServiceCIDR = c.ServiceCIDR
			}
			add(e)
		}
	}
	return p
}

// clusterNetwork is the i-th /27 of a routed lab. Its first address is the router's.
func clusterNetwork(subnet netip.Prefix, i int) Endpoint {
	base := subnet.Addr().As4()
	base[3] = byte(i << (32 - routedBits))
	network := netip.PrefixFrom(netip.AddrFrom4(base), routedBits)
	gateway := network.Addr().Next()
	return Endpoint{Bridge: fmt.Sprintf("br%d", i), Subnet: network, Gateway: gateway, Address: gateway}
}

// Switch is the name of the namespace that holds the bridge.
func (p Plan) Switch() string { return p.namespace("switch") }

func (p Plan) namespace(suffix string) string { return "liqo-lab-" + p.Lab + "-" + suffix }

// HostInterface is the name of the host's interface on the switch. Interface
// names have at most 15 characters, so the lab's name enters as a hash.
func (p Plan) HostInterface() string {
	sum := sha256.Sum256([]byte(p.Lab))
	return "lab" + hex.EncodeToString(sum[:])[:8]
}

// HostAddress is the host's address on the switch.
func (p Plan) HostAddress() netip.Addr { return p.Subnet.Addr().Next() }

// hostGateway is the address of a routed lab's router towards the host.
func (p Plan) hostGateway() netip.Addr { return p.HostAddress().Next() }

// hostBits is the prefix length of the network that the host and the switch have in common.
func (p Plan) hostBits() int {
	if p.Routed {
		return routedBits
	}
	return p.Subnet.Bits()
}

// networks returns one endpoint of each network: all that its other endpoints have in common with it.
func (p Plan) networks() []Endpoint {
	return slices.CompactFunc(slices.Clone(p.Endpoints), func(a, b Endpoint) bool { return a.Bridge == b.Bridge })
}

// ControlPlane returns the endpoint of a cluster's control plane.
func (p Plan) ControlPlane(cluster string) Endpoint { return p.Node(cluster, "") }

// Node returns the endpoint of a node.
func (p Plan) Node(cluster, node string) Endpoint {
	i := slices.IndexFunc(p.Endpoints, func(e Endpoint) bool { return e.Cluster == cluster && e.Node == node })
	if i < 0 {
		return Endpoint{}
	}
	return p.Endpoints[i]
}

// NAT says how a router chooses the ports under which those behind it appear. Each kind lets in only what answers: from the same address and port.
type NAT string

const (
	// PortRestricted keeps a sender's port as long as it is free, so that it is the same towards everybody.
	PortRestricted NAT = "portRestricted"
	// Symmetric takes a random port for each connection, so that nobody knows it before the first packet, nor after the router forgot it.
	Symmetric NAT = "symmetric"
)

// Fault is what is wrong with the link between two clusters.
type Fault struct {
	// A and B are the clusters.
	A string `json:"a"`
	B string `json:"b"`
	// Cut drops everything.
	Cut bool `json:"cut,omitempty"`
	// NoUDP drops UDP, as firewalls do. The rest needs a routed lab, too.
	NoUDP bool `json:"noUDP,omitempty"`
	// MTU drops larger packets without telling their senders; 0 drops none.
	MTU int `json:"mtu,omitempty"`
	// NAT has B see all of A under the address that the router has in B's network, and so unable to begin a connection.
	NAT NAT `json:"nat,omitempty"`
	// Loss is how many of a hundred packets are dropped, at random.
	Loss int `json:"loss,omitempty"`
	// Delay is how much longer each packet takes, either way. It goes with everything but NAT.
	Delay time.Duration `json:"delay,omitempty"`
}

// None says that nothing is wrong.
func (f Fault) None() bool { return f == Fault{A: f.A, B: f.B} }

// needsRouter says that a fault is one of routed labs only.
func (f Fault) needsRouter() bool {
	return f.NoUDP || f.MTU != 0 || f.NAT != "" || f.Loss != 0 || f.Delay != 0
}

// Relay is a program that a link with a delay needs: its device in the switch's namespace, whose packets are to come back later.
type Relay struct {
	Device string
	Delay  time.Duration
}

// Relay returns the one of a fault, and whether it needs one.
func (p Plan) Relay(f Fault) (Relay, bool) {
	return Relay{relayPrefix + p.number(f.A) + "-" + p.number(f.B), f.Delay}, f.Delay > 0
}

// relayPrefix begins the names of all relays' devices.
const relayPrefix = "relay"

// number tells a cluster of a routed lab from its others.
func (p Plan) number(cluster string) string {
	return strings.TrimPrefix(p.ControlPlane(cluster).Bridge, "br")
}

// delayed is the routing table with the way from one cluster to another if that is a slow one.
func (p Plan) delayed(from, to string) string { return p.number(from) + p.number(to) }

// route leads to a range by way of another node.
type route struct {
	to  netip.Prefix
	via netip.Addr
}

// masquerades tells that the lab, and no program of its own, has a node's pods appear under its address elsewhere.
func (e Endpoint) masquerades() bool { return e.PodCIDR.IsValid() && !e.Encapsulated }

// routes returns the ways of an endpoint to the pods and Services behind other nodes. A control plane takes no part in what encapsulates.
func (p Plan) routes(from Endpoint) []route {
	var list []route
	for _, e := range p.Endpoints {
		if e.PodCIDR.IsValid() && !from.Encapsulated && e.Address != from.Address && (p.Flat || e.Cluster == from.Cluster) {
			list = append(list, route{e.PodCIDR, e.Address})
		}
		if e.ServiceCIDR.IsValid() && e.Cluster != from.Cluster {
			list = append(list, route{e.ServiceCIDR, e.Address})
		}
	}
	return list
}

// unmasqueraded returns the ranges that pods of the endpoint talk to under their own address.
func (p Plan) unmasqueraded(from Endpoint) []string {
	list := []string{from.PodCIDR.String()}
	for _, r := range p.routes(from) {
		list = append(list, r.to.String())
	}
	return list
}
