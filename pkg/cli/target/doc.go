// Package target is the cluster, or the pair of clusters, that a command works on: how the user names it, how it is reached,
// and what must hold there before anything is changed.
//
// Contract:
//   - Flags are kubectl's own, and the same set with the prefix remote- for the second cluster.
//   - Opening a cluster makes no call. The first call is Reach, which has its own short deadline.
//   - Preconditions are read-only and come before the first write: reachable, Liqo installed, not the same cluster twice, versions
//     that fit, and every right that the verb needs, asked for one by one so that the missing one can be named.
//   - Objects are written through Ensure: they get the user's global labels and annotations, and nothing is written when the
//     object is already as wanted. Objects are removed through Remove, which tolerates that they are gone.
//   - Errors name the object and the cluster.
package target
