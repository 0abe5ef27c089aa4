// Package advertise finds out under which address consumers reach this cluster's API server, and which CA they verify it with.
//
// What the administrator set wins; else the address that kubeadm published (ConfigMap kube-public/cluster-info), else the one
// that this process itself uses, unless it is the cluster's internal one. An address that no other cluster could use is never
// advertised: the error says which setting is missing.
package advertise
