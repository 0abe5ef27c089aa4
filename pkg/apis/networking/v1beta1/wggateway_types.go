package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The definitions of WgGatewayServer and WgGatewayClient do not repeat those of a Deployment and a Service: these objects are rendered, what is
// rendered is checked against a list of fields, and the API server checks what is made of it.

// DeploymentTemplate is a gateway's Deployment.
type DeploymentTemplate struct {
	// metadata of the Deployment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec of the Deployment.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec appsv1.DeploymentSpec `json:"spec,omitempty"`
}

// ServiceTemplate is a gateway's Service.
type ServiceTemplate struct {
	// metadata of the Service.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec of the Service.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec corev1.ServiceSpec `json:"spec,omitempty"`
}

// ServiceMonitorTemplate is a ServiceMonitor of Prometheus Operator.
type ServiceMonitorTemplate struct {
	// metadata of the ServiceMonitor.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec of the ServiceMonitor.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// Metrics is how a gateway's metrics are read.
type Metrics struct {
	// enabled says whether service and serviceMonitor are made.
	Enabled bool `json:"enabled"`
	// service by which the metrics are read.
	// +optional
	Service *ServiceTemplate `json:"service,omitempty"`
	// serviceMonitor that has Prometheus read the metrics.
	// +optional
	ServiceMonitor *ServiceMonitorTemplate `json:"serviceMonitor,omitempty"`
}

// WgGatewayServerSpec is how a gateway server is run.
type WgGatewayServerSpec struct {
	// service by which the peer reaches the gateway.
	Service ServiceTemplate `json:"service"`
	// deployment of the gateway's pods.
	Deployment DeploymentTemplate `json:"deployment"`
	// metrics of the gateway.
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`
	// secretRef names the Secret, in the same namespace, with the gateway's keys.
	// +optional
	SecretRef corev1.LocalObjectReference `json:"secretRef,omitzero"`
}

// WgGatewayServerStatus is what became of a gateway server.
type WgGatewayServerStatus struct {
	// secretRef is the Secret with the gateway's keys.
	// +optional
	SecretRef *corev1.ObjectReference `json:"secretRef,omitempty"`
	// endpoint is where the peer reaches the gateway.
	// +optional
	Endpoint *EndpointStatus `json:"endpoint,omitempty"`
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

// WgGatewayServer is a gateway server of WireGuard, rendered from a WgGatewayServerTemplate for a GatewayServer of the same name. What is
// edited in it is put back.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=wgs;wggs
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 60 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name has at most 60 lower-case letters, digits and dashes: 'gw-' and it name a Service"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WgGatewayServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WgGatewayServerSpec `json:"spec"`
	// +optional
	Status WgGatewayServerStatus `json:"status,omitempty"`
}

// WgGatewayServerList is a list of WgGatewayServers.
// +kubebuilder:object:root=true
type WgGatewayServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WgGatewayServer `json:"items"`
}

// WgGatewayClientSpec is how a gateway client is run.
type WgGatewayClientSpec struct {
	// deployment of the gateway's pods.
	Deployment DeploymentTemplate `json:"deployment"`
	// metrics of the gateway.
	// +optional
	Metrics *Metrics `json:"metrics,omitempty"`
	// secretRef names the Secret, in the same namespace, with the gateway's keys.
	// +optional
	SecretRef corev1.LocalObjectReference `json:"secretRef,omitzero"`
}

// WgGatewayClientStatus is what became of a gateway client.
type WgGatewayClientStatus struct {
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

// WgGatewayClient is a gateway client of WireGuard, rendered from a WgGatewayClientTemplate for a GatewayClient of the same name. What is
// edited in it is put back.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=wgc;wggc
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 60 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name has at most 60 lower-case letters, digits and dashes: 'gw-' and it name a Service"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WgGatewayClient struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WgGatewayClientSpec `json:"spec"`
	// +optional
	Status WgGatewayClientStatus `json:"status,omitempty"`
}

// WgGatewayClientList is a list of WgGatewayClients.
// +kubebuilder:object:root=true
type WgGatewayClientList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WgGatewayClient `json:"items"`
}
