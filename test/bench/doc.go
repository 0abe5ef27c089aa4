// Command bench measures what offloading costs, by `make bench`.
//
// It starts two clusters with simulated nodes, installs and peers Liqo with the binaries of this checkout, and runs every
// scenario side by side, in one run, with two others: vanilla is the same work straight at the provider's nodes; floor is a
// stub kubelet that makes one request at the provider for each pod and writes one status back, and has no other feature
// (package floor). So every figure comes with what it is to be compared with on the same machine at the same time.
//
// Requests are counted from the audit logs of both API servers, CPU seconds and memory come from /proc, and all moments are
// wall clock readings of one process, taken when an informer is told. Nothing here passes or fails because of a figure: the
// goals are printed beside the figures, and how they compare is for the reader to judge.
package main
