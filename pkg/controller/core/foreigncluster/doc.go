// Package foreigncluster keeps one ForeignCluster for every peer: it appears when something of a peering exists, its status
// says which modules there are and what of them works, and it goes when nothing refers to the peer any more.
//
// Contract:
//   - What exists is read from Tenants, Identities, ResourceSlices, VirtualNodes, NamespaceMaps and virtual Nodes of the local
//     cluster, and what there is of the network from Configurations, gateways and Connections; whether a provider's API server
//     answers is asked from the Prober, which holds the one connection to the peer.
//   - The status is computed by the pure function Observe and written only if it differs.
//   - Only ForeignClusters with the label liqo.io/managed are ever deleted.
package foreigncluster
