package v1beta1

import corev1 "k8s.io/api/core/v1"

// EndpointStatus is where a gateway is reached by its peer.
type EndpointStatus struct {
	// addresses of the gateway, any of which may be used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []Host `json:"addresses,omitempty"`
	// port of the gateway.
	// +optional
	Port Port `json:"port,omitempty"`
	// protocol of the tunnel's packets.
	// +optional
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// InternalGatewayEndpoint is where the nodes of this cluster reach a gateway.
type InternalGatewayEndpoint struct {
	// ip is the address of the gateway's pod.
	// +optional
	IP *IP `json:"ip,omitempty"`
	// node that the gateway's pod runs on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node *string `json:"node,omitempty"`
}
