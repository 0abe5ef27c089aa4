package v1alpha1

// IPTypeLabel says what is behind an IP that Liqo makes itself, such as IPTypeAPIServer.
const IPTypeLabel = "ipam.liqo.io/ip-type"

// IPTypeAPIServer is the API server of this cluster.
const IPTypeAPIServer = "api-server"

// NetworkTypeLabel says which of this cluster's own ranges a Network is. Networks of peers do not carry it.
const NetworkTypeLabel = "ipam.liqo.io/network-type"

// Values of the label above. The first Network of each type has the same name, in Liqo's namespace.
const (
	// NetworkTypePod is a range of this cluster's pods.
	NetworkTypePod = "pod-cidr"
	// NetworkTypeService is a range of this cluster's Services.
	NetworkTypeService = "service-cidr"
	// NetworkTypeExternal is where what is no pod gets addresses towards peers.
	NetworkTypeExternal = "external-cidr"
	// NetworkTypeInternal is the internal range of Liqo v1, which is kept free.
	NetworkTypeInternal = "internal-cidr"
	// NetworkTypeReserved is a range that the administrator keeps free.
	NetworkTypeReserved = "reserved"
)

// Reasons of condition Ready of Networks and IPs.
const (
	// ReasonAllocated: the range, or the address, was given.
	ReasonAllocated = "Allocated"
	// ReasonNodeInRange: the range was given, and a node says now that it has an address in it. The range stays until the Network is deleted.
	ReasonNodeInRange = "NodeInRange"
	// ReasonPoolExhausted: nothing that could be given is free; the message says for each pool who fills it.
	ReasonPoolExhausted = "PoolExhausted"
	// ReasonRangeRefused: the range cannot be a peer's, or contradicts this cluster's configuration.
	ReasonRangeRefused = "RangeRefused"
	// ReasonExternalRangePending: this cluster has no external range yet, which the address is to be taken from.
	ReasonExternalRangePending = "ExternalRangePending"
	// ReasonNetworkRefUnsupported: networkRef names another Network than the external range, which alone peers are told of.
	ReasonNetworkRefUnsupported = "NetworkRefUnsupported"
)
