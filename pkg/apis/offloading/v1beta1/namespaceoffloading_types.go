package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// NamespaceMappingStrategyType says how twin namespaces are named.
// +kubebuilder:validation:Enum=EnforceSameName;DefaultName;SelectedName
type NamespaceMappingStrategyType string

const (
	// EnforceSameNameMappingStrategyType gives twins the name of the local namespace.
	EnforceSameNameMappingStrategyType NamespaceMappingStrategyType = "EnforceSameName"
	// DefaultNameMappingStrategyType gives twins the name <namespace>-<local cluster ID>.
	DefaultNameMappingStrategyType NamespaceMappingStrategyType = "DefaultName"
	// SelectedNameMappingStrategyType gives twins the name in remoteNamespaceName.
	SelectedNameMappingStrategyType NamespaceMappingStrategyType = "SelectedName"
)

// PodOffloadingStrategyType says where the pods of a namespace may run.
// +kubebuilder:validation:Enum=Local;Remote;LocalAndRemote
type PodOffloadingStrategyType string

const (
	// LocalPodOffloadingStrategyType keeps pods in this cluster; the other objects are reflected.
	LocalPodOffloadingStrategyType PodOffloadingStrategyType = "Local"
	// RemotePodOffloadingStrategyType runs pods on virtual nodes only.
	RemotePodOffloadingStrategyType PodOffloadingStrategyType = "Remote"
	// LocalAndRemotePodOffloadingStrategyType leaves it to the scheduler.
	LocalAndRemotePodOffloadingStrategyType PodOffloadingStrategyType = "LocalAndRemote"
)

// NamespaceOffloadingSpec says where a namespace is extended to.
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceMappingStrategy) || self.namespaceMappingStrategy != 'SelectedName' || (has(self.remoteNamespaceName) && size(self.remoteNamespaceName) > 0)",message="remoteNamespaceName is required when namespaceMappingStrategy is SelectedName"
// +kubebuilder:validation:XValidation:rule="(has(self.remoteNamespaceName) ? [self.remoteNamespaceName].filter(n, size(n) > 0) : []) == (has(oldSelf.remoteNamespaceName) ? [oldSelf.remoteNamespaceName].filter(n, size(n) > 0) : [])",message="remoteNamespaceName cannot be changed; unoffload the namespace and offload it again"
type NamespaceOffloadingSpec struct {
	// namespaceMappingStrategy says how twin namespaces are named. It cannot be changed.
	// +kubebuilder:default=DefaultName
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="namespaceMappingStrategy cannot be changed; unoffload the namespace and offload it again"
	// +optional
	NamespaceMappingStrategy NamespaceMappingStrategyType `json:"namespaceMappingStrategy,omitempty"`
	// podOffloadingStrategy says where pods may run.
	// +kubebuilder:default=LocalAndRemote
	// +optional
	PodOffloadingStrategy PodOffloadingStrategyType `json:"podOffloadingStrategy,omitempty"`
	// remoteNamespaceName is the twins' name with strategy SelectedName.
	// +optional
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +kubebuilder:validation:MaxLength=63
	RemoteNamespaceName string `json:"remoteNamespaceName,omitempty"`
	// clusterSelector selects virtual nodes by their labels; empty selects all. Of the labels that a provider suggests, a virtual node has
	// those that were taken when it was made or approved here since, see LabelsChanged in the summary of its VirtualNode.
	// +optional
	ClusterSelector corev1.NodeSelector `json:"clusterSelector,omitempty,omitzero"`
}

// OffloadingPhaseType sums a NamespaceOffloading up.
// +kubebuilder:validation:Enum=Ready;NoClusterSelected;InProgress;SomeFailed;AllFailed;Terminating
type OffloadingPhaseType string

const (
	// ReadyOffloadingPhaseType: all selected clusters have their twin.
	ReadyOffloadingPhaseType OffloadingPhaseType = "Ready"
	// NoClusterSelectedOffloadingPhaseType: the selector selects no virtual node.
	NoClusterSelectedOffloadingPhaseType OffloadingPhaseType = "NoClusterSelected"
	// InProgressOffloadingPhaseType: answers are awaited.
	InProgressOffloadingPhaseType OffloadingPhaseType = "InProgress"
	// SomeFailedOffloadingPhaseType: some selected clusters refused.
	SomeFailedOffloadingPhaseType OffloadingPhaseType = "SomeFailed"
	// AllFailedOffloadingPhaseType: all selected clusters refused.
	AllFailedOffloadingPhaseType OffloadingPhaseType = "AllFailed"
	// TerminatingOffloadingPhaseType: the offloading is being undone.
	TerminatingOffloadingPhaseType OffloadingPhaseType = "Terminating"
)

// RemoteNamespaceConditions are the conditions of one twin.
// +listType=map
// +listMapKey=type
type RemoteNamespaceConditions []RemoteNamespaceCondition

// RemoteNamespaceCondition is one observation of a twin namespace.
type RemoteNamespaceCondition struct {
	// type of the condition.
	// +kubebuilder:validation:Enum=OffloadingRequired;Ready
	Type string `json:"type"`
	// status of the condition.
	// +kubebuilder:validation:Enum="True";"False";"Unknown"
	Status corev1.ConditionStatus `json:"status"`
	// lastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// reason is a machine-readable word for the status.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// message says in plain words what was observed and what to do next.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// NamespaceOffloadingStatus is what became of a NamespaceOffloading.
type NamespaceOffloadingStatus struct {
	// observedGeneration is the generation that the status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// offloadingPhase sums the twins up.
	// +optional
	OffloadingPhase OffloadingPhaseType `json:"offloadingPhase,omitempty"`
	// remoteNamespaceName is the name of the twins.
	// +optional
	RemoteNamespaceName string `json:"remoteNamespaceName,omitempty"`
	// remoteNamespacesConditions are the twins' conditions by cluster ID.
	// +optional
	RemoteNamespacesConditions map[corev1beta1.ClusterID]RemoteNamespaceConditions `json:"remoteNamespacesConditions,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NamespaceOffloading extends its namespace to the selected clusters. There is at most one per namespace, named "offloading".
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=nso;nsof;nsoff;nsoffloading
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'offloading'",message="a NamespaceOffloading must be named 'offloading'"
// +kubebuilder:printcolumn:name="NamespaceMappingStrategy",type=string,JSONPath=`.spec.namespaceMappingStrategy`
// +kubebuilder:printcolumn:name="PodOffloadingStrategy",type=string,JSONPath=`.spec.podOffloadingStrategy`
// +kubebuilder:printcolumn:name="OffloadingPhase",type=string,JSONPath=`.status.offloadingPhase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="RemoteNamespaceName",type=string,priority=10,JSONPath=`.status.remoteNamespaceName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NamespaceOffloading struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	// +optional
	Spec NamespaceOffloadingSpec `json:"spec,omitempty"`
	// +optional
	Status NamespaceOffloadingStatus `json:"status,omitempty"`
}

// NamespaceOffloadingList is a list of NamespaceOffloadings.
// +kubebuilder:object:root=true
type NamespaceOffloadingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NamespaceOffloading `json:"items"`
}
