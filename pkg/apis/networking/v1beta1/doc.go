// Package v1beta1 holds the API of group networking.liqo.io: which ranges two clusters have (Configuration), the gateways between them
// (GatewayServer, GatewayClient, PublicKey, and what they are rendered to), what is observed of them (Connection), what the parts of the
// network inside a cluster tell each other (InternalNode, InternalFabric), and what administrators add to it (FirewallConfiguration,
// RouteConfiguration).
//
// The names are those of Liqo v1; GeneveTunnel is served and has no effect. Addresses and ranges are of IPv4 or IPv6. A schema takes what can be an address,
// whosever it is: which ranges a peer may have is judged by pkg/addressing.
//
// +kubebuilder:object:generate=true
// +groupName=networking.liqo.io
package v1beta1
