// Package v1beta1 holds the API of group core.liqo.io: the ForeignCluster, one per known peer, and the words that all
// groups share (the format of a cluster ID, the mixed condition list, labels and annotations of core.liqo.io's objects).
//
// The names are those of Liqo v1. A ForeignCluster is written by liqo-controller-manager only; users read it.
//
// +kubebuilder:object:generate=true
// +groupName=core.liqo.io
package v1beta1
