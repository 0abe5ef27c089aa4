// Package trace says which way a packet takes through peered clusters, from the objects that their agents work from.
//
// Contract:
//   - It is pure, and asks no kernel: it says what would happen if the agents have done what their objects ask for. Whether they have is told by
//     the conditions of InternalNodes and Connections.
//   - Of a CNI it knows that nodes reach each other's pods, of the world outside that nodes reach what is no pod. Policies, kube-proxy and what a
//     CNI masquerades are not looked at.
//   - Where a cluster is not known the way ends at the tunnel to it.
package trace
