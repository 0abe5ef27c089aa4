// Package resourceslice admits ResourceSlices. A slice that asks a provider must have a name that no other such slice of this
// cluster has, because its VirtualNode and Node are named after it. On the other side, a consumer may not change whose a
// replicated slice is, nor lift a cordon.
package resourceslice
