// Package sibling knows what the pods use that are bound to the other virtual nodes of a provider. The virtual kubelet that
// reflects for all of them asks it, with the policy Referenced.
//
// Contract:
//   - What it knows comes from this cluster alone, never from the provider: who could invent pods could ask for any Secret.
//   - It watches pods by namespace and virtual node, with the reflection account, whose right to pods comes and goes with the
//     offloading of the namespace. It watches nothing while there is no sibling, or nobody wants to know.
//   - A pod counts from the moment that it is bound to a sibling until it is gone, whatever its phase. Of a pod no more is
//     kept than the names of the ConfigMaps and Secrets that it uses.
//   - That nothing uses an object is said only when the pods of all siblings in its namespace are known, and the watches of
//     them work. What is known to be used is said at any time.
package sibling
