package network

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/networking/inputs"
)

// Status of the network of a cluster.
type Status struct {
	// ClusterID of the cluster.
	ClusterID string `json:"clusterID"`
	// Enabled tells whether the network module is on.
	Enabled bool `json:"enabled"`
	// Peers whose network is, or is to be, connected, sorted by cluster ID.
	Peers []Peer `json:"peers"`
}

// The states of a peer's network, besides those of Connections.
const (
	// Disconnected: there is no gateway.
	Disconnected = "Disconnected"
	// Pending: there is a gateway, and it has not reported yet.
	Pending = "Pending"
)

// Peer is the network to one peer.
type Peer struct {
	// ClusterID of the peer.
	ClusterID string `json:"clusterID"`
	// State is that of the Connection: Connected, Connecting or Error; Disconnected without a gateway, Pending if it has not reported.
	State string `json:"state"`
	// Role of this cluster's gateway: Server or Client.
	Role string `json:"role,omitempty"`
	// Endpoint of the gateway server.
	Endpoint Endpoint `json:"endpoint,omitzero"`
	// Latency of the tunnel, and when it Answered last, by the Connection.
	Latency  string       `json:"latency,omitempty"`
	Answered *metav1.Time `json:"answered,omitempty"`
	// MTU of the tunnel, in bytes.
	MTU int32 `json:"mtu,omitempty"`
	// Ranges of the peer, and where this cluster sees them.
	Ranges []Range `json:"ranges,omitempty"`
	// Alerts are what objects of the network say of what is not as it should be.
	Alerts []string `json:"alerts,omitempty"`
	// Cure mends what the first alert tells of; empty where that is not certain.
	Cure string `json:"cure,omitempty"`
}

// Endpoint of a gateway server.
type Endpoint struct {
	// Addresses and Port of it.
	Addresses []string `json:"addresses,omitempty"`
	Port      int32    `json:"port,omitempty"`
}

// String is the endpoint by its first address.
func (e Endpoint) String() string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return address(&networkingv1beta1.EndpointStatus{
		Addresses: []networkingv1beta1.Host{networkingv1beta1.Host(e.Addresses[0])}, Port: networkingv1beta1.Port(e.Port),
	})
}

// ReadStatus reads the state of the networks of a cluster.
func ReadStatus(ctx context.Context, cluster *target.Cluster) (*Status, error) {
	installation, err := cluster.RequireInstalled(ctx)
	if err != nil {
		return nil, err
	}
	peers, err := Peers(ctx, cluster)
	return &Status{ClusterID: installation.ClusterID, Enabled: installation.Networking(), Peers: peers}, err
}

// Peers reads the networks to all peers, sorted by cluster ID.
func Peers(ctx context.Context, cluster *target.Cluster) ([]Peer, error) { return read(ctx, cluster) }

// Of reads the network to one peer; nil if there is none.
func Of(ctx context.Context, cluster *target.Cluster, peerID string) (*Peer, error) {
	peers, err := read(ctx, cluster, client.InNamespace(corev1beta1.TenantNamespacePrefix+peerID))
	if err != nil || len(peers) == 0 {
		return nil, err
	}
	return &peers[0], nil
}

func read(ctx context.Context, cluster *target.Cluster, options ...client.ListOption) ([]Peer, error) {
	configurations, connections := &networkingv1beta1.ConfigurationList{}, &networkingv1beta1.ConnectionList{}
	servers, clients := &networkingv1beta1.GatewayServerList{}, &networkingv1beta1.GatewayClientList{}
	for _, list := range []client.ObjectList{configurations, servers, clients, connections} {
		if err := cluster.List(ctx, list, options...); err != nil {
			return nil, err
		}
	}
	found := map[string]*Peer{}
	of := func(object *metav1.ObjectMeta) *Peer {
		id := object.Labels[corev1beta1.RemoteClusterIDLabel]
		if id == "" || object.Namespace != corev1beta1.TenantNamespacePrefix+id {
			return &Peer{}
		}
		if found[id] == nil {
			found[id] = &Peer{ClusterID: id, State: Disconnected}
		}
		return found[id]
	}
	for i := range configurations.Items {
		c := &configurations.Items[i]
		of(&c.ObjectMeta).configuration(c, inputs.OfPeer(configurations.Items, c.Labels[corev1beta1.RemoteClusterIDLabel]))
	}
	for i := range servers.Items {
		of(&servers.Items[i].ObjectMeta).server(&servers.Items[i])
	}
	for i := range clients.Items {
		of(&clients.Items[i].ObjectMeta).client(&clients.Items[i])
	}
	for i := range connections.Items {
		of(&connections.Items[i].ObjectMeta).connection(&connections.Items[i])
	}
	peers := make([]Peer, 0, len(found))
	for _, peer := range found {
		peers = append(peers, *peer)
	}
	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(a.ClusterID, b.ClusterID) })
	return peers, nil
}

// configuration takes over what a Configuration says; counts is the one that counts.
func (p *Peer) configuration(c, counts *networkingv1beta1.Configuration) {
	if counts != nil && c != counts {
		p.tell("Configuration "+c.Name+": it does not count, because "+counts.Name+" is older", nil)
		return
	}
	p.Ranges = RangesOf(c)
	p.alert(c, "Configuration", c.Status.Conditions)
}

func (p *Peer) server(s *networkingv1beta1.GatewayServer) {
	p.State, p.Role = Pending, string(networkingv1beta1.ConnectionTypeServer)
	if s.Status.Endpoint != nil {
		p.Endpoint = endpointOf(s.Status.Endpoint.Addresses, s.Status.Endpoint.Port)
	}
	p.MTU = int32(s.Spec.MTU)
	p.alert(s, "GatewayServer", s.Status.Conditions)
}

func (p *Peer) client(c *networkingv1beta1.GatewayClient) {
	p.State, p.Role = Pending, string(networkingv1beta1.ConnectionTypeClient)
	p.Endpoint = endpointOf(c.Spec.Endpoint.Addresses, c.Spec.Endpoint.Port)
	p.MTU = int32(c.Spec.MTU)
	p.alert(c, "GatewayClient", c.Status.Conditions)
}

func (p *Peer) connection(c *networkingv1beta1.Connection) {
	p.State = string(c.State())
	p.Latency = c.Status.Latency.Value
	if answered := c.Status.Latency.Timestamp; !answered.IsZero() {
		p.Answered = &answered
	}
	p.MTU = cmp.Or(int32(c.Status.MTU), p.MTU)
	if lost := Lost(c); lost != "" {
		p.tell("Connection "+c.Name+": "+lost, meta.FindStatusCondition(c.Status.Conditions, corev1beta1.ConditionReady))
	}
}

// alert takes over what a condition says that is not as it should be.
func (p *Peer) alert(object client.Object, kind string, conditions []metav1.Condition) {
	name := kind + " " + object.GetName()
	ready := meta.FindStatusCondition(conditions, corev1beta1.ConditionReady)
	switch {
	case !object.GetDeletionTimestamp().IsZero():
		p.tell(name+": it is being deleted", nil)
	case !looked(conditions, object.GetGeneration()):
		p.tell(name+": "+unobserved, nil)
	case ready.Status != metav1.ConditionTrue:
		p.tell(name+": "+said(conditions, object.GetGeneration()), ready)
	}
}

// tell adds an alert; ready is the condition that says it, if one does.
func (p *Peer) tell(alert string, ready *metav1.Condition) {
	if len(p.Alerts) == 0 && ready != nil {
		p.Cure = WayOut(ready.Reason)
	}
	p.Alerts = append(p.Alerts, alert)
}

func endpointOf(addresses []networkingv1beta1.Host, port networkingv1beta1.Port) Endpoint {
	found := Endpoint{Port: int32(port)}
	for _, address := range addresses {
		found.Addresses = append(found.Addresses, string(address))
	}
	return found
}
