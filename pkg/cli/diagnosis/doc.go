// Package diagnosis says in one sentence why something does not run.
//
// Contract:
//   - The decisions are pure functions of objects that were read; Deployment reads them.
//   - The first cause that explains the others is told: unschedulable before waiting, waiting before not ready.
//   - An empty answer means that nothing is wrong.
package diagnosis
