// Package authenticate makes a consumer cluster known to a provider, and undoes it.
//
// The handshake runs through objects in both tenant namespaces, which the controllers on each side fill: the provider's nonce,
// the consumer's signature of it, the Tenant at the provider with its certificate, and the Identity at the consumer. No private
// key ever passes through this process.
//
// Contract:
//   - Idempotent and resumable: whatever exists and fits is left alone, so a second run writes nothing.
//   - A nonce that another Tenant used up is replaced, never reused.
//   - Each wait has the deadline of the context, names what it waits for, and ends early when the controllers say that it will
//     not succeed; the error then carries their message.
//   - Run checks the preconditions first; Handshake takes a Pair for which they were checked.
package authenticate
