// Package residue lists what is left of Liqo, or of one peering, in a cluster.
//
// Contract:
//   - Read-only. What the user may not list is reported as an error, never as absent.
//   - An item is named as kubectl takes it: resource, then namespace/name.
//   - Only what Liqo made is listed, told by its labels, its API groups or the names that the chart fixes.
package residue
