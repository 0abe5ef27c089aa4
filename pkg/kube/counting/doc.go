// Package counting bounds how many objects there are.
//
// Contract:
//   - Ensure keeps a ResourceQuota of ours, sees to it that Kubernetes counts it in full, never writes what is there already,
//     and never touches one that somebody else made.
//   - Older orders objects of which only the first are served: by creation, then by name.
package counting
