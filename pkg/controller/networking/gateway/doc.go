// Package gateway makes of GatewayServers and GatewayClients the gateways that run, one per peer.
//
// Contract:
//   - A gateway is rendered from its template to a WgGatewayServer or WgGatewayClient, and that is made a Deployment, a Service where the
//     peer comes here, a ServiceAccount and its rights. What is edited in any of them is put back; what somebody else made is left alone.
//   - The Secret with its keys is made once and never rewritten: the peer knows the public one. A Secret that the user names is only read.
//   - All is owned by the GatewayServer or GatewayClient and goes with it. Nothing waits for us when it is deleted. The one object that
//     cannot be owned, the ClusterRoleBinding, is removed when the gateway that it is named after is gone.
//   - Where the gateway is reached, by its peer and by nodes, is told in both statuses. What was told stays until something else is known.
//   - A gateway tells of its tunnel itself, in its Connection. Once it has had no ready pod for a while, that it is connected is taken back: it
//     may say so again.
package gateway
