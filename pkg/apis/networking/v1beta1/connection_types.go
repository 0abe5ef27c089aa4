package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// ConnectionType says which end of the tunnel this cluster has.
// +kubebuilder:validation:Enum=Server;Client
type ConnectionType string

const (
	// ConnectionTypeServer is the end that waits for the other one.
	ConnectionTypeServer ConnectionType = "Server"
	// ConnectionTypeClient is the end that goes to the other one.
	ConnectionTypeClient ConnectionType = "Client"
)

// ConnectionStatusValue is the state of a tunnel.
// +kubebuilder:validation:Enum=Connecting;Connected;Error
type ConnectionStatusValue string

const (
	// Connecting: the other end has not answered yet.
	Connecting ConnectionStatusValue = "Connecting"
	// Connected: the other end answers.
	Connected ConnectionStatusValue = "Connected"
	// ConnectionError: the other end answered, and does not any more, or nobody asks it: this end has no gateway, or one whose kernel refuses what it
	// needs.
	ConnectionError ConnectionStatusValue = "Error"
)

// ConnectionSpec says whose tunnel a Connection tells of.
type ConnectionSpec struct {
	// type is the end of the tunnel that this cluster has.
	Type ConnectionType `json:"type"`
	// gatewayRef is the gateway of this cluster: what a GatewayServer or a GatewayClient was rendered to.
	GatewayRef corev1.ObjectReference `json:"gatewayRef"`
}

// ConnectionLatency is how long a packet takes to the peer and back.
type ConnectionLatency struct {
	// value as a duration, such as 12.5ms.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`
	// timestamp of the measurement.
	// +optional
	Timestamp metav1.Time `json:"timestamp,omitempty"`
}

// ConnectionTransit are the clusters that are reached through the peer.
type ConnectionTransit struct {
	// cidrs are the ranges under which the peer sees them; none if it carries packets for nobody.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	CIDRs []CIDR `json:"cidrs,omitempty"`
}

// ConnectionStatus is what the gateway observes.
type ConnectionStatus struct {
	// value is the state of the tunnel in a word.
	// +optional
	Value ConnectionStatusValue `json:"value,omitempty"`
	// latency of the tunnel.
	// +optional
	Latency ConnectionLatency `json:"latency,omitempty"`
	// mtu that was measured: the largest packet that gets through the tunnel, in bytes.
	// +optional
	MTU MTU `json:"mtu,omitempty"`
	// transit is what the peer's gateway said last of the clusters that are reached through the peer. It is left out as long as it said nothing,
	// and if spec.transit of the Configuration is false.
	// +optional
	Transit *ConnectionTransit `json:"transit,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Connection is what a gateway tells about its tunnel. The peer is named by label liqo.io/remote-cluster-id.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=conn
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.value`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Latency",type=string,priority=1,JSONPath=`.status.latency.value`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
type Connection struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ConnectionSpec `json:"spec"`
	// +optional
	Status ConnectionStatus `json:"status,omitempty"`
}

// ConnectionList is a list of Connections.
// +kubebuilder:object:root=true
type ConnectionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Connection `json:"items"`
}

// State is that of the tunnel in a word: the value, unless condition Ready contradicts it. A tunnel may answer while what it is made of is gone,
// such as the key of the other end: it is dead as soon as the gateway starts again.
func (c *Connection) State() ConnectionStatusValue {
	switch ready := meta.FindStatusCondition(c.Status.Conditions, corev1beta1.ConditionReady); {
	case c.Status.Value == "":
		return Connecting
	case c.Status.Value == Connected && ready != nil && ready.Status != metav1.ConditionTrue:
		return ConnectionError
	default:
		return c.Status.Value
	}
}
