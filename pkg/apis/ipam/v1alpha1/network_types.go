package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// NetworkSpec is a range that is asked for.
// +kubebuilder:validation:XValidation:rule="(has(self.preAllocated) ? self.preAllocated : 0) == (has(oldSelf.preAllocated) ? oldSelf.preAllocated : 0)",message="preAllocated cannot be changed; create another Network"
type NetworkSpec struct {
	// cidr that is wanted. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cidr cannot be changed; create another Network"
	CIDR networkingv1beta1.CIDR `json:"cidr"`
	// preAllocated is how many addresses at the beginning of the range are given to nobody. It cannot be changed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PreAllocated int32 `json:"preAllocated,omitempty"`
}

// NetworkStatus is the range that was given.
type NetworkStatus struct {
	// cidr that was given: the one that is wanted if it was free, otherwise another one of its length.
	// +optional
	CIDR networkingv1beta1.CIDR `json:"cidr,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Network is a range of addresses that is in use in this cluster: a range of a peer, with the one under which this cluster sees it, or one of
// its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=net
// +kubebuilder:subresource:status
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.cidr) || (self.status.cidr.contains(':') == self.spec.cidr.contains(':') && self.status.cidr.split('/')[1] == self.spec.cidr.split('/')[1])",message="status.cidr must have the family and the length of spec.cidr"
// +kubebuilder:printcolumn:name="Desired CIDR",type=string,JSONPath=`.spec.cidr`
// +kubebuilder:printcolumn:name="Remapped CIDR",type=string,JSONPath=`.status.cidr`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
type Network struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NetworkSpec `json:"spec"`
	// +optional
	Status NetworkStatus `json:"status,omitempty"`
}

// NetworkList is a list of Networks.
// +kubebuilder:object:root=true
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Network `json:"items"`
}
