package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// IdentityType says what an identity is for.
// +kubebuilder:validation:Enum=ControlPlane;ResourceSlice
type IdentityType string

const (
	// ControlPlaneIdentityType identities replicate the peering's objects.
	ControlPlaneIdentityType IdentityType = "ControlPlane"
	// ResourceSliceIdentityType identities belong to one virtual kubelet.
	ResourceSliceIdentityType IdentityType = "ResourceSlice"
)

// IdentitySpec is how this cluster authenticates with a provider.
type IdentitySpec struct {
	// clusterID of the provider.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterID cannot be changed; create another Identity"
	ClusterID corev1beta1.ClusterID `json:"clusterID"`
	// type of the identity.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type cannot be changed; create another Identity"
	Type IdentityType `json:"type"`
	// authParams are the provider's answer.
	AuthParams AuthParams `json:"authParams"`
	// namespace is the default namespace of the kubeconfig: the remote tenant namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace *string `json:"namespace,omitempty"`
}

// IdentityStatus is what became of an Identity.
type IdentityStatus struct {
	// kubeconfigSecretRef names the Secret, in the same namespace, that holds the kubeconfig.
	// +optional
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
	// conditions of the identity: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Identity is how this cluster, as a consumer, authenticates with a provider.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=id,path=identities
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="KubeconfigSecret",type=string,priority=1,JSONPath=`.status.kubeconfigSecretRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Identity struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec IdentitySpec `json:"spec"`
	// +optional
	Status IdentityStatus `json:"status,omitempty"`
}

// IdentityList is a list of Identities.
// +kubebuilder:object:root=true
type IdentityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Identity `json:"items"`
}
