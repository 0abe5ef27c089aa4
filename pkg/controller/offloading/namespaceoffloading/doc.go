// Package namespaceoffloading carries out, at the consumer, the wish that a namespace be extended to other clusters.
//
// Contract:
//   - For every selected cluster it puts one entry into that cluster's NamespaceMap (with a patch of just that key: the map is
//     shared by all offloaded namespaces), and binds the virtual kubelets of that cluster to their rights in the namespace. Both
//     go together and leave together.
//   - It labels the namespace so that the pod webhook sees it, except with strategy Local.
//   - A selector that cannot be parsed changes nothing, neither adds nor removes.
//   - When the NamespaceOffloading is deleted, its finalizer stays until no provider reports a twin any more, or the provider
//     is dead.
package namespaceoffloading
