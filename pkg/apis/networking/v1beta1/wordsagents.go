package v1beta1

// Reasons of condition Ready of InternalNodes and Connections, by the agents.
const (
	// ReasonProgrammed: the kernel has all that the node needs.
	ReasonProgrammed = "Programmed"
	// ReasonOverwritten: the kernel has all that the node needs, but somebody else has changed it in the last minutes; it was put back.
	ReasonOverwritten = "Overwritten"
	// ReasonNotProgrammed: the kernel refuses something; the message says what.
	ReasonNotProgrammed = "NotProgrammed"
	// ReasonKernelFeatureMissing: the kernel lacks something that is needed; the message says what.
	ReasonKernelFeatureMissing = "KernelFeatureMissing"
	// ReasonPortInUse: something else on the node has the overlay's UDP port.
	ReasonPortInUse = "PortInUse"
	// ReasonOverlaySilent: gateways of this cluster do not answer the node through the overlay.
	ReasonOverlaySilent = "OverlaySilent"
	// ReasonRouteOverlap: ranges of two peers overlap; the first is carried out. Or two gateways have one address: what is for the peers of both goes
	// there. Or a gateway has an address of the node, and is left out.
	ReasonRouteOverlap = "RouteOverlap"
	// ReasonInputInvalid: an object says what cannot be carried out, or the kernel refuses a route by the address of a gateway; it is left out, and the
	// message says which.
	ReasonInputInvalid = "InputInvalid"
	// ReasonIncomplete: something that other parts of Liqo give is not known yet; the message says what. What is in the kernel stays.
	ReasonIncomplete = "Incomplete"
	// ReasonConnected: the other end of the tunnel answers.
	ReasonConnected = "Connected"
	// ReasonNoHandshake: the other end does not answer through the tunnel.
	ReasonNoHandshake = "NoHandshake"
	// ReasonMTUTooSmall: the way between the gateways drops packets that are as long as they have to be, or as the gateway's spec.mtu asks for.
	ReasonMTUTooSmall = "MTUTooSmall"
	// ReasonEndpointUnresolved: the names of the peer's gateway have no addresses.
	ReasonEndpointUnresolved = "EndpointUnresolved"
	// ReasonKeyMissing: the key of the other end is not known; there is no PublicKey with the label of the peer.
	ReasonKeyMissing = "KeyMissing"
	// ReasonWireGuardUnavailable: the kernel has no WireGuard. If the gateway runs it, the tunnel works, and costs more.
	ReasonWireGuardUnavailable = "WireGuardUnavailable"
)
