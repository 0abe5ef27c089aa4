// Package revoke takes the reach away that a peer has into this cluster, because an identity was stolen or the peer is not to be trusted any
// more.
//
// Contract:
//   - It needs this cluster alone, and does not talk to the peer.
//   - Of a consumer, all certificates lose their rights at once; what it has here stays for the consumer that is peered again, with another key.
//   - A provider is not talked to any more. Its virtual nodes go, and their pods with them: what it holds of them are tokens, which are worth
//     nothing without the pod.
//   - The tunnel between the two networks is cut, in whichever direction they are peered: gateway and the peer's key go. The ranges stay,
//     and how the gateway was made.
//   - Preconditions first; then the user is asked. Idempotent and resumable.
package revoke
