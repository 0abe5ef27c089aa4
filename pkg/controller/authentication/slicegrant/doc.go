// Package slicegrant answers, at the provider, the ResourceSlices that consumers sent.
//
//   - The tenant is derived from the tenant namespace; what the slice says about itself must agree with it.
//   - The grant is a Quota, which the consumer cannot write; the slice's status is a copy of it. Whether it is cordoned is
//     kept there too, so that deleting and recreating a slice does not lift a cordon.
//   - Slices of classes other than "default" and "" get their certificate; their resources are for others to grant.
package slicegrant
