// Package keep has objects of ours be in a cluster as they are wanted. Whoever makes, changes or removes one of ours says what is wanted, and
// leaves the rest to a Keeper.
//
// Contract:
//   - What is absent is created; what differs is updated in the version that was read; what is as wanted is not written.
//   - What somebody else made is left alone, and told in one way: reconcile.NotOurs.
//   - Labels, annotations and owners that others added stay. A controller is the one that is wanted, because an object has only one.
//   - A binding whose role differs is made anew: Kubernetes lets no role of a binding change.
//   - Only what is ours is removed, and only in the version that was read.
package keep
