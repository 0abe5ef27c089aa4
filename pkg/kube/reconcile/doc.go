// Package reconcile holds the classes of errors and the one place that turns an error into what a reconciler does next.
//
//   - Transient: a call failed and may work the next time (time-outs, conflicts, server errors, throttling). Retried with
//     exponential back-off, 60 s at most.
//   - Waiting: nothing failed, something else has to happen first. It names what is waited for. Checked again after the
//     given time, but watches should wake the object up earlier.
//   - Refused: the user's or the provider's rules say no (admission, quota, Pod Security, RBAC), or the object is found invalid,
//     which is what admission that gives no code answers with, too. Retried slowly, because rules change without us being told.
//     A 403 is not the same as a lost permission: ask with a SelfSubjectAccessReview.
//   - Terminal: the object itself must change (too large, or what we find wrong ourselves). Not retried until it does.
//
// What real API servers answer in which situation, and so which class it is, was measured against Kubernetes 1.36; Classify
// follows that table.
package reconcile
