// Package kubelet is what a virtual kubelet runs with the identity of its node, as a kubelet does: the Node's status and Lease, the pods with their
// tokens, and the endpoint that answers for them. Once there is an identity it makes these parts, which follow what is in force.
//
// A replica that stands by has prepared: it has the node's certificates, and its endpoint answers, before it is its turn.
package kubelet
