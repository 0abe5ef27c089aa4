// Package progress is how the verbs of liqoctl tell what they are doing, without knowing who listens.
//
// Contract:
//   - A verb begins a Task for each step and ends it exactly once: Done, Warn or Fail. Run does so for a function.
//   - Waiting may be called as often as there is something new to say; equal texts in a row say nothing.
//   - Cluster is the name that the user knows the cluster by; it is empty for steps that concern no single cluster.
//   - Observers may be called from several goroutines.
//   - Nothing secret is ever told to an observer.
package progress
