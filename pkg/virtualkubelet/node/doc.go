// Package node reports the state of a virtual node to its own cluster, as a kubelet does: capacity, addresses, version and
// conditions in Node.status, written only when they change, and a heartbeat through the node's Lease.
//
// The Node object itself is made by liqo-controller-manager: NodeRestriction keeps a node from setting its own labels and
// taints. Until it is there, there is nothing to report.
//
// Readiness follows the connection to the provider: when its API server stops to answer, Ready becomes False with the
// reason, and the Lease is no longer renewed. Nothing is polled: changes of the connection, of the VirtualNode and of the
// Node start a new look.
package node
