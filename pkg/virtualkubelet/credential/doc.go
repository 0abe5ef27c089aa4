// Package credential makes a virtual kubelet a real node for its own cluster: it gets, keeps and renews the node's client
// certificate (system:node:<name>, signer kubernetes.io/kube-apiserver-client-kubelet) and serving certificate (signer
// kubernetes.io/kubelet-serving) through Kubernetes' CSR API.
//
// The client certificate is asked for with the bootstrap client, which is the reflection account; the serving certificate
// with the node's own identity, for the address of the pod and nothing else. Both live with their keys in one folder,
// readable by nobody else, so that a restarted container goes on with what it has. Renewed certificates are picked up by
// new connections at once, and old connections are closed.
//
// Where a control plane does not offer these signers, an Account takes the place of the Store: the virtual kubelet stays its
// ServiceAccount, whose rights are given by roles and confined by an admission policy, and serves with a self-signed
// certificate.
package credential
