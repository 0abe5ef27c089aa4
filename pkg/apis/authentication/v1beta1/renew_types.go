package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// RenewSpec asks the provider for a fresh certificate.
// +kubebuilder:validation:XValidation:rule="self.identityType != 'ResourceSlice' || has(self.resourceSliceRef)",message="resourceSliceRef is required when identityType is ResourceSlice"
type RenewSpec struct {
	// consumerClusterID is the cluster that asks.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="consumerClusterID cannot be changed"
	ConsumerClusterID corev1beta1.ClusterID `json:"consumerClusterID"`
	// publicKey of the new key pair, PEM (PKIX).
	// +kubebuilder:validation:MaxLength=16384
	PublicKey []byte `json:"publicKey"`
	// csr for the new key pair, PEM.
	// +kubebuilder:validation:MaxLength=16384
	CSR []byte `json:"csr"`
	// signature of the csr, made with the private key of the certificate that is replaced. It is required of the control plane's certificates
	// that name their peering.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Signature []byte `json:"signature,omitempty"`
	// identityType says which certificate is renewed.
	IdentityType IdentityType `json:"identityType"`
	// resourceSliceRef names the ResourceSlice whose certificate is renewed.
	// +optional
	ResourceSliceRef *corev1.LocalObjectReference `json:"resourceSliceRef,omitempty"`
}

// RenewStatus is the provider's answer.
type RenewStatus struct {
	// authParams with the fresh certificate.
	// +optional
	AuthParams *AuthParams `json:"authParams,omitempty"`
	// conditions of the renewal: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Renew asks for a fresh certificate before the old one expires. It is replicated to the provider.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.identityType`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Renew struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RenewSpec `json:"spec"`
	// +optional
	Status RenewStatus `json:"status,omitempty"`
}

// RenewList is a list of Renews.
// +kubebuilder:object:root=true
type RenewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Renew `json:"items"`
}
