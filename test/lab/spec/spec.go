package spec

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"

	"sigs.k8s.io/yaml"
)

// NodeKind says who plays the kubelet of a node.
type NodeKind string

const (
	// Real nodes run a kubelet, containerd and kube-proxy in a network namespace of their own.
	Real NodeKind = "real"
	// Simulated nodes are played by kwok: their pods become Running but run nothing.
	Simulated NodeKind = "simulated"
)

// CNI says how the packets of pods get to other nodes of their cluster.
type CNI string

const (
	// PTP gives each pod a link of its own to its node, and nodes routes to each other's pods.
	PTP CNI = "ptp"
	// Flannel plugs the pods of a node into a bridge, and sends what is for another node's in VXLAN, which leaves pods 50 bytes less.
	Flannel CNI = "flannel"
)

// ProxyMode says what kube-proxy writes the rules of Services with.
type ProxyMode string

const (
	// NFTables writes into a table of its own.
	NFTables ProxyMode = "nftables"
	// IPTables writes into the tables that everybody who calls iptables shares.
	IPTables ProxyMode = "iptables"
)

// Lab is a set of clusters that are started and stopped together.
type Lab struct {
	// Name identifies the lab on this machine; labs with different names coexist.
	Name string `json:"name"`
	// Flat routes the pod networks of all clusters to each other without address
	// translation. It needs pod CIDRs that do not overlap.
	Flat bool `json:"flat,omitempty"`
	// FlatServices routes the Service ranges of all clusters as well, each to its cluster's first real node, as a network that
	// announces them does. It needs flat mode, and ranges that do not overlap.
	FlatServices bool `json:"flatServices,omitempty"`
	// Routed gives every cluster a network of its own, and puts a router between them that knows addresses of nodes and control planes
	// only. The ranges of pods and Services may be equal: nothing but Liqo brings one cluster's pods to the other. It excludes flat mode.
	Routed bool `json:"routed,omitempty"`
	// Clusters are the clusters of the lab, at least one.
	Clusters []Cluster `json:"clusters"`
}

// Cluster is one Kubernetes cluster.
type Cluster struct {
	// Name is the name of the cluster, of its kubeconfig context and the prefix of its node names.
	Name string `json:"name"`
	// PodCIDR is the IPv4 range of the cluster's pods.
	PodCIDR netip.Prefix `json:"podCIDR"`
	// ServiceCIDR is the IPv4 range of the cluster's services.
	ServiceCIDR netip.Prefix `json:"serviceCIDR"`
	// CNI is the pod network between real nodes: ptp (default) or flannel, which excludes flat mode.
	CNI CNI `json:"cni,omitempty"`
	// WithoutNodeCIDRs leaves the ranges of pods out of Nodes, as with a pod network that gives addresses by itself. It excludes flannel,
	// which reads them there.
	WithoutNodeCIDRs bool `json:"withoutNodeCIDRs,omitempty"`
	// ProxyMode is what kube-proxy on real nodes works with: nftables (default) or iptables.
	ProxyMode ProxyMode `json:"proxyMode,omitempty"`
	// Nodes are the nodes of the cluster; none is allowed.
	Nodes []Node `json:"nodes,omitempty"`
	// APIServer adjusts the API server.
	APIServer APIServer `json:"apiServer,omitzero"`
	// IngressClass is the class of Ingresses that the cluster serves, on ports 80
	// and 443 of one of its real nodes; without it the cluster has no ingress controller.
	IngressClass string `json:"ingressClass,omitempty"`
	// WithoutControllerManager leaves kube-controller-manager out: no garbage
	// collection, no Deployments, no CSR signing.
	WithoutControllerManager bool `json:"withoutControllerManager,omitempty"`
	// WithoutScheduler leaves kube-scheduler out: pods stay where they are bound by others.
	WithoutScheduler bool `json:"withoutScheduler,omitempty"`
}

// Node declares one node, or Count equal ones.
type Node struct {
	// Name of the node; default <cluster>-<n>, for simulated nodes <cluster>-sim-<n>.
	// It cannot be combined with a Count over 1.
	Name string `json:"name,omitempty"`
	// Kind is real or simulated; default real.
	Kind NodeKind `json:"kind,omitempty"`
	// Count is how many such nodes there are; default 1.
	Count int `json:"count,omitempty"`
	// Labels are set on the Node.
	Labels map[string]string `json:"labels,omitempty"`
}

// APIServer adjusts the API server of a cluster.
type APIServer struct {
	// Port is the port to listen on. Default 6443 in clusters with real nodes,
	// a free port in labs that are simulated only.
	Port int `json:"port,omitempty"`
	// ExtraArgs are flags without their leading dashes; they win over the lab's own.
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`
	// EnableAdmission names admission plugins to enable beside the default ones and NodeRestriction.
	EnableAdmission []string `json:"enableAdmission,omitempty"`
	// DisableAdmission names admission plugins to disable.
	DisableAdmission []string `json:"disableAdmission,omitempty"`
	// PodSecurity is the Pod Security profile enforced in namespaces without
	// such a label: privileged (default), baseline or restricted. kube-system is exempt.
	PodSecurity string `json:"podSecurity,omitempty"`
}

// Demo is the lab that "up" starts without a file: the clusters rome and milan,
// each with the given number of real nodes, with routed pod networks. Without
// any node it is simulated.
func Demo(nodes int) Lab {
	cluster := func(name, pods, services string) Cluster {
		c := Cluster{Name: name, PodCIDR: netip.MustParsePrefix(pods), ServiceCIDR: netip.MustParsePrefix(services)}
		if nodes > 0 {
			c.Nodes = []Node{{Kind: Real, Count: nodes}}
		}
		return c
	}
	return Lab{Name: "demo", Flat: true, Clusters: []Cluster{
		cluster("rome", "10.10.0.0/16", "10.11.0.0/16"), cluster("milan", "10.20.0.0/16", "10.21.0.0/16"),
	}}
}

// Load reads a lab from a YAML file, fills in defaults and validates it.
func Load(path string) (Lab, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Lab{}, fmt.Errorf("reading the lab's declaration: %w", err)
	}
	lab, err := Parse(data)
	if err != nil {
		return Lab{}, fmt.Errorf("%s: %w", path, err)
	}
	return lab, nil
}

// Parse reads a lab from YAML, refusing unknown fields, fills in defaults and validates it.
func Parse(data []byte) (Lab, error) {
	var lab Lab
	if err := yaml.UnmarshalStrict(data, &lab); err != nil {
		return Lab{}, fmt.Errorf("parsing the lab's declaration: %w", err)
	}
	lab = lab.Complete()
	if err := lab.Validate(); err != nil {
		return Lab{}, err
	}
	return lab, nil
}

// Complete returns the lab with every node listed by itself under its final name, and what was not chosen.
// It is idempotent.
func (l Lab) Complete() Lab {
	clusters := make([]Cluster, len(l.Clusters))
	for i, c := range l.Clusters {
		c.Nodes, c.CNI, c.ProxyMode = completeNodes(c), cmp.Or(c.CNI, PTP), cmp.Or(c.ProxyMode, NFTables)
		clusters[i] = c
	}
	l.Clusters = clusters
	return l
}

func completeNodes(c Cluster) []Node {
	var nodes []Node
	infix := map[NodeKind]string{Simulated: "sim-"}
	seen := map[NodeKind]int{}
	for _, n := range c.Nodes {
		if n.Kind == "" {
			n.Kind = Real
		}
		count := n.Count
		if count == 0 {
			count = 1
		}
		if n.Name != "" && count > 1 {
			nodes = append(nodes, n) // refused by Validate
			continue
		}
		for range count {
			seen[n.Kind]++
			one := n
			one.Count = 1
			if one.Name == "" {
				one.Name = fmt.Sprintf("%s-%s%d", c.Name, infix[n.Kind], seen[n.Kind])
			}
			nodes = append(nodes, one)
		}
	}
	return nodes
}

// Simulated says that no cluster of the lab has a real node, so that no root is needed.
func (l Lab) Simulated() bool {
	for _, c := range l.Clusters {
		if len(c.NodesOf(Real)) > 0 {
			return false
		}
	}
	return true
}

// Cluster returns the cluster of that name.
func (l Lab) Cluster(name string) (Cluster, bool) {
	for _, c := range l.Clusters {
		if c.Name == name {
			return c, true
		}
	}
	return Cluster{}, false
}

// NodesOf returns the nodes of one kind, in order of declaration.
func (c Cluster) NodesOf(kind NodeKind) []Node {
	var nodes []Node
	for _, n := range c.Nodes {
		if n.Kind == kind {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// NodeMask is the prefix length of one node's share of the pod CIDR: 24, or as
// much smaller as is needed to have 16 nodes.
func (c Cluster) NodeMask() int {
	return min(max(24, c.PodCIDR.Bits()+4), 28)
}

// NodeCIDR is the share of the pod CIDR that the i-th real node gets.
func (c Cluster) NodeCIDR(i int) netip.Prefix {
	mask := c.NodeMask()
	base := c.PodCIDR.Masked().Addr().As4()
	n := uint32(base[0])<<24 | uint32(base[1])<<16 | uint32(base[2])<<8 | uint32(base[3])
	n += uint32(i) << (32 - mask)
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}), mask)
}

// DNSAddress is the ClusterIP of the cluster's DNS service: the tenth address of the service CIDR.
func (c Cluster) DNSAddress() netip.Addr {
	return nth(c.ServiceCIDR, 10)
}

// KubernetesAddress is the ClusterIP of the service default/kubernetes: the first address of the service CIDR.
func (c Cluster) KubernetesAddress() netip.Addr {
	return nth(c.ServiceCIDR, 1)
}

func nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}
