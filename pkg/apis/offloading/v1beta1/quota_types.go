package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LimitsEnforcement says how strictly pods must declare what they need.
// +kubebuilder:validation:Enum=None;Soft;Hard
type LimitsEnforcement string

const (
	// NoLimitsEnforcement: missing requests count as zero.
	NoLimitsEnforcement LimitsEnforcement = "None"
	// SoftLimitsEnforcement: cpu and memory requests must be set.
	SoftLimitsEnforcement LimitsEnforcement = "Soft"
	// HardLimitsEnforcement: requests must be set, of ephemeral storage too if it is granted, and equal the limits.
	HardLimitsEnforcement LimitsEnforcement = "Hard"
)

// QuotaSpec is what a provider grants to one user.
type QuotaSpec struct {
	// user that the grant is for: the common name of its client certificate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	User string `json:"user"`
	// limitsEnforcement says how strictly pods must declare what they need.
	// +kubebuilder:default=None
	// +optional
	LimitsEnforcement LimitsEnforcement `json:"limitsEnforcement,omitempty"`
	// resources granted.
	Resources corev1.ResourceList `json:"resources"`
	// cordoned stops new pods.
	// +optional
	Cordoned *bool `json:"cordoned,omitempty"`
}

// Quota is a grant: what a provider lets one user consume. The consumer cannot write it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=qt
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.limitsEnforcement`
// +kubebuilder:printcolumn:name="Cordoned",type=boolean,JSONPath=`.spec.cordoned`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="User",type=string,priority=1,JSONPath=`.spec.user`
type Quota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec QuotaSpec `json:"spec"`
}

// QuotaList is a list of Quotas.
// +kubebuilder:object:root=true
type QuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Quota `json:"items"`
}
