package v1beta1

// Labels that several groups use. Values are cluster IDs unless the comment says otherwise.
const (
	// RemoteClusterIDLabel names the peer that an object is about.
	RemoteClusterIDLabel = "liqo.io/remote-cluster-id"
	// TenantNamespaceLabel ("true") marks tenant namespaces.
	TenantNamespaceLabel = "liqo.io/tenant-namespace"
	// TypeLabel marks virtual nodes (value VirtualNodeType); physical nodes do not carry it.
	TypeLabel = "liqo.io/type"
	// VirtualNodeType is the value of TypeLabel on virtual nodes.
	VirtualNodeType = "virtual-node"
	// ReplicationLabel ("true") asks for an object to be replicated to the cluster in RemoteIDLabel; "false" on the copy.
	ReplicationLabel = "liqo.io/replication"
	// RemoteIDLabel is the cluster that an object is replicated to.
	RemoteIDLabel = "liqo.io/remoteID"
	// OriginIDLabel is the cluster that a replicated copy comes from.
	OriginIDLabel = "liqo.io/originID"
	// ReplicatedLabel ("true") marks copies that a peer made.
	ReplicatedLabel = "liqo.io/replicated"
	// ManagedLabel ("true") is put on everything that our controllers create.
	ManagedLabel = "liqo.io/managed"
	// WebhookLabel ("true") marks our webhook configurations and their certificate Secret.
	WebhookLabel = "liqo.io/webhook"
)

// Annotations that several groups use.
const (
	// PermanentlyUnreachableAnnotation ("true") on a ForeignCluster says that the peer will not come back, or not give our rights back.
	// It is removed when the peer answers and lets us work, and by 'liqoctl peer'.
	PermanentlyUnreachableAnnotation = "liqo.io/foreign-cluster-permanently-unreachable"
	// CutOffAnnotation ("true") on a ForeignCluster says that the provider is not talked to any more, although it answers: 'liqoctl revoke'
	// sets it. It is removed by 'liqoctl peer'.
	CutOffAnnotation = "liqo.io/foreign-cluster-cut-off"
	// CutOffByAnnotation on a ForeignCluster says who revoked the peer's reach last, and when.
	CutOffByAnnotation = "liqo.io/foreign-cluster-cut-off-by"
	// OriginUIDAnnotation on an object made at a peer is the UID of the object that it stands for.
	OriginUIDAnnotation = "liqo.io/origin-uid"
	// OriginPeeringAnnotation on a replicated object is the peering in which it was replicated: a copy of an earlier one, which was given
	// up at home, is not taken over.
	OriginPeeringAnnotation = "liqo.io/origin-peering"
	// PreinstalledAnnotation ("true") marks objects that the chart owns.
	PreinstalledAnnotation = "liqo.io/preinstalled"
)

// Names that the installation fixes.
const (
	// ClusterIDConfigMap is the ConfigMap in Liqo's namespace that holds the cluster's ID under ClusterIDKey.
	ClusterIDConfigMap = "liqo-clusterid-configmap"
	// ClusterIDKey is the key of the cluster ID in ClusterIDConfigMap.
	ClusterIDKey = "CLUSTER_ID"
	// TenantNamespacePrefix and a cluster ID make the name of that peer's tenant namespace.
	TenantNamespacePrefix = "liqo-tenant-"
	// DefaultNamespace is where Liqo is installed unless the user says otherwise.
	DefaultNamespace = "liqo"
)

// Condition types of a ForeignCluster and its modules; CutOff, as Ready, stands in its summary.
const (
	// APIServerStatus tells whether the provider's API server answers.
	APIServerStatus = "APIServerStatus"
	// CutOffCondition says that the peer's reach into this cluster was revoked: by whom, when, and how it is taken back. It is there, and True, only then.
	CutOffCondition = "CutOff"
	// NetworkConnectionStatus tells whether the tunnel is up, and then whether all nodes of this cluster come into it.
	NetworkConnectionStatus = "NetworkConnectionStatus"
	// NetworkGatewayServerStatus tells whether the gateway server's pods are ready.
	NetworkGatewayServerStatus = "NetworkGatewayServerStatus"
	// NetworkGatewayClientStatus tells whether the gateway client's pods are ready.
	NetworkGatewayClientStatus = "NetworkGatewayClientStatus"
	// NetworkGatewayPresence tells whether there is a gateway for the peer.
	NetworkGatewayPresence = "NetworkGatewayPresence"
	// NetworkConfigurationStatus tells whether the address ranges were exchanged.
	NetworkConfigurationStatus = "NetworkConfigurationStatus"
	// AuthIdentityControlPlaneStatus tells whether there is an identity to reach the provider with.
	AuthIdentityControlPlaneStatus = "AuthIdentityControlPlaneStatus"
	// AuthTenantStatus tells whether the consumer's Tenant was accepted.
	AuthTenantStatus = "AuthTenantStatus"
	// AuthResourceSliceStatus tells whether the provider denies any of the ResourceSlices that are asked of it.
	AuthResourceSliceStatus = "AuthResourceSliceStatus"
	// OffloadingVirtualNodeStatus tells whether the virtual kubelets are ready.
	OffloadingVirtualNodeStatus = "OffloadingVirtualNodeStatus"
	// OffloadingNodeStatus tells whether the virtual Nodes are ready.
	OffloadingNodeStatus = "OffloadingNodeStatus"
)

// Statuses of a ForeignCluster's conditions, its summary aside.
const (
	// StatusNone: nothing observed yet.
	StatusNone = "None"
	// StatusPending: under way.
	StatusPending = "Pending"
	// StatusEstablished: works.
	StatusEstablished = "Established"
	// StatusError: does not work.
	StatusError = "Error"
	// StatusReady: all parts are ready.
	StatusReady = "Ready"
	// StatusNotReady: no part is ready.
	StatusNotReady = "NotReady"
	// StatusSomeNotReady: some parts are ready, some are not.
	StatusSomeNotReady = "SomeNotReady"
)

// Reasons of a ForeignCluster's conditions.
const (
	// ReasonPeeringReady: every enabled module works.
	ReasonPeeringReady = "PeeringReady"
	// ReasonModuleNotReady: at least one enabled module does not work; the message names it.
	ReasonModuleNotReady = "ModuleNotReady"
	// ReasonAPIServerReady: the peer's API server answered the last probe.
	ReasonAPIServerReady = "APIServerReady"
	// ReasonAPIServerUnreachable: the peer's API server did not answer in time.
	ReasonAPIServerUnreachable = "APIServerUnreachable"
	// ReasonRemoteThrottled: the peer's API server answers, and asked for fewer requests lately.
	ReasonRemoteThrottled = "RemoteThrottled"
	// ReasonAPIServerRefused: the peer's API server answered, but refused our credentials.
	ReasonAPIServerRefused = "APIServerRefused"
	// ReasonRightsRevoked: the provider answers, and took back the rights without which nothing of the peering works.
	ReasonRightsRevoked = "RightsRevoked"
	// ReasonCutOff: an administrator of this cluster revoked the peer's reach; the message says who, when, and how it is taken back.
	ReasonCutOff = "CutOff"
	// ReasonPeeringNotEnded: the API server refused to delete something that the end of a peering needs, as a tenant namespace or the
	// NamespaceMap of a provider; the message names the command that ends it in order.
	ReasonPeeringNotEnded = "PeeringNotEnded"
	// ReasonIdentityMissing: there is no control plane identity for the peer yet.
	ReasonIdentityMissing = "IdentityMissing"
	// ReasonIdentityReady: the identity's kubeconfig is in place.
	ReasonIdentityReady = "IdentityReady"
	// ReasonTenantReady: the tenant has its namespace and certificate.
	ReasonTenantReady = "TenantReady"
	// ReasonTenantNotReady: the tenant was not accepted yet.
	ReasonTenantNotReady = "TenantNotReady"
	// ReasonResourceSliceGranted: the provider denies no ResourceSlice.
	ReasonResourceSliceGranted = "ResourceSliceGranted"
	// ReasonResourceSliceDenied: the provider denies a ResourceSlice; the message names it.
	ReasonResourceSliceDenied = "ResourceSliceDenied"
	// ReasonResourceSliceCordoned: the provider takes no new pods of a ResourceSlice; the message names it.
	ReasonResourceSliceCordoned = "ResourceSliceCordoned"
	// ReasonVirtualKubeletReady: all virtual kubelets towards the peer are ready.
	ReasonVirtualKubeletReady = "VirtualKubeletReady"
	// ReasonVirtualKubeletNotReady: a virtual kubelet is not ready; the message names it.
	ReasonVirtualKubeletNotReady = "VirtualKubeletNotReady"
	// ReasonNodeReady: all virtual Nodes of the peer are ready.
	ReasonNodeReady = "NodeReady"
	// ReasonNodeNotReady: a virtual Node is not ready; the message names it.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonNetworkConfigured: each range of the peer has one under which this cluster sees it.
	ReasonNetworkConfigured = "NetworkConfigured"
	// ReasonNetworkNotConfigured: it is not known yet how the two clusters see each other.
	ReasonNetworkNotConfigured = "NetworkNotConfigured"
	// ReasonGatewayReady: the gateway to the peer is there, and runs.
	ReasonGatewayReady = "GatewayReady"
	// ReasonGatewayMissing: there is no gateway to the peer.
	ReasonGatewayMissing = "GatewayMissing"
	// ReasonGatewayNotReady: the gateway to the peer does not run yet.
	ReasonGatewayNotReady = "GatewayNotReady"
	// ReasonTunnelConnected: the other end of the tunnel answers.
	ReasonTunnelConnected = "TunnelConnected"
	// ReasonTunnelNotConnected: the other end of the tunnel has not answered yet, or answers no more.
	ReasonTunnelNotConnected = "TunnelNotConnected"
)
