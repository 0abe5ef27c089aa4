// Package tenant turns a Tenant into what a consumer needs at its provider: a certificate, bound to its tenant namespace.
//
//   - The handshake is verified with the nonce that this cluster made; a nonce serves one Tenant only.
//   - Cordoned tenants keep what they have; drained tenants lose their rights first and then everything that they sent.
//   - The certificate is issued again when two thirds of its life have passed.
package tenant
