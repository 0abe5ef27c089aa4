// Package secretledger publishes, at the provider, what became of the Secrets that consumers reflect.
//
// Consumers may write Secrets in their twin namespaces, but not read them: there may be Secrets of the provider beside
// theirs. So that they need not write everything again to know that it is there, this controller keeps one ConfigMap,
// liqo-secret-ledger, in each twin namespace. It lists the Secrets that carry that consumer's origin label, each with the
// UID of its origin and a hash (reflection.SecretHash), never any content.
//
// Contract:
//   - The consumer is the one that the twin namespace belongs to, never one that a Secret names.
//   - Secrets are watched namespace by namespace, as the controller manager's rights are; only hashes are kept in memory.
//   - Nothing is published before the first list is in, nor when nothing changed, nor more often than once a second.
//     A ledger that was published stays, if need be empty; without Secrets none is made.
//   - What does not fit into one ConfigMap is left out in the order of names; an annotation and an Event say so.
package secretledger
