// Package caller finds out who the caller of one of our endpoints is and what it may do, by asking this cluster's API server,
// as a kubelet does. It is what k8s.io/apiserver offers for that, without its webhooks' CEL, tracing and gRPC, which would make
// up a third of each of our programs.
package caller
