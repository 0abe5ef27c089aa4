// Package identity holds every decision about who is who between clusters: the names of users and groups, keys, certificate
// signing requests, the handshake that proves the possession of a key, what an issued certificate must look like, and the
// kubeconfig that is made from it.
//
// Contract:
//   - Pure. No I/O and no clock: the time is an argument. Randomness is used only to make keys, nonces and signatures.
//   - What a peer wrote is hostile input. Every function that takes bytes of a peer bounds them first (MaxInput, MaxCSR),
//     then parses, then compares with what was expected, and accepts nothing that it was not told to expect.
//   - A refusal is a *Refusal with a stable Reason, meant for a condition, an Event and a metric; its message quotes what came
//     from the peer, cut to a bounded length. Errors that are not a Refusal are mistakes of the caller.
//   - Names given to peers start with UserPrefix and so can never equal a user or group that the cluster already has. The only
//     names outside that prefix are those of nodes, and they are never derived from what a peer wrote.
//   - An Expectation with an empty name accepts nothing: forgetting to say what is expected never opens a door.
package identity
