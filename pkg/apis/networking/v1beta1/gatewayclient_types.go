package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClientEndpoint is where a gateway client finds the peer's gateway server.
type ClientEndpoint struct {
	// addresses of the gateway server, any of which may be used.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Addresses []Host `json:"addresses"`
	// port of the gateway server.
	Port Port `json:"port"`
	// protocol of the tunnel's packets.
	// +kubebuilder:default=UDP
	// +kubebuilder:validation:Enum=TCP;UDP
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

// GatewayClientSpec is the end of a tunnel that goes to the peer.
type GatewayClientSpec struct {
	// mtu of the tunnel, in bytes. Left out, it is as large as the way to the peer lets it be.
	// +optional
	MTU MTU `json:"mtu,omitempty"`
	// endpoint is where the peer's gateway server is.
	Endpoint ClientEndpoint `json:"endpoint"`
	// clientTemplateRef names the template that the gateway is rendered from.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name of the template is required"
	ClientTemplateRef corev1.ObjectReference `json:"clientTemplateRef,omitzero"`
	// secretRef names a Secret, in the same namespace, with keys privateKey and publicKey of the gateway; made if left out.
	// +optional
	SecretRef corev1.LocalObjectReference `json:"secretRef,omitzero"`
}

// GatewayClientStatus is what became of a GatewayClient.
type GatewayClientStatus struct {
	// clientRef is what the template was rendered to.
	// +optional
	ClientRef *corev1.ObjectReference `json:"clientRef,omitempty"`
	// secretRef is the Secret with the gateway's keys.
	// +optional
	SecretRef *corev1.ObjectReference `json:"secretRef,omitempty"`
	// internalEndpoint is where the nodes of this cluster reach the gateway.
	// +optional
	InternalEndpoint *InternalGatewayEndpoint `json:"internalEndpoint,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GatewayClient is the end of the tunnel to a peer that goes to the other end, a GatewayServer of the peer. The peer is named by label
// liqo.io/remote-cluster-id.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=gwc;gwclient
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 60 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name has at most 60 lower-case letters, digits and dashes: 'gw-' and it name a Service"
// +kubebuilder:printcolumn:name="Template Kind",type=string,priority=1,JSONPath=`.spec.clientTemplateRef.kind`
// +kubebuilder:printcolumn:name="Template Name",type=string,priority=1,JSONPath=`.spec.clientTemplateRef.name`
// +kubebuilder:printcolumn:name="Template Namespace",type=string,priority=1,JSONPath=`.spec.clientTemplateRef.namespace`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.spec.endpoint.addresses[*]`
// +kubebuilder:printcolumn:name="Port",type=string,JSONPath=`.spec.endpoint.port`
// +kubebuilder:printcolumn:name="Protocol",type=string,priority=1,JSONPath=`.spec.endpoint.protocol`
// +kubebuilder:printcolumn:name="MTU",type=integer,priority=1,JSONPath=`.spec.mtu`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayClient struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GatewayClientSpec `json:"spec"`
	// +optional
	Status GatewayClientStatus `json:"status,omitempty"`
}

// GatewayClientList is a list of GatewayClients.
// +kubebuilder:object:root=true
type GatewayClientList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayClient `json:"items"`
}
