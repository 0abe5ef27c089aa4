// Package provenance tells, at the provider, where what a pod of a consumer names comes from.
//
// A consumer cannot read what the provider put beside its own objects into a twin namespace: registry credentials, claims, what
// operators make. A pod could, as whatever it names is mounted for it. So before a pod is made, or gets another container, each
// Secret, ConfigMap and claim that it names is looked at.
//
// Contract:
//   - What exists has to carry the origin label of the pod's consumer, which admission lets nobody but that consumer put on an object
//     and which it cannot put on another's. Anything else is foreign.
//   - What does not exist is missing, unless the pod starts without it: a pod that is made before would get whatever comes to have the
//     name later.
//   - Everybody has the certificate authority of the API server (kube-root-ca.crt).
//   - ServiceAccounts are the provider's: which of them pods run as is said by its configuration, not by who made them.
//   - Claims that Kubernetes makes for ephemeral volumes get a class that the provider offers.
//   - Only metadata is read, live, of what no watch shows to be the consumer's; that something is is remembered for some seconds.
package provenance
