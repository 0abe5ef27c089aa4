// Package replication copies what this cluster wants from a provider (ResourceSlice, NamespaceMap, Renew) into the tenant
// namespace there, and brings the answers back: one reflector per control plane Identity, each with its own connection, so that
// a peer that hangs holds nobody else up.
//
//   - Specs, labels and the annotations under replicated.liqo.io/ travel, also after creation, and only when they differ.
//   - A copy is ours if it carries our cluster's label and the UID of an object of ours. Anything else of that name is never
//     touched. The copy of an earlier object of the same name goes before the new one is made.
//   - Statuses are input: bounded and validated before they are merged. Ready is computed here, never copied.
//   - A local object keeps its finalizer until its copy is gone, or until it is certain that it can no longer be removed: the
//     peer is marked as permanently unreachable and does not answer, or it took our rights away, which is asked for
//     explicitly, because a 403 may also come from its admission rules.
//   - Without a connection nothing is concluded and nothing is deleted. When the peer is back, everything is tried at once.
package replication
