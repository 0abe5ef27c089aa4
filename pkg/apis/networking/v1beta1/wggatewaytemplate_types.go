package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TemplateObjectKind is the kind that a template is rendered to.
type TemplateObjectKind struct {
	// apiVersion of the kind.
	// +kubebuilder:validation:Enum=networking.liqo.io/v1beta1
	APIVersion string `json:"apiVersion"`
	// kind itself.
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
}

// WgGatewayServerTemplateSpec is what gateway servers are rendered from.
type WgGatewayServerTemplateSpec struct {
	// objectKind is WgGatewayServer.
	// +kubebuilder:validation:XValidation:rule="self.kind == 'WgGatewayServer'",message="kind must be WgGatewayServer"
	ObjectKind TemplateObjectKind `json:"objectKind"`
	// template is the object, metadata and spec, with texts that are templates of Go over Name, Namespace, Spec (of the GatewayServer),
	// ClusterID, GatewayUID and SecretName. They may have fields, index, len, print, comparisons, and, or, not, if, with, and range over
	// lists. A field whose name begins with ? is left out if its text renders to nothing.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`
}

// WgGatewayServerTemplate is what gateway servers of WireGuard are rendered from. What they may look like is a fixed list of fields.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=wggst;wgst
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WgGatewayServerTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WgGatewayServerTemplateSpec `json:"spec"`
}

// WgGatewayServerTemplateList is a list of WgGatewayServerTemplates.
// +kubebuilder:object:root=true
type WgGatewayServerTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WgGatewayServerTemplate `json:"items"`
}

// WgGatewayClientTemplateSpec is what gateway clients are rendered from.
type WgGatewayClientTemplateSpec struct {
	// objectKind is WgGatewayClient.
	// +kubebuilder:validation:XValidation:rule="self.kind == 'WgGatewayClient'",message="kind must be WgGatewayClient"
	ObjectKind TemplateObjectKind `json:"objectKind"`
	// template is the object, metadata and spec, with texts that are templates of Go over Name, Namespace, Spec (of the GatewayClient),
	// ClusterID, GatewayUID and SecretName. They may have fields, index, len, print, comparisons, and, or, not, if, with, and range over
	// lists. A field whose name begins with ? is left out if its text renders to nothing.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`
}

// WgGatewayClientTemplate is what gateway clients of WireGuard are rendered from. What they may look like is a fixed list of fields.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=wggct;wgct
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WgGatewayClientTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WgGatewayClientTemplateSpec `json:"spec"`
}

// WgGatewayClientTemplateList is a list of WgGatewayClientTemplates.
// +kubebuilder:object:root=true
type WgGatewayClientTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WgGatewayClientTemplate `json:"items"`
}
