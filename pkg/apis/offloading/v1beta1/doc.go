// Package v1beta1 holds the API of group offloading.liqo.io: which namespaces are extended to which clusters
// (NamespaceOffloading, NamespaceMap), the virtual nodes and how their virtual kubelets are run (VirtualNode,
// VkOptionsTemplate), and what a provider runs for a consumer within which limits (ShadowPod, ShadowEndpointSlice, Quota).
//
// +kubebuilder:object:generate=true
// +groupName=offloading.liqo.io
package v1beta1
