// Package daemonset is the admission of DaemonSets where they are to be kept off virtual nodes and the API server cannot do that by
// itself. The decision is placement.KeepOffVirtualNodes.
//
// From Kubernetes 1.36 on the chart's policy liqo-daemonsets does it, and nobody asks here.
package daemonset
