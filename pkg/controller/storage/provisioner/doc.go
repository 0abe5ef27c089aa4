// Package provisioner gives claims of the storage fabric their volume when their first pod runs on a physical node, gives up
// what is behind such volumes when their claims are gone, and shows on claims that their volume has grown.
//
// A claim becomes a second one in the storage namespace, of the cluster's real class; once that has its volume, a volume with
// the same source is made for the first claim. Claims whose first pod runs on a virtual node belong to its virtual kubelet.
package provisioner
