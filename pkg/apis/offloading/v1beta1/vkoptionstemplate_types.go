package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReflectionType is the policy of one kind's reflection.
// +kubebuilder:validation:Enum=DenyList;AllowList;Referenced;CustomLiqo
type ReflectionType string

const (
	// DenyList reflects everything but what is annotated liqo.io/skip-reflection.
	DenyList ReflectionType = "DenyList"
	// AllowList reflects only what is annotated liqo.io/allow-reflection.
	AllowList ReflectionType = "AllowList"
	// Referenced reflects only what pods that are bound to virtual nodes of the provider use. Only ConfigMaps and Secrets know it.
	Referenced ReflectionType = "Referenced"
	// CustomLiqo kinds follow rules of their own.
	CustomLiqo ReflectionType = "CustomLiqo"
)

// ReflectorConfig configures the reflection of one kind.
type ReflectorConfig struct {
	// workers is how many objects of the kind are handled at a time; 0 turns the kind off.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	NumWorkers int32 `json:"workers"`
	// type is the policy.
	// +optional
	Type ReflectionType `json:"type,omitempty"`
	// statusBack brings what the provider says in an object's status into that of the local object. Only Ingresses know it:
	// the addresses of their load balancer come back.
	// +optional
	StatusBack bool `json:"statusBack,omitempty"`
}

// VkOptionsTemplateSpec is how virtual kubelets are run.
type VkOptionsTemplateSpec struct {
	// createNode is the default of VirtualNode.spec.createNode.
	// +kubebuilder:default=true
	// +optional
	CreateNode bool `json:"createNode"`
	// disableNetworkCheck is the default of VirtualNode.spec.disableNetworkCheck.
	// +kubebuilder:default=false
	// +optional
	DisableNetworkCheck bool `json:"disableNetworkCheck"`
	// containerImage of the virtual kubelet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ContainerImage string `json:"containerImage"`
	// metricsEnabled says whether metrics are served.
	MetricsEnabled bool `json:"metricsEnabled"`
	// metricsAddress that metrics are served on.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	MetricsAddress string `json:"metricsAddress,omitempty"`
	// labelsNotReflected are label keys that stay at home.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	LabelsNotReflected []string `json:"labelsNotReflected,omitempty"`
	// annotationsNotReflected are annotation keys that stay at home.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	AnnotationsNotReflected []string `json:"annotationsNotReflected,omitempty"`
	// reflectorsConfig is the reflection of each kind, by the kind's lower-case name.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	ReflectorsConfig map[string]ReflectorConfig `json:"reflectorsConfig,omitempty"`
	// resources of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// extraArgs of the container. Those that a virtual kubelet does not start with are refused.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ExtraArgs []string `json:"extraArgs,omitempty"`
	// extraAnnotations of the Deployment and its pods.
	// +optional
	ExtraAnnotations map[string]string `json:"extraAnnotations,omitempty"`
	// extraLabels of the Deployment and its pods.
	// +optional
	ExtraLabels map[string]string `json:"extraLabels,omitempty"`
	// nodeExtraAnnotations of the Node.
	// +optional
	NodeExtraAnnotations map[string]string `json:"nodeExtraAnnotations,omitempty"`
	// nodeExtraLabels of the Node.
	// +optional
	NodeExtraLabels map[string]string `json:"nodeExtraLabels,omitempty"`
	// replicas of the Deployment; one is active at a time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	Replicas *int32 `json:"replicas,omitempty"`
	// imagePullSecrets of the pods.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// pullPolicy of the image.
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
	// tolerations of the pods.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// priorityClassName of the pods; empty means none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// VkOptionsTemplate is how virtual kubelets are run; VirtualNodes refer to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=vkot;vkopt
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VkOptionsTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VkOptionsTemplateSpec `json:"spec"`
}

// VkOptionsTemplateList is a list of VkOptionsTemplates.
// +kubebuilder:object:root=true
type VkOptionsTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VkOptionsTemplate `json:"items"`
}
