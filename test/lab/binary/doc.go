// Package binary provides the programs that a lab runs: Kubernetes' own
// binaries, etcd, kwok, CoreDNS, flannel and the lab's volume provisioner.
//
// They are built from Go modules (hack/kube and its sub-modules; the
// provisioner from the product's module) into a cache outside the checkout:
// $LIQO_LAB_CACHE, or liqo-lab under the user's cache directory. Each module's
// binaries live in bin/<module>-<hash of what decides their content>, so a
// change of one version rebuilds that module's binaries only. A file lock makes
// parallel callers wait for the one that builds.
//
// When $LIQO_LAB_BIN names a directory, its files are used and nothing is built.
package binary
