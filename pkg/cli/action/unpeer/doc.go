// Package unpeer ends a peering.
//
// Contract:
//   - Run needs both clusters and leaves nothing of the peering in either, except the tenant namespaces unless asked to.
//   - Preconditions first, as with peer: every right that is needed, in both clusters. Then the user is asked, with what goes.
//     Nothing is touched before.
//   - The order is the reverse of peering, and each step waits for the one before: virtual nodes first, while their rights at
//     the provider still hold, so that what they offloaded is removed; then namespace maps, slices, identity, tenant, and
//     the network unless the clusters also peer the other way round.
//   - Force checks rights and asks likewise. It needs one cluster, either side, and ends within its deadline although the other is
//     dead. It relies on the controllers of the living side; only finalizers whose sole purpose is to clean up at the dead peer are removed by hand, after
//     the controllers had their chance.
//   - Force gives up a peer that is lost: it does not answer, or took our rights back. One that works is left in order, and what protects
//     data there holds. Run, which needs the peer to work, refuses at once while it is lost, and names Force.
//   - Force removes what the peer has here also where nothing knows of the peer any more: twins are told by what we wrote on them.
//   - Idempotent and resumable. Both report what is left.
package unpeer
