// Package peering tests what a consumer gets of a provider and what it does not: tenants, handshakes, certificates, grants, twins, and
// objects that it writes there past every virtual kubelet. Its tests run side by side, each with tenants of its own: see package world.
package peering
