// Package signoflife tells, at the provider, when a consumer was heard of last, for pods that are to be stopped without that.
//
// Contract:
//   - A consumer's virtual kubelet renews one Lease in its tenant namespace. The Lease is made here, once a pod asks for it, and so is the
//     right to renew it, by name.
//   - A sign is when this cluster's API server was written to, as the Lease's managed fields have it. What the Lease says itself is by the
//     consumer's clock and does not count. So a restart forgets nothing.
//   - A consumer that never gave a sign may be one that gives none: nothing follows from its silence.
package signoflife
