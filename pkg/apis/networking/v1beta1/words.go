package v1beta1

// Labels of FirewallConfigurations and RouteConfigurations, by which an administrator says who applies them.
const (
	// FirewallCategoryLabel says whether nodes or gateways apply a FirewallConfiguration: CategoryFabric or CategoryGateway.
	FirewallCategoryLabel = "networking.liqo.io/firewall-category"
	// FirewallSubcategoryLabel says which of them do, such as SubcategoryAllNodes.
	FirewallSubcategoryLabel = "networking.liqo.io/firewall-subcategory"
	// FirewallUniqueLabel names the only one that does: a node, or the gateway of a peer by the peer's cluster ID.
	FirewallUniqueLabel = "networking.liqo.io/firewall-unique"
	// RouteCategoryLabel says whether nodes or gateways apply a RouteConfiguration: CategoryFabric or CategoryGateway.
	RouteCategoryLabel = "networking.liqo.io/route-category"
	// RouteSubcategoryLabel says which of them do, such as SubcategoryAllNodes.
	RouteSubcategoryLabel = "networking.liqo.io/route-subcategory"
	// RouteUniqueLabel names the only one that does: a node, or the gateway of a peer by the peer's cluster ID.
	RouteUniqueLabel = "networking.liqo.io/route-unique"
)

// Values of the labels above.
const (
	// CategoryFabric are the nodes.
	CategoryFabric = "fabric"
	// CategoryGateway are the gateways.
	CategoryGateway = "gateway"
	// SubcategoryAllNodes are all nodes.
	SubcategoryAllNodes = "all-nodes"
	// SubcategorySingleNode is the node that the unique label names.
	SubcategorySingleNode = "single-node"
	// SubcategoryAllGateways are the gateways of all peers.
	SubcategoryAllGateways = "all-gateways"
)

// NetworkCIDRsConfigured is the type of the condition of a Configuration that tells whether each range of the peer has one under which this
// cluster sees it. Users of Liqo v1 wait for it.
const NetworkCIDRsConfigured = "NetworkCIDRsConfigured"

// Reasons of conditions NetworkCIDRsConfigured and Ready of a Configuration.
const (
	// ReasonConfigured: each range of the peer has one under which this cluster sees it.
	ReasonConfigured = "Configured"
	// ReasonRangesPending: ranges, of the peer or of this cluster, have not been given yet.
	ReasonRangesPending = "RangesPending"
	// ReasonRangesChanged: the peer announces other ranges than before, which have not been given yet; until then the old ones stay.
	ReasonRangesChanged = "RangesChanged"
	// ReasonPoolExhausted: nothing is free for a range of the peer; the message says for each pool who fills it.
	ReasonPoolExhausted = "PoolExhausted"
	// ReasonRangeRefused: the peer announces ranges that cannot be its own.
	ReasonRangeRefused = "RangeRefused"
	// ReasonPeerUnknown: label liqo.io/remote-cluster-id names no cluster.
	ReasonPeerUnknown = "PeerUnknown"
)

// Reasons of the conditions of hosts in FirewallConfigurations and RouteConfigurations.
const (
	// ReasonApplied: the host has what is wanted.
	ReasonApplied = "Applied"
	// ReasonNotSupported: the host cannot have it, as it stands or besides others; what it had of the object before stays.
	ReasonNotSupported = "NotSupported"
	// ReasonKernelRefuses: the kernel of the host does not take it. It is tried again.
	ReasonKernelRefuses = "KernelRefuses"
)

// PodRangesKnown is the type of the condition of an InternalNode that tells whether gateways know where the node's pods are. Condition Ready
// is that of the node's agent.
const PodRangesKnown = "PodRangesKnown"

// Reasons of condition PodRangesKnown.
const (
	// ReasonNodeRangesRead: gateways find all pods of the node by its ranges.
	ReasonNodeRangesRead = "NodeRangesRead"
	// ReasonPodsRead: the node has pods that are in none of its ranges (spec.podCIDRs), or it has no ranges; they are named by their addresses.
	ReasonPodsRead = "PodsRead"
	// ReasonTooManyPodRanges: the node has more such pods than an InternalNode can name, so gateways send nothing to some.
	ReasonTooManyPodRanges = "TooManyPodRanges"
)
