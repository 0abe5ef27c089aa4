// Package v1beta1 holds the API of group authentication.liqo.io: who a peer is (Tenant at the provider, Identity at the
// consumer), what it asks for (ResourceSlice) and how its certificates are renewed (Renew).
//
// Specs of ResourceSlice and Renew travel from the consumer to the provider, their statuses travel back. What a peer wrote
// is input, never authority: the granted quantity, for example, stands in a Quota at the provider; the slice's status
// is a copy of it.
//
// +kubebuilder:object:generate=true
// +groupName=authentication.liqo.io
package v1beta1
