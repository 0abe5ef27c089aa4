package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// Condition of a GeneveTunnel, and its reason. The API server writes it: it is the default of the status.
const (
	// EffectiveCondition tells whether an object has an effect.
	EffectiveCondition = "Effective"
	// ReasonWithoutEffect: the kind is there for manifests and scripts of Liqo v1, and nobody acts on it.
	ReasonWithoutEffect = "WithoutEffect"
)

// GeneveTunnelSpec is what Liqo v1 had its agents set up between a node and a gateway. Here it has no effect.
type GeneveTunnelSpec struct {
	// id of the tunnel. It has no effect.
	ID int32 `json:"id"`
	// internalNodeRef names an InternalNode. It has no effect.
	InternalNodeRef corev1.ObjectReference `json:"internalNodeRef"`
	// internalFabricRef names an InternalFabric. It has no effect.
	InternalFabricRef corev1.ObjectReference `json:"internalFabricRef"`
}

// GeneveTunnelStatus says that the object has no effect.
type GeneveTunnelStatus struct {
	// conditions: Effective, which is False.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:default={{type: "Effective", status: "False", reason: "WithoutEffect", message: "nodes and gateways are joined by VXLAN, with no object for each pair: nobody acts on a GeneveTunnel"}}
	Conditions []corev1beta1.Condition `json:"conditions,omitempty"`
}

// GeneveTunnel is known from Liqo v1, and has no effect: the overlay between nodes and gateways needs no object for each pair. It is served so
// that manifests and scripts which name it do not fail, and its status says so.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=gvtn
type GeneveTunnel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec GeneveTunnelSpec `json:"spec,omitzero"`
	// +optional
	// +kubebuilder:default={}
	Status GeneveTunnelStatus `json:"status,omitzero"`
}

// GeneveTunnelList is a list of GeneveTunnels.
// +kubebuilder:object:root=true
type GeneveTunnelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GeneveTunnel `json:"items"`
}
