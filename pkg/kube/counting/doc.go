// Package counting bounds how many objects there are.
//
// Contract:
//   - Ensure keeps a ResourceQuota of ours, sees to it that Kubernetes counts it in full, and never writes what is there already.
//   - Older orders objects of which only the first are served: by creation, then by name.
package counting
