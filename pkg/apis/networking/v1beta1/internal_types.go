package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// InternalFabricSpecInterfaceNode is the device by which nodes reach a gateway.
type InternalFabricSpecInterfaceNode struct {
	// name of the device.
	// +optional
	Name DeviceName `json:"name,omitempty"`
}

// InternalFabricSpecInterfaceGateway is the gateway's end of the way to the nodes.
type InternalFabricSpecInterfaceGateway struct {
	// ip is the gateway's own address towards peers, from the external range of this cluster.
	IP IP `json:"ip"`
}

// InternalFabricSpecInterface are the two ends of the way between nodes and a gateway.
type InternalFabricSpecInterface struct {
	// node is the end on nodes.
	// +optional
	Node InternalFabricSpecInterfaceNode `json:"node,omitempty"`
	// gateway is the end in the gateway.
	Gateway InternalFabricSpecInterfaceGateway `json:"gateway"`
}

// InternalFabricSpec is what nodes have to know of a gateway.
type InternalFabricSpec struct {
	// mtu of the way to the peer, in bytes: the largest packet that gets there.
	// +optional
	MTU MTU `json:"mtu,omitempty"`
	// remoteCIDRs are the ranges under which this cluster sees the peer.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	RemoteCIDRs []CIDR `json:"remoteCIDRs,omitempty"`
	// gatewayIP is the address of the pod in which the gateway is active; 0.0.0.0 when it has lost its pod, whose address may be anybody's next.
	GatewayIP IP `json:"gatewayIP"`
	// waiting tells that the gateway waits for something, such as the key of its peer, and answers no node until it has that: nodes do not ask it
	// whether it hears them.
	// +optional
	Waiting bool `json:"waiting,omitempty"`
	// interface are the ends of the way between nodes and the gateway.
	Interface InternalFabricSpecInterface `json:"interface"`
}

// InternalFabric tells the nodes of this cluster by which gateway they reach a peer. There is one for each gateway, of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=if;ifabric
// +kubebuilder:printcolumn:name="Gateway IP",type=string,JSONPath=`.spec.gatewayIP`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type InternalFabric struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec InternalFabricSpec `json:"spec"`
}

// InternalFabricList is a list of InternalFabrics.
// +kubebuilder:object:root=true
type InternalFabricList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InternalFabric `json:"items"`
}

// InternalNodeSpecInterfaceGateway is the device by which gateways reach a node.
type InternalNodeSpecInterfaceGateway struct {
	// name of the device.
	// +optional
	Name DeviceName `json:"name,omitempty"`
}

// InternalNodeSpecInterfaceNode is the node's end of the way to the gateways.
type InternalNodeSpecInterfaceNode struct {
	// ip is the node's address towards peers, from the external range of this cluster: what the node sends itself, and what comes in at it for
	// a pod of a peer, leaves under it.
	IP IP `json:"ip"`
}

// InternalNodeSpecInterface are the two ends of the way between a node and gateways.
type InternalNodeSpecInterface struct {
	// gateway is the end in gateways.
	// +optional
	Gateway InternalNodeSpecInterfaceGateway `json:"gateway,omitempty"`
	// node is the end on the node.
	Node InternalNodeSpecInterfaceNode `json:"node"`
}

// InternalNodeSpec is what was given to a node.
type InternalNodeSpec struct {
	// interface are the ends of the way between the node and gateways.
	Interface InternalNodeSpecInterface `json:"interface"`
}

// InternalNodeStatusNodeIP are the addresses under which pods see a node.
type InternalNodeStatusNodeIP struct {
	// local is the address that pods of the node see.
	// +optional
	Local *IP `json:"local,omitempty"`
	// remote is the address that pods of other nodes see, and at which the node takes packets of the overlay.
	// +optional
	Remote *IP `json:"remote,omitempty"`
}

// InternalNodeStatus is what gateways have to know of a node.
type InternalNodeStatus struct {
	// nodeIP are the addresses under which pods see the node.
	// +optional
	NodeIP InternalNodeStatusNodeIP `json:"nodeIP,omitempty"`
	// addresses are all that the node sends from, those of the CNI's devices included.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []IP `json:"addresses,omitempty"`
	// networks are those that the node is in by itself: what has an address there is reached without a router. No peer is seen there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Networks []CIDR `json:"networks,omitempty"`
	// podRanges are the ranges of the node's pods, and single pods that are in no such range.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	PodRanges []CIDR `json:"podRanges,omitempty"`
	// silent are the IDs of the peers whose gateways do not answer the node through the overlay: no packet of theirs comes to its pods.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Silent []string `json:"silent,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InternalNode tells the gateways of this cluster how they reach a node and its pods. There is one for each physical node, of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=liqo,shortName=in;inode
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Node IP Local",type=string,JSONPath=`.status.nodeIP.local`
// +kubebuilder:printcolumn:name="Node IP Remote",type=string,JSONPath=`.status.nodeIP.remote`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
type InternalNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec InternalNodeSpec `json:"spec"`
	// +optional
	Status InternalNodeStatus `json:"status,omitempty"`
}

// InternalNodeList is a list of InternalNodes.
// +kubebuilder:object:root=true
type InternalNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InternalNode `json:"items"`
}

// Condition of a GeneveTunnel, and its reason. The API server writes it: it is the default of the status.
const (
	// EffectiveCondition tells whether an object has an effect.
	EffectiveCondition = "Effective"
	// ReasonWithoutEffect: the kind is there for manifests and scripts of Liqo v1, and nobody acts on it.
	ReasonWithoutEffect = "WithoutEffect"
)

// GeneveTunnelSpec is what Liqo v1 had its agents set up between a node and a gateway. Here it has no effect.
type GeneveTunnelSpec struct {
	// id of the tunnel. It has no effect.
	ID int32 `json:"id"`
	// internalNodeRef names an InternalNode. It has no effect.
	InternalNodeRef corev1.ObjectReference `json:"internalNodeRef"`
	// internalFabricRef names an InternalFabric. It has no effect.
	InternalFabricRef corev1.ObjectReference `json:"internalFabricRef"`
}

// GeneveTunnelStatus says that the object has no effect.
type GeneveTunnelStatus struct {
	// conditions: Effective, which is False.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:default={{type: "Effective", status: "False", reason: "WithoutEffect", message: "nodes and gateways are joined by VXLAN, with no object for each pair: nobody acts on a GeneveTunnel"}}
	Conditions []corev1beta1.Condition `json:"conditions,omitempty"`
}

// GeneveTunnel is known from Liqo v1, and has no effect: the overlay between nodes and gateways needs no object for each pair. It is served so
// that manifests and scripts which name it do not fail, and its status says so.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=gvtn
type GeneveTunnel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec GeneveTunnelSpec `json:"spec,omitzero"`
	// +optional
	// +kubebuilder:default={}
	Status GeneveTunnelStatus `json:"status,omitzero"`
}

// GeneveTunnelList is a list of GeneveTunnels.
// +kubebuilder:object:root=true
type GeneveTunnelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GeneveTunnel `json:"items"`
}
