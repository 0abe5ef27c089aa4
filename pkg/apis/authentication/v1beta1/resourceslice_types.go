package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// ResourceSliceClass selects who answers a slice; "default" and "" are answered by Liqo itself.
// +kubebuilder:validation:MaxLength=253
type ResourceSliceClass string

// DefaultResourceSliceClass is the class that Liqo itself answers.
const DefaultResourceSliceClass ResourceSliceClass = "default"

// ResourceSliceSpec is what a consumer asks for.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.consumerClusterID) || (has(self.consumerClusterID) && self.consumerClusterID == oldSelf.consumerClusterID)",message="consumerClusterID cannot be changed"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerClusterID) || (has(self.providerClusterID) && self.providerClusterID == oldSelf.providerClusterID)",message="providerClusterID cannot be changed"
type ResourceSliceSpec struct {
	// consumerClusterID is the cluster that asks; filled in with this cluster's ID.
	// +optional
	ConsumerClusterID *corev1beta1.ClusterID `json:"consumerClusterID,omitempty"`
	// providerClusterID is the cluster that is asked; filled in from the tenant namespace.
	// +optional
	ProviderClusterID *corev1beta1.ClusterID `json:"providerClusterID,omitempty"`
	// resources asked for; what is left out is for the provider to decide.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// class of the slice.
	// +optional
	Class ResourceSliceClass `json:"class,omitempty"`
	// csr for the slice's client certificate, PEM; filled in by the consumer's controller.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	CSR []byte `json:"csr,omitempty"`
	// podCIDRs that the endpoints of the consumer's Services lie in, as the provider reaches them: those of the consumer's
	// pods and of its other providers' pods. The provider publishes no other endpoints. Filled in by the consumer's controller.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=43
	PodCIDRs []string `json:"podCIDRs,omitempty"`
}

// StorageType is a storage class that the provider offers.
type StorageType struct {
	// storageClassName is the class's name at the provider.
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName"`
	// default says that this class is used where none is named.
	// +optional
	Default bool `json:"default,omitempty"`
}

// IngressType is an ingress class that the provider offers.
type IngressType struct {
	// ingressClassName is the class's name at the provider.
	// +kubebuilder:validation:MaxLength=253
	IngressClassName string `json:"ingressClassName"`
	// default says that this class is used where none is named.
	// +optional
	Default bool `json:"default,omitempty"`
}

// LoadBalancerType is a load balancer class that the provider offers.
type LoadBalancerType struct {
	// loadBalancerClassName is the class's name at the provider.
	// +kubebuilder:validation:MaxLength=253
	LoadBalancerClassName string `json:"loadBalancerClassName"`
	// default says that this class is used where none is named.
	// +optional
	Default bool `json:"default,omitempty"`
}

// ProviderNodes is what the nodes of a provider are that the pods of a slice run on.
type ProviderNodes struct {
	// largestPod is, of each resource, the most that one more pod can request: what is left on the node that has the most of it left. What
	// runs on the nodes counts, whoever it is of.
	// +optional
	LargestPod corev1.ResourceList `json:"largestPod,omitempty"`
	// operatingSystem of all these nodes; left out if they differ.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	OperatingSystem string `json:"operatingSystem,omitempty"`
	// architecture of all these nodes; left out if they differ.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Architecture string `json:"architecture,omitempty"`
}

// ResourceSliceStatus is the provider's answer.
type ResourceSliceStatus struct {
	// authParams for the slice's own identity.
	// +optional
	AuthParams *AuthParams `json:"authParams,omitempty"`
	// conditions: Authentication and Resources, Accepted or Denied. Programs of Liqo v1 take a slice for refused if there is any condition
	// that is not Accepted, so there are no others.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.type in ['Ready','Cordoned'] ? c.status in ['True','False','Unknown'] : c.status in ['Accepted','Denied'])",message="Ready and Cordoned must be True, False or Unknown; Authentication and Resources must be Accepted or Denied"
	Conditions []corev1beta1.Condition `json:"conditions,omitempty"`
	// summary has what Liqo v1 knows no condition for, each True or False: Ready, which sums the slice up, Identity, which tells a consumer whether
	// the certificate is in use, and Cordoned, while the slice gets no new pods.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.status in ['True','False','Unknown'])",message="what sums a slice up must be True, False or Unknown"
	Summary []corev1beta1.Condition `json:"summary,omitempty"`
	// resources granted; a copy of the provider's Quota.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// storageClasses offered.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	StorageClasses []StorageType `json:"storageClasses,omitempty"`
	// ingressClasses offered.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	IngressClasses []IngressType `json:"ingressClasses,omitempty"`
	// loadBalancerClasses offered.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	LoadBalancerClasses []LoadBalancerType `json:"loadBalancerClasses,omitempty"`
	// nodeLabels that the provider suggests for the virtual node.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// nodeSelector that the provider wants on the slice's pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// podCIDRs that the provider's pods get their addresses from; the consumer refuses pod addresses outside them.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	PodCIDRs []string `json:"podCIDRs,omitempty"`
	// providerNodes are those that the slice's pods run on; left out by who does not tell.
	// +optional
	ProviderNodes *ProviderNodes `json:"providerNodes,omitempty"`
}

// ResourceSlice asks a provider for a share of its resources. It is replicated to the provider, the answer comes back.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=rslice
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Authentication",type=string,JSONPath=`.status.conditions[?(@.type=='Authentication')].status`
// +kubebuilder:printcolumn:name="Resources",type=string,JSONPath=`.status.conditions[?(@.type=='Resources')].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.summary[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ResourceSliceSpec `json:"spec,omitempty"`
	// +optional
	Status ResourceSliceStatus `json:"status,omitempty"`
}

// ResourceSliceList is a list of ResourceSlices.
// +kubebuilder:object:root=true
type ResourceSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceSlice `json:"items"`
}
