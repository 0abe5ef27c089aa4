// Package tenant turns a Tenant into what a consumer needs at its provider: a certificate, bound to its tenant namespace.
//
//   - The handshake is verified with the nonce that this cluster made; a nonce serves one Tenant only.
//   - Cordoned tenants keep what they have; drained tenants lose their rights first and then everything that they sent.
//   - The certificate is issued again when two thirds of its life have passed.
//   - A consumer that has asked for none for long is said to be silent, by this cluster's clock. Nothing follows from that but a condition and
//     an Event; and nothing is said as long as a request waits for our answer, or none is recorded.
package tenant
