// Package supply follows, at the provider, what the nodes of the cluster have and its pods take, and keeps what each ResourceSlice is
// offered of it.
//
//   - Only sums are kept of pods, whoever they are of: see capacity.Pool.
//   - An offer follows what is free both ways, and is told at most once in Period; what differs too little is not told.
//   - Nothing is offered before all nodes and pods were seen. Nobody looks at them before a first slice asks.
//   - What cannot be believed of a node or a pod is logged, and what was known of it before still counts.
package supply
