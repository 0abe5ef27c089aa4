// Package reconcile holds the classes of errors and the one place that turns an error into what a reconciler does next.
//
//   - Transient: a call failed and may work the next time (time-outs, conflicts, server errors, throttling). Retried with
//     exponential back-off, 60 s at most.
//   - Waiting: nothing failed, something else has to happen first. It names what is waited for. Checked again after the
//     given time, but watches should wake the object up earlier.
//   - Refused: the user's or the provider's rules say no (admission, quota, Pod Security, RBAC). Retried slowly, because
//     rules change without us being told. A 403 is not the same as a lost permission: ask with a SelfSubjectAccessReview.
//     An object that the API server calls invalid is among them: so answers admission that gives no reason of its own.
//   - Terminal: the object itself must change (too large, or by a check of our own). Not retried until it does.
//
// What real API servers answer in which situation, and so which class it is, was measured against Kubernetes 1.36; Classify
// follows that table.
package reconcile
