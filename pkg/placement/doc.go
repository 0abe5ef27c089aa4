// Package placement decides where a namespace and its pods may go: the names of twin namespaces, which clusters a selector
// selects, what a pod is given so that the scheduler does it, which of a consumer's wishes a provider grants, and how the
// answers are summed up.
//
// Contract:
//   - Pure: no I/O, no clock. Inputs are not modified, except the pod that MutatePod is given and the spec that
//     KeepOffVirtualNodes is.
//   - What a peer wrote (NamespaceMapStatus at the consumer, NamespaceMapSpec at the provider) is input, never authority: the
//     mapping in force is EffectiveMapping, local wish and remote acknowledgement together, and twins pass TwinRules.
//   - The same input always gives the same output: no result depends on the order of a map.
package placement
