// Package upstream runs Kubernetes' own end-to-end tests with all of their pods on a virtual node, and judges the outcome.
//
// Contract:
//   - The tests are Kubernetes' (k8s.io/kubernetes/test/e2e at the lab's version, built by hack/kube/e2e), unchanged; which of them
//     run is written down by name (testdata), so that figures of different days can be compared.
//   - [Gate] stands before the consumer's API server. A namespace that is created through it is offloaded, with strategy Remote and
//     EnforceSameName, before whoever creates it has the answer: no pod can come before. Everything else it passes on as it is.
//   - [Images] are what the tests' images are here, where there is no registry. Each says what it is made of.
//   - [Witness] counts the pods that really started at the provider, and those that ran anywhere else.
//   - [Judge] compares outcomes with the expected failures, each of which has its reason. An unexpected failure is a finding, and so
//     is an expected failure that passes.
package upstream
