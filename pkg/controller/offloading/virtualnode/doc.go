// Package virtualnode turns, at the consumer, a VirtualNode into a Node and the virtual kubelet that serves it.
//
// Contract:
//   - It makes the virtual kubelet's ServiceAccount, rights and Deployment (rendered by the pure function Render), the
//     NamespaceMap of the provider and the Node object. Node.status and the Lease belong to the virtual kubelet.
//   - On the Node it owns exactly the labels, annotations and taints listed in an annotation there; those that others added
//     stay. The Deployment is written only when its rendering changed. A restart writes nothing.
//   - Deletion never blocks a worker: each pass takes the steps that are possible (cordon, drain, virtual kubelet, rights, Node,
//     NamespaceMap) and names what the next one waits for. Evictions respect PodDisruptionBudgets until the drain's deadline.
//     Pods of a dead provider are removed at once.
//   - A Node of the name that is not this VirtualNode's is never touched.
package virtualnode
