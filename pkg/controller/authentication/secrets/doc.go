// Package secrets is how the authentication controllers handle Secrets, which they may touch in tenant namespaces only.
//
//   - Store reads live and writes. Right after a tenant namespace appeared, the rights there are not effective yet: this
//     becomes a short wait, not a refusal.
//   - Key pairs live in Secrets of their own: one per Identity, never shared between peers.
//   - Watch follows the Secrets of tenant namespaces one namespace at a time, metadata only, and wakes controllers.
package secrets
