package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MappingPhase is the state of one twin namespace.
// +kubebuilder:validation:Enum=Accepted;CreationLoopBackOff;Terminating
type MappingPhase string

const (
	// MappingAccepted: the twin exists and the consumer may use it.
	MappingAccepted MappingPhase = "Accepted"
	// MappingCreationLoopBackOff: the twin cannot be created, which is retried; the message says why.
	MappingCreationLoopBackOff MappingPhase = "CreationLoopBackOff"
	// MappingTerminating: the twin is being removed.
	MappingTerminating MappingPhase = "Terminating"
)

// NamespaceMapSpec is what the consumer wants.
type NamespaceMapSpec struct {
	// desiredMapping maps local namespaces to the names of their twins.
	// +optional
	// +kubebuilder:validation:MaxProperties=5000
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 63 && size(self[k]) <= 63)",message="namespace names have at most 63 characters"
	DesiredMapping map[string]string `json:"desiredMapping,omitempty"`
	// originUIDs are the UIDs of the local namespaces, by name: a twin that holds data is for no other namespace of the same name.
	// +optional
	// +kubebuilder:validation:MaxProperties=5000
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 63 && size(self[k]) <= 64)",message="namespace names have at most 63 characters, UIDs at most 64"
	OriginUIDs map[string]string `json:"originUIDs,omitempty"`
}

// RemoteNamespaceStatus is the provider's answer for one namespace.
type RemoteNamespaceStatus struct {
	// remoteNamespace is the twin's name.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	RemoteNamespace string `json:"remoteNamespace,omitempty"`
	// phase of the twin.
	// +optional
	Phase MappingPhase `json:"phase,omitempty"`
	// reason is a machine-readable word for why the twin is not there.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// message says why the twin is not there.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// NamespaceMapStatus is what the provider made of it.
type NamespaceMapStatus struct {
	// currentMapping maps the consumer's namespaces to their twins.
	// +optional
	// +kubebuilder:validation:MaxProperties=5000
	CurrentMapping map[string]RemoteNamespaceStatus `json:"currentMapping,omitempty"`
	// conditions: Ready, and RemovalsHeld where it applies.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NamespaceMap lists the namespaces that are offloaded to one provider. It is replicated to the provider, the answer comes back.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=nm;nsmap
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Local",type=string,JSONPath=`.metadata.labels.liqo\.io/replication`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NamespaceMap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec NamespaceMapSpec `json:"spec,omitempty"`
	// +optional
	Status NamespaceMapStatus `json:"status,omitempty"`
}

// NamespaceMapList is a list of NamespaceMaps.
// +kubebuilder:object:root=true
type NamespaceMapList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NamespaceMap `json:"items"`
}
