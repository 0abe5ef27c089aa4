// Package networktest finds out what is wrong with the network between two clusters, and says it in one sentence.
//
// Contract:
//   - What is known is read first (facts), then judged by pure functions (checks). What is wrong is told in the order of causes: what comes first
//     explains what comes after it.
//   - Nothing is written, and no pod is made: agents that run anyway are asked, by exec, what they want, what the kernel has, and whom they reach.
//   - Without the peer's cluster, what only that knows is left out, and told as skipped.
package networktest
