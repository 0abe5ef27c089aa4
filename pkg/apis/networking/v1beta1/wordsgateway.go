package v1beta1

// Labels of what a gateway is made of.
const (
	// GatewayComponentLabel (GatewayComponent) marks what a gateway is made of.
	GatewayComponentLabel = "networking.liqo.io/component"
	// GatewayComponent is the value of GatewayComponentLabel.
	GatewayComponent = "gateway"
	// GatewayNameLabel is the name of the GatewayServer or GatewayClient, in the same namespace.
	GatewayNameLabel = "networking.liqo.io/gateway-name"
	// ActiveLabel ("true") marks the pod, among several of a gateway, that has the tunnel.
	ActiveLabel = "networking.liqo.io/active"
)

// Annotations of a gateway's Service, or of a GatewayServer's serviceAnnotations, for a gateway behind an address that the cluster does not
// know.
const (
	// OverrideAddressAnnotation is where the peer reaches the gateway, instead of the Service's own addresses.
	OverrideAddressAnnotation = "liqo.io/override-address"
	// OverridePortAnnotation is the port at which the peer reaches it, instead of the Service's own.
	OverridePortAnnotation = "liqo.io/override-port"
)

// FormerGatewayAnnotation on a Configuration is how the last gateway to the peer was made, as JSON: the spec of the GatewayServer or
// GatewayClient, without its Secret. 'liqoctl revoke' and 'liqoctl network disconnect' write it; liqoctl makes the next gateway so.
const FormerGatewayAnnotation = "networking.liqo.io/former-gateway"

// Names of what belongs to a gateway.
const (
	// GatewayPrefix and the name of a gateway make the name of its Deployment, Service, ServiceAccount, Role and RoleBinding.
	GatewayPrefix = "gw-"
	// GatewayClusterRole is what all gateways may read in the whole cluster.
	GatewayClusterRole = "liqo-gateway"
	// ServerTemplate is the template, in Liqo's namespace, of gateway servers that name none.
	ServerTemplate = "wireguard-server"
	// ClientTemplate is the template, in Liqo's namespace, of gateway clients that name none.
	ClientTemplate = "wireguard-client"
	// PrivateKeyKey holds, in the Secret with a gateway's keys, the private one: 32 bytes.
	PrivateKeyKey = "privateKey"
	// PublicKeyKey holds, in the Secret with a gateway's keys, the public one: 32 bytes.
	PublicKeyKey = "publicKey"
)

// GatewayKeysSecret is the name of the Secret with the keys that are made for a gateway.
func GatewayKeysSecret(gateway string) string { return gateway + "-gw-keys" }

// NoLoadBalancers is the way out that EndpointPending names while the Service of a gateway waits for a load balancer.
const NoLoadBalancers = "a cluster without load balancers needs --gw-server-service-type NodePort (liqoctl network connect)"

// Reasons of condition Ready of gateways.
const (
	// ReasonProvisioned: the gateway runs, and its peer can reach it.
	ReasonProvisioned = "Provisioned"
	// ReasonTemplateInvalid: there is no such template, or what it renders to is no gateway; the message says what is wrong.
	ReasonTemplateInvalid = "TemplateInvalid"
	// ReasonSecretInvalid: the Secret with the gateway's keys is missing or holds no keys of WireGuard.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonEndpointPending: there is no address yet under which the peer could reach the gateway.
	ReasonEndpointPending = "EndpointPending"
	// ReasonGatewayPodPending: no pod of the gateway is ready; the message says why. Also of a Connection, whose tunnel nobody watches over then.
	ReasonGatewayPodPending = "GatewayPodPending"
	// ReasonGatewayMisplaced: the gateway is not in the tenant namespace of its peer.
	ReasonGatewayMisplaced = "GatewayMisplaced"
	// ReasonGatewayNameTaken: something that the gateway needs has its name and belongs to somebody else.
	ReasonGatewayNameTaken = "GatewayNameTaken"
)
