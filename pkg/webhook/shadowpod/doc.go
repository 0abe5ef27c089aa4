// Package shadowpod is the admission, at the provider, of what consumers want to run.
//
// Contract:
//   - Who asks is told by the requester's groups alone: a user of exactly one consumer's group. The namespace must be that
//     consumer's twin and the object must carry its origin label.
//   - Mutation records the requester in the label liqo.io/creator-user; validation holds every later change against it.
//   - A specification passes only if it decodes strictly (no unknown fields), is on the allow-list, and does not change later
//     except for what Kubernetes lets change in a running pod.
//   - Quotas are checked against a ledger that is fed by the informer of ShadowPods and bridges the time until its events with
//     reservations. Until the ledger knows everything that exists, answers are errors that are worth a retry.
package shadowpod
