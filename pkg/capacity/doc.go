// Package capacity does the arithmetic of grants: what a provider has free and offers, what a pod takes, whether it fits into what its user
// was granted, and the ledger of what every user has taken.
//
// Contract:
//   - Pure: no I/O and no clock but a passed one. A Ledger is safe for use by several goroutines.
//   - What a pod takes is what Kubernetes' own scheduler and ResourceQuota count: sidecars, init containers, pod-level
//     resources and overhead included, and one of "pods".
//   - A resource that the grant does not name is not granted, with the exception of "pods", which is unlimited unless named.
//   - The ledger never admits a pod that would take a user beyond its grant: reservations count until the pod that they were
//     made for is observed, or their time is over.
//   - What is offered (Pool) follows nodes and pods by sums: a change costs the same however many others there are, and the order of
//     changes does not matter. What a slice asks for by quantity is bounded by the Ceiling before.
package capacity
