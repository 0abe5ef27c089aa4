package v1beta1

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// DeploymentTemplate is the virtual kubelet's Deployment.
type DeploymentTemplate struct {
	// metadata of the Deployment.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec of the Deployment.
	// +optional
	Spec appsv1.DeploymentSpec `json:"spec,omitempty"`
}

// Affinity is the part of a pod's affinity that an offloading patch may set.
type Affinity struct {
	// nodeAffinity that the pods get at the provider.
	// +optional
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty"`
}

// NodeAffinity says which of the provider's nodes the pods run on.
type NodeAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution are the terms that a provider's node must match.
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *corev1.NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`
	// preferredDuringSchedulingIgnoredDuringExecution are terms that a provider's node had better match, with weights from 1 to 100.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.weight >= 1 && t.weight <= 100)",message="a weight is from 1 to 100"
	PreferredDuringSchedulingIgnoredDuringExecution []corev1.PreferredSchedulingTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// OffloadingPatch is what every pod and object of a virtual node gets, or loses, on its way to the provider.
type OffloadingPatch struct {
	// nodeSelector that is added to the pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations that are added to the pods.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity that is added to the pods.
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`
	// annotationsNotReflected are annotation keys that stay at home.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AnnotationsNotReflected []string `json:"annotationsNotReflected,omitempty"`
	// labelsNotReflected are label keys that stay at home.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	LabelsNotReflected []string `json:"labelsNotReflected,omitempty"`
	// runtimeClassName that the pods get at the provider unless they name one.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`
}

// VirtualNodeSpec is a share of a provider's resources as this cluster sees it.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.kubeconfigSecretRef) || has(self.kubeconfigSecretRef)",message="kubeconfigSecretRef cannot be removed"
type VirtualNodeSpec struct {
	// clusterID of the provider. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterID cannot be changed; create another VirtualNode"
	ClusterID corev1beta1.ClusterID `json:"clusterID"`
	// createNode says whether a Node is registered (default true); without one only reflection runs.
	// +optional
	CreateNode *bool `json:"createNode,omitempty"`
	// kubeconfigSecretRef names the Secret, in the same namespace, with the kubeconfig for the provider.
	// +optional
	KubeconfigSecretRef *corev1.LocalObjectReference `json:"kubeconfigSecretRef,omitempty"`
	// vkOptionsTemplateRef names the VkOptionsTemplate that the virtual kubelet is run with; defaults to the chart's.
	// +optional
	VkOptionsTemplateRef *corev1.ObjectReference `json:"vkOptionsTemplateRef,omitempty"`
	// template of the virtual kubelet's Deployment; rendered from the VkOptionsTemplate if left out.
	// +optional
	Template *DeploymentTemplate `json:"template,omitempty"`
	// offloadingPatch is applied to everything that crosses through this node.
	// +optional
	OffloadingPatch *OffloadingPatch `json:"offloadingPatch,omitempty"`
	// images that the provider holds already.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	Images []corev1.ContainerImage `json:"images,omitempty"`
	// resourceQuota is the capacity of the node (field hard).
	// +optional
	ResourceQuota corev1.ResourceQuotaSpec `json:"resourceQuota,omitempty"`
	// labels of the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Annotations map[string]string `json:"annotations,omitempty"`
	// taints of the Node, besides virtual-node.liqo.io/not-allowed.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Taints []corev1.Taint `json:"taints,omitempty"`
	// storageClasses that the provider offers.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	StorageClasses []authv1beta1.StorageType `json:"storageClasses,omitempty"`
	// ingressClasses that the provider offers.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	IngressClasses []authv1beta1.IngressType `json:"ingressClasses,omitempty"`
	// loadBalancerClasses that the provider offers.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	LoadBalancerClasses []authv1beta1.LoadBalancerType `json:"loadBalancerClasses,omitempty"`
	// providerNodes are those that the pods run on, as the provider says.
	// +optional
	ProviderNodes *authv1beta1.ProviderNodes `json:"providerNodes,omitempty"`
	// disableNetworkCheck keeps the state of the network fabric out of the readiness of the Node and its pods.
	// +optional
	DisableNetworkCheck *bool `json:"disableNetworkCheck,omitempty"`
}

// VirtualNodeStatus is what became of a VirtualNode.
type VirtualNodeStatus struct {
	// observedGeneration is the generation that the status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: VirtualKubelet and Node (None, Creating, Running, NotReady, Draining or Deleting). Programs of Liqo v1 take whatever is not
	// Running for a fault, so what they do not know stands in summary. Earlier versions had it here.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.type in ['Ready','Rights','LabelsChanged','AddressesShown','RemovalsHeld','Cordoned'] ? c.status in ['True','False','Unknown'] : c.status in ['None','Creating','Running','NotReady','Draining','Deleting'])",message="Ready, Rights, LabelsChanged, AddressesShown, RemovalsHeld and Cordoned must be True, False or Unknown; VirtualKubelet and Node one of None, Creating, Running, NotReady, Draining, Deleting"
	Conditions []corev1beta1.Condition `json:"conditions,omitempty"`
	// summary has what Liqo v1 knows no condition for, each True, False or Unknown: Ready, which sums the virtual node up, and Rights, Cordoned,
	// LabelsChanged, AddressesShown and RemovalsHeld where they apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.status in ['True','False','Unknown'])",message="what sums a virtual node up must be True, False or Unknown"
	Summary []corev1beta1.Condition `json:"summary,omitempty"`
}

// All are the conditions that Liqo v1 knows, and those of the summary. Earlier versions have all of them among the conditions.
func (s *VirtualNodeStatus) All() []corev1beta1.Condition {
	return slices.Concat(s.Conditions, s.Summary)
}

// VirtualNode is a share of a provider's resources that appears as a Node of this cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=vn;vnode;virno;vno
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="ClusterID",type=string,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Create Node",type=boolean,JSONPath=`.spec.createNode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.summary[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Node",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Node')].status`
// +kubebuilder:printcolumn:name="VirtualKubelet",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='VirtualKubelet')].status`
type VirtualNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VirtualNodeSpec `json:"spec"`
	// +optional
	Status VirtualNodeStatus `json:"status,omitempty"`
}

// VirtualNodeList is a list of VirtualNodes.
// +kubebuilder:object:root=true
type VirtualNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualNode `json:"items"`
}
