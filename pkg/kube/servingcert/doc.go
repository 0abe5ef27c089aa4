// Package servingcert makes, publishes and rotates the certificate with which our admission webhooks are served, so that no
// cert-manager is needed.
//
// Contract:
//   - One Secret holds everything: the authorities that API servers should trust (ca.crt, the issuing one first), the key of
//     the issuing one (ca.key), the serving certificate and its key (tls.crt, tls.key).
//   - What to issue is decided by Decide, a pure function of the Secret and the time. Every replica runs it. Whoever writes
//     first wins (create, or update at a resourceVersion); the others read the result.
//   - Rotation never makes a call fail: a new authority is published beside the old one first, and issues only after Settle,
//     when every API server trusts it; the old one leaves after Overlap, when no replica serves a certificate of its any more.
//   - The Secret and the webhook configurations are written only when they differ, and only if they are ours: a Secret that
//     holds data without our mark, or a configuration without our label, is left alone and reported.
//   - Manager is a Runnable for every replica, leader or not. Its client must read from the API server and not from a cache:
//     it reads and watches by name only, so that its rights can be narrowed to names.
//   - It looks when one of the objects was changed, so that damage is repaired at once, and else a few times a day.
package servingcert
