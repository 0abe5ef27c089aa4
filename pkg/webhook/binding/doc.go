// Package binding is the admission of the scheduler's decisions: a pod that is larger than what any one node of the provider has left is not
// bound to the virtual node, however much all of them have together. It stays Pending at home, where the scheduler says why and tries again;
// bound, it would be stuck at the provider. The decision is capacity.WhyLarger.
//
// Few bindings are asked about, where API servers have policies: those to virtual nodes that are crowded, and those of namespaces that had a pod
// that may be large, which the webhook for pods labels when that pod is made.
//
// Whatever is not known lets the pod pass: nothing must wait for us.
package binding
