// Package reflection decides what a local object looks like at a provider, or why it stays at home. It holds one file per
// reflected kind and the table of kinds; it knows no client, no clock and no cache.
//
// Contract:
//   - Everything is a pure function of plain values. Inputs are never changed; results may share maps with them.
//   - The remote object carries the two halves of our mark: labels with the IDs of origin and destination, and an
//     annotation with the UID of the local object. Local labels and annotations that mean ownership never cross.
//   - A result is either the remote object that is wanted or a Skip with a reason for machines and a message for people.
//     A Skip that keeps leaves a remote object from better times alone.
//   - Differences compares what is wanted with what is there field by field. What others added to the metadata at the
//     provider stays; what was reflected there and vanished at home goes.
//   - What comes from the peer (live objects, statuses) is hostile input: it is compared, bounded and validated, never
//     followed.
package reflection
