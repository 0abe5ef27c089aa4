package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ShadowPodSpec is the pod that the consumer wants to run.
type ShadowPodSpec struct {
	// pod is the whole specification; fields that are not on the provider's allow-list are refused.
	// +optional
	Pod corev1.PodSpec `json:"pod,omitempty"`
}

// ShadowPodStatus is what became of the pod.
type ShadowPodStatus struct {
	// phase of the pod, empty while it lives and nothing ever went wrong. Once Succeeded or Failed it never changes and the pod
	// never runs again.
	// +kubebuilder:default=Unknown
	// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Unknown
	// +optional
	Phase corev1.PodPhase `json:"phase,omitempty"`
	// containerStatuses are kept of a finished pod, so that its exit codes outlive it.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ContainerStatuses []corev1.ContainerStatus `json:"containerStatuses,omitempty"`
	// conditions: Ready, which tells whether the pod exists, and if not, why; PodResizePending and offloading.liqo.io/ChangeRefused,
	// which tell what of the changes of a pod that runs is refused, as long as it is. None while nothing ever went wrong.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ShadowPod is a pod that a consumer runs in this cluster. It keeps the pod there with or without the consumer.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=shp;shpod
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ShadowPod struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ShadowPodSpec `json:"spec,omitempty"`
	// +optional
	Status ShadowPodStatus `json:"status,omitempty"`
}

// ShadowPodList is a list of ShadowPods.
// +kubebuilder:object:root=true
type ShadowPodList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShadowPod `json:"items"`
}

// EndpointSliceTemplate is the EndpointSlice that the provider makes.
type EndpointSliceTemplate struct {
	// endpoints as the consumer sees them.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Endpoints []discoveryv1.Endpoint `json:"endpoints,omitempty"`
	// ports of every endpoint.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Ports []discoveryv1.EndpointPort `json:"ports,omitempty"`
	// addressType of the endpoints.
	// +optional
	// +kubebuilder:validation:Enum=IPv4;IPv6;FQDN
	AddressType discoveryv1.AddressType `json:"addressType,omitempty"`
}

// ShadowEndpointSliceSpec is the EndpointSlice that the consumer wants.
type ShadowEndpointSliceSpec struct {
	// template of the EndpointSlice.
	// +optional
	Template EndpointSliceTemplate `json:"template,omitempty"`
}

// ShadowEndpointSlice holds the endpoints of a Service that do not run at the provider.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=shes;sheps;seps
type ShadowEndpointSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ShadowEndpointSliceSpec `json:"spec,omitempty"`
}

// ShadowEndpointSliceList is a list of ShadowEndpointSlices.
// +kubebuilder:object:root=true
type ShadowEndpointSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShadowEndpointSlice `json:"items"`
}
