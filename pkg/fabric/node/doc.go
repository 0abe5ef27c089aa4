// Package node is the agent of a node: it has the node's pods, and the node itself, reach the peers' by the gateways.
//
// Contract:
//   - What it needs to know are all InternalFabrics and IPs, and its own InternalNode. As long as something is missing, what is in the kernel
//     stays. Where there are no fabrics, nothing of ours stays.
//   - It tells the others the addresses that its node sends from, and how it is, in its InternalNode's status; nothing is written that is there.
//   - Nothing is removed when it ends.
package node
