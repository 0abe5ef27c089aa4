// Package servingcert makes, publishes and rotates the certificate with which our admission webhooks are served, so that no
// cert-manager is needed.
//
// Contract:
//   - A Keeper makes and publishes; Followers, one in each replica of the controller manager, serve. They are processes with accounts of
//     their own: API servers ask whom webhook configurations name about objects of all namespaces, and do what they answer, and no
//     admission policy sees who changes these. Whoever may change them does nothing else.
//   - One Secret, the authority's, holds everything, and is the Keeper's alone: the authorities that API servers should trust (ca.crt, the
//     issuing one first), the key of the issuing one (ca.key), the serving certificate and its key (tls.crt, tls.key). Another one
//     holds the same for Followers, without the authority's key, and the token of secret paths.
//   - What to issue is decided by Decide, a pure function of the authority's Secret and the time. Of two Keepers whoever writes first
//     wins (create, or update at a resourceVersion); the other one reads the result.
//   - Rotation never makes a call fail: a new authority is published beside the old one first, and issues only after Settle,
//     when every API server trusts it; the old one leaves after Overlap, when no replica serves a certificate of its any more.
//   - The Secrets and the webhook configurations are written only when they differ, and only if they are ours: a Secret that
//     holds data without our mark, or a configuration without our label, is left alone and reported.
//   - Keeper and Follower are Runnables that need no leader. Their clients must read from the API server and not from a cache:
//     they read and watch by name only, so that their rights can be narrowed to names.
//   - They look when one of their objects was changed, so that damage is repaired at once, and else a few times a day.
package servingcert
