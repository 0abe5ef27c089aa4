// Package isolation tells each gateway which pods of this cluster its peer may reach, where that is not all of them (networking.isolation).
//
// Contract:
//   - A peer reaches the pods of namespaces that are offloaded to it, and of the twins of its own namespaces. What the peer itself writes does not
//     count: of its twins the namespaces tell, which it cannot change.
//   - The addresses stand in status.sharedPods of the peer's Configuration, which its gateway reads: gateways read no pods. Changes are collected
//     for a second, so that it is written once a second at most.
//   - Whether it reaches others, too, stands in status.isolation: a gateway needs no setting of its own, and one that was told nothing yet lets
//     the peer reach none.
//   - Without isolation no pods are watched, and none are written; what an earlier setting left is removed.
package isolation
