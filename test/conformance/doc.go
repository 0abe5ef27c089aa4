// Command conformance runs Kubernetes' own end-to-end tests twice in a lab of two real clusters: straight at the provider, as a control,
// and at the consumer with every namespace of the tests offloaded, so that all of their pods run on the virtual node.
//
// Contract:
//   - `make conformance` does everything; it needs root. docs/conformance.md has the figures and says how to read them.
//   - The lab is named "conformance". LIQO_CONFORMANCE_KEEP=1 keeps it, so that the next run upgrades Liqo instead of starting anew.
//   - It fails when a test fails that is not written down as an expected failure, when one that is written down passes, and when a pod
//     of the tests runs anywhere else than on the virtual node.
//   - Output, and ginkgo's own reports of both runs, are in dist/conformance.
package main
