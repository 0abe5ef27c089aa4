package info

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/diagnosis"
	"liqo.io/liqo/pkg/cli/target"
)

// Network of this cluster.
type Network struct {
	// Enabled tells whether the network module is on.
	Enabled bool `json:"enabled"`
	// PodCIDRs and ServiceCIDR that Liqo was told.
	PodCIDRs    []string `json:"podCIDRs,omitempty"`
	ServiceCIDR string   `json:"serviceCIDR,omitempty"`
	// ExternalCIDR and InternalCIDR that it uses, or will use, with the network module.
	ExternalCIDR string `json:"externalCIDR,omitempty"`
	InternalCIDR string `json:"internalCIDR,omitempty"`
}

// ownNetwork reads the ranges of this cluster: those that are in use, and where the network module has none, those that Liqo was told.
func ownNetwork(ctx context.Context, cluster *target.Cluster, installation *target.Installation) (*Network, error) {
	config := &installation.Config.IPAM
	result := &Network{
		Enabled: installation.Networking(), PodCIDRs: config.PodCIDRs, ServiceCIDR: config.ServiceCIDR,
		ExternalCIDR: config.ExternalCIDR, InternalCIDR: config.InternalCIDR,
	}
	if len(config.PodCIDRs) == 0 && config.PodCIDR != "" {
		result.PodCIDRs = []string{config.PodCIDR}
	}
	if !result.Enabled {
		return result, nil
	}
	own, err := network.OwnRanges(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if len(own.Pod) > 0 {
		result.PodCIDRs = plain(own.Pod)
	}
	for _, found := range []struct {
		ranges []networkingv1beta1.CIDR
		place  *string
	}{{own.Service, &result.ServiceCIDR}, {own.External, &result.ExternalCIDR}, {own.Internal, &result.InternalCIDR}} {
		if len(found.ranges) > 0 {
			*found.place = string(found.ranges[0])
		}
	}
	return result, nil
}

// internalNode is the kind that tells how the network of a node is.
const internalNode = "InternalNode "

// unreachable are the nodes of this cluster to which the network does not reach, in what they say. Whoever may not look for them is told of none.
// What a node that is off said last is not told: that it is not ready is.
func unreachable(ctx context.Context, cluster *target.Cluster, installation *target.Installation) ([]Condition, error) {
	if !installation.Networking() {
		return nil, nil
	}
	nodes := &networkingv1beta1.InternalNodeList{}
	if err := cluster.List(ctx, nodes); err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	var found []Condition
	for i := range nodes.Items {
		name := nodes.Items[i].Name
		c := meta.FindStatusCondition(nodes.Items[i].Status.Conditions, corev1beta1.ConditionReady)
		if c == nil || c.Status != metav1.ConditionFalse {
			continue
		}
		said := Condition{internalNode + name, c.Type, string(c.Status), c.Reason, c.Message, false}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		there, err := cluster.Get(ctx, node)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		if why := diagnosis.WhyNodeNotReady(node); there && why != "" {
			said.Reason, said.Message = corev1beta1.ReasonNodeNotReady, why
		}
		found = append(found, said)
	}
	return found, nil
}

func plain(ranges []networkingv1beta1.CIDR) []string {
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		texts[i] = string(r)
	}
	return texts
}

// Networking module of a peering.
type Networking struct {
	Module `json:",inline"`
	// CIDRs of the peer; nil if they are not known.
	CIDRs *CIDRs `json:"CIDRs,omitempty"`
	// Gateway between the two clusters; nil if there is none.
	Gateway *Gateway `json:"gateway,omitempty"`
	// State of the tunnel, its Latency, and its MTU in bytes.
	State   string `json:"state,omitempty"`
	Latency string `json:"latency,omitempty"`
	MTU     int32  `json:"mtu,omitempty"`
	// Ranges are those of CIDRs, each with where it is seen.
	Ranges []network.Range `json:"ranges,omitempty"`
}

// CIDRs are the ranges of a peer.
type CIDRs struct {
	// Remote are they as the peer knows them, Remapped as this cluster sees them.
	Remote   Ranges `json:"remote"`
	Remapped Ranges `json:"remapped"`
}

// Ranges of a cluster.
type Ranges struct {
	// Pod and External ranges.
	Pod      []string `json:"pod,omitempty"`
	External []string `json:"external,omitempty"`
}

// The roles of a peer's gateway.
const (
	// Server: the peer's gateway waits for this cluster's.
	Server = "Server"
	// Client: the peer's gateway goes to this cluster's.
	Client = "Client"
)

// Gateway between two clusters.
type Gateway struct {
	// Address and Port of the gateway server, whichever side has it.
	Address []string `json:"address,omitempty"`
	Port    int32    `json:"port,omitempty"`
	// Role of the peer's gateway.
	Role string `json:"role"`
}

// networking sums the network to a peer up; peer is nil if nothing is known of it.
func networking(module Module, peer *network.Peer) Networking {
	result := Networking{Module: module}
	if peer == nil {
		return result
	}
	result.State, result.Latency, result.MTU, result.Ranges = peer.State, peer.Latency, peer.MTU, peer.Ranges
	if len(peer.Ranges) > 0 {
		result.CIDRs = &CIDRs{}
	}
	for _, r := range peer.Ranges {
		remote, remapped := &result.CIDRs.Remote.Pod, &result.CIDRs.Remapped.Pod
		if r.Kind == network.External {
			remote, remapped = &result.CIDRs.Remote.External, &result.CIDRs.Remapped.External
		}
		*remote = append(*remote, r.CIDR)
		if r.SeenAs != "" {
			*remapped = append(*remapped, r.SeenAs)
		}
	}
	if peer.Role != "" {
		result.Gateway = &Gateway{Address: peer.Endpoint.Addresses, Port: peer.Endpoint.Port, Role: Server}
		if peer.Role == Server {
			result.Gateway.Role = Client
		}
	}
	return result
}
