package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"liqo.io/liqo/test/lab/spec"
)

// pool is the range that labs take their subnets from.
var pool = netip.MustParsePrefix("172.30.0.0/16")

// Endpoint is one network namespace on the switch.
type Endpoint struct {
	// Cluster is the cluster that the endpoint belongs to.
	Cluster string `json:"cluster"`
	// Node is the node's name; empty for the control plane.
	Node string `json:"node,omitempty"`
	// Namespace is the name of the network namespace.
	Namespace string `json:"namespace"`
	// Port is the name of the endpoint's interface on the switch.
	Port string `json:"port"`
	// Address is its address.
	Address netip.Addr `json:"address"`
	// PodCIDR is the node's share of the cluster's pod range; invalid for a control plane.
	PodCIDR netip.Prefix `json:"podCIDR,omitzero"`
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
	p := Plan{Lab: lab.Name, Subnet: subnet, Flat: lab.Flat}
	address := subnet.Addr().Next().Next() // .0 is the network, .1 the host
	add := func(e Endpoint) {
		address = address.Next()
		e.Address = address
		e.Port = fmt.Sprintf("p%d", len(p.Endpoints)+1)
		p.Endpoints = append(p.Endpoints, e)
	}
	for _, c := range lab.Clusters {
		add(Endpoint{Cluster: c.Name, Namespace: p.namespace(c.Name)})
		for i, n := range c.NodesOf(spec.Real) {
			e := Endpoint{Cluster: c.Name, Node: n.Name, Namespace: p.namespace(c.Name + "-" + n.Name), PodCIDR: c.NodeCIDR(i)}
			if lab.FlatServices && i == 0 {
				e.ServiceCIDR = c.ServiceCIDR
			}
			add(e)
		}
	}
	return p
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

// route leads to a range by way of another node.
type route struct {
	to  netip.Prefix
	via netip.Addr
}

// routes returns the ways of an endpoint to the pods and Services behind other nodes.
func (p Plan) routes(from Endpoint) []route {
	var list []route
	for _, e := range p.Endpoints {
		if e.PodCIDR.IsValid() && e.Address != from.Address && (p.Flat || e.Cluster == from.Cluster) {
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
