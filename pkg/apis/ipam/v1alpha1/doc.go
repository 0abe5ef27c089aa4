// Package v1alpha1 holds the API of group ipam.liqo.io: ranges that this cluster has given to peers or keeps for itself (Network), and
// addresses of its external range (IP).
//
// The names are those of Liqo v1. What a Network or an IP has been given stands in its status, and nowhere else.
//
// +kubebuilder:object:generate=true
// +groupName=ipam.liqo.io
package v1alpha1
