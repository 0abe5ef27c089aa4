package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Endpoint is how a gateway server is exposed.
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || self.nodePort == 0 || !has(self.serviceType) || self.serviceType != 'ClusterIP'",message="nodePort needs serviceType NodePort or LoadBalancer"
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerIP) || (has(self.serviceType) && self.serviceType == 'LoadBalancer')",message="loadBalancerIP needs serviceType LoadBalancer"
type Endpoint struct {
	// port that the gateway's Service has.
	Port Port `json:"port"`
	// serviceType of the gateway's Service.
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`
	// nodePort that the Service has on every node; 0 has one chosen by the cluster.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort,omitempty"`
	// loadBalancerIP is the address that the load balancer is asked for.
	// +optional
	LoadBalancerIP *IP `json:"loadBalancerIP,omitempty"`
}

// GatewayServerSpec is the end of a tunnel that waits for the peer.
type GatewayServerSpec struct {
	// mtu of the tunnel, in bytes. Left out, it is as large as the way to the peer lets it be.
	// +optional
	MTU MTU `json:"mtu,omitempty"`
	// endpoint is how the gateway is exposed.
	Endpoint Endpoint `json:"endpoint"`
	// serverTemplateRef names the template that the gateway is rendered from.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name of the template is required"
	ServerTemplateRef corev1.ObjectReference `json:"serverTemplateRef,omitzero"`
	// secretRef names a Secret, in the same namespace, with keys privateKey and publicKey of the gateway; made if left out.
	// +optional
	SecretRef corev1.LocalObjectReference `json:"secretRef,omitzero"`
	// serviceAnnotations are added to those of the gateway's Service.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`
	// serviceLabels are added to those of the gateway's Service.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	ServiceLabels map[string]string `json:"serviceLabels,omitempty"`
}

// GatewayServerStatus is what became of a GatewayServer.
type GatewayServerStatus struct {
	// serverRef is what the template was rendered to.
	// +optional
	ServerRef *corev1.ObjectReference `json:"serverRef,omitempty"`
	// endpoint is where the peer reaches the gateway.
	// +optional
	Endpoint *EndpointStatus `json:"endpoint,omitempty"`
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

// GatewayServer is the end of the tunnel to a peer that waits for the other end, a GatewayClient of the peer. The peer is named by label
// liqo.io/remote-cluster-id.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=gws;gwserver
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 60 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name has at most 60 lower-case letters, digits and dashes: 'gw-' and it name a Service"
// +kubebuilder:printcolumn:name="Template Kind",type=string,priority=1,JSONPath=`.spec.serverTemplateRef.kind`
// +kubebuilder:printcolumn:name="Template Name",type=string,priority=1,JSONPath=`.spec.serverTemplateRef.name`
// +kubebuilder:printcolumn:name="Template Namespace",type=string,priority=1,JSONPath=`.spec.serverTemplateRef.namespace`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.status.endpoint.addresses[*]`
// +kubebuilder:printcolumn:name="Port",type=string,JSONPath=`.status.endpoint.port`
// +kubebuilder:printcolumn:name="Protocol",type=string,priority=1,JSONPath=`.status.endpoint.protocol`
// +kubebuilder:printcolumn:name="MTU",type=integer,priority=1,JSONPath=`.spec.mtu`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GatewayServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GatewayServerSpec `json:"spec"`
	// +optional
	Status GatewayServerStatus `json:"status,omitempty"`
}

// GatewayServerList is a list of GatewayServers.
// +kubebuilder:object:root=true
type GatewayServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GatewayServer `json:"items"`
}
