// Package sliceidentity makes an Identity of the certificate that a provider issued for a ResourceSlice. Endpoint, CA and proxy
// are those that were pinned at peering, in the control plane Identity: a provider that offers others in a slice's status
// changes nothing but the slice's Identity condition. A provider that takes a certificate back does not make an Identity
// vanish: what it no longer wants to serve, it refuses itself.
package sliceidentity
