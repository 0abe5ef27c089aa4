// Package addressing says how the addresses of one cluster look from another one, and which ranges a peer may claim as its
// own.
//
// Contract:
//   - A Mapping turns prefixes of one cluster into prefixes of the same length, and back: each address inside has exactly one
//     counterpart. Addresses outside have none.
//   - The zero Mapping is the identity: the clusters see each other's addresses as they are.
//   - Allocate chooses the prefixes under which a cluster sees a peer's. The cluster that receives an address translates it, with a
//     Mapping made of its own Configuration of the peer: what crosses are the sender's own addresses.
//   - Accept is the only judge of announced ranges: what it does not return is no peer's.
package addressing
