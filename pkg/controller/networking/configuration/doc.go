// Package configuration keeps, for each peer, how the two clusters see each other: it tells a Configuration this cluster's ranges, judges those
// that the peer announces, has a Network made for each of them, and collects what those were given.
//
// Contract:
//   - What a peer announces is hostile. It is taken as a whole or not at all. That it overlaps ranges of this cluster or of other peers is no
//     reason to refuse it: it is seen under another range.
//   - status.remote is whole or not there. It stays as it is until there is another one: when the peer announces other ranges, or such that
//     are refused, what was given before is still used.
//   - The further external ranges of both sides are kept here: none without spec.transit. Those of this cluster are how it sees its other peers
//     with transit; of a peer it is only its own, so that nothing goes round. Those of the peer are what its gateway announced, or else they
//     stay as they are. Of either side, what is too much or refused is left out, and told.
//   - Networks that are needed no more go after the status was written that does without them.
package configuration
