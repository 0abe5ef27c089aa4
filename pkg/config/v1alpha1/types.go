package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Profile makes several choices at once.
type Profile string

const (
	// ProfileCompatible behaves like Liqo v1.
	ProfileCompatible Profile = "compatible"
	// ProfileHardened makes the stricter choice wherever there is one.
	ProfileHardened Profile = "hardened"
)

// ControllerManager is the configuration of liqo-controller-manager.
type ControllerManager struct {
	// Profile decides what other fields leave open.
	Profile Profile `json:"profile"`
	// APIServer is how peers reach this cluster.
	APIServer APIServer `json:"apiServer"`
	// Authentication configures the authentication module.
	Authentication Authentication `json:"authentication"`
	// Common holds what all created objects get.
	Common Common `json:"common"`
	// ControllerManager configures enforcement.
	ControllerManager Enforcement `json:"controllerManager"`
	// Discovery is what peers learn about this cluster.
	Discovery Discovery `json:"discovery"`
	// IPAM holds the cluster's address ranges.
	IPAM IPAM `json:"ipam"`
	// Metrics configures metrics.
	Metrics Metrics `json:"metrics"`
	// Networking configures the network module.
	Networking Networking `json:"networking"`
	// Offloading configures the offloading module.
	Offloading Offloading `json:"offloading"`
	// RuntimeClass is the name of the RuntimeClass by which a pod asks for a virtual node.
	RuntimeClass string `json:"runtimeClass"`
	// Storage configures the storage fabric.
	Storage Storage `json:"storage"`
	// VirtualKubelet is how virtual kubelets are run by default.
	VirtualKubelet VirtualKubelet `json:"virtualKubelet"`
	// Webhook configures the admission webhooks.
	Webhook Webhook `json:"webhook"`
}

// Metrics configures metrics.
type Metrics struct {
	// Enabled says whether they are served.
	Enabled bool `json:"enabled"`
	// PlainHTTP says whether they are served without TLS, to whoever reaches the ports.
	PlainHTTP bool `json:"plainHTTP"`
}

// Networking configures the network module.
type Networking struct {
	// Enabled says whether it is on.
	Enabled bool `json:"enabled"`
	// ReflectIPs says whether the addresses of endpoints and pods cross; nil means that they do.
	ReflectIPs *bool `json:"reflectIPs"`
	// DenyDirectConnections says whether what consumers tell of pods at their other providers is ignored, although this cluster has a network
	// of its own with these; nil means what the profile says.
	DenyDirectConnections *bool `json:"denyDirectConnections"`
	// APIServerAccessThroughEndpointSlices says whether peers reach the endpoints of this cluster's API server in place of its ClusterIP.
	APIServerAccessThroughEndpointSlices bool `json:"apiServerAccessThroughEndpointSlices"`
	// GenevePort is the UDP port of the overlay between nodes and gateways; zero means DefaultOverlayPort. It has the name of v1, where
	// the overlay was Geneve.
	GenevePort int32 `json:"genevePort"`
	// Isolation says which pods of this cluster a peer reaches; empty means what the profile says.
	Isolation Isolation `json:"isolation"`
	// GatewayTemplates are what gateways are rendered from that name no template of their own.
	GatewayTemplates GatewayTemplates `json:"gatewayTemplates"`
}

// Isolation says which pods of this cluster a peer reaches.
type Isolation string

// The kinds of isolation.
const (
	// IsolationOpen lets a peer reach all pods.
	IsolationOpen Isolation = "open"
	// IsolationOffloaded lets a peer reach pods of namespaces that are offloaded to it, or that are twins of its own.
	IsolationOffloaded Isolation = "offloaded"
)

// GatewayTemplates are the contents of spec.template of the default templates; one that is empty is not made.
type GatewayTemplates struct {
	// Server is that of WgGatewayServerTemplate wireguard-server.
	Server runtime.RawExtension `json:"server"`
	// Client is that of WgGatewayClientTemplate wireguard-client.
	Client runtime.RawExtension `json:"client"`
}

// DefaultOverlayPort is the UDP port of the overlay between nodes and gateways.
const DefaultOverlayPort = 6091

// APIServer is how peers reach this cluster's API server.
type APIServer struct {
	// Address is its URL; empty means that it is detected.
	Address string `json:"address"`
	// CA is the PEM bundle it is verified with, base64; empty means the cluster's own.
	CA string `json:"ca"`
	// TrustedCA says that its certificate is publicly trusted.
	TrustedCA bool `json:"trustedCA"`
}

// Authentication configures the authentication module.
type Authentication struct {
	// Enabled says whether the module runs.
	Enabled bool `json:"enabled"`
	// TLSCompatibilityMode asks for RSA keys instead of Ed25519.
	TLSCompatibilityMode bool `json:"tlsCompatibilityMode"`
	// DefaultResourceSliceClassEnabled says whether slices of class "default" are answered.
	DefaultResourceSliceClassEnabled bool `json:"defaultResourceSliceClassEnabled"`
	// CertificateLifetime is how long peers' client certificates live.
	CertificateLifetime metav1.Duration `json:"certificateLifetime"`
	// ConsumerSilentAfter is how long a consumer may ask for no certificate before its Tenant says so, and not before its last one expired.
	ConsumerSilentAfter metav1.Duration `json:"consumerSilentAfter"`
}

// Common holds what all created objects get.
type Common struct {
	// GlobalAnnotations of every object that our controllers create.
	GlobalAnnotations map[string]string `json:"globalAnnotations"`
	// GlobalLabels of every object that our controllers create.
	GlobalLabels map[string]string `json:"globalLabels"`
}

// Enforcement configures how strictly grants are enforced.
type Enforcement struct {
	// EnableResourceEnforcement says whether pods are checked against the grant.
	EnableResourceEnforcement bool `json:"enableResourceEnforcement"`
	// DefaultLimitsEnforcement says how strictly pods must declare what they need; empty means what the profile says.
	DefaultLimitsEnforcement offloadingv1beta1.LimitsEnforcement `json:"defaultLimitsEnforcement"`
	// EnableNodeFailureController says whether consumers' pods are removed by force from nodes that are not ready.
	EnableNodeFailureController bool `json:"enableNodeFailureController"`
}

// Discovery is what peers learn about this cluster.
type Discovery struct {
	// ClusterLabels become labels of the virtual nodes at consumers.
	ClusterLabels map[string]string `json:"clusterLabels"`
}

// IPAM holds the cluster's address ranges, as CIDRs.
type IPAM struct {
	// PodCIDRs of the cluster.
	PodCIDRs []string `json:"podCIDRs"`
	// PodCIDR is the only pod CIDR, where PodCIDRs is empty.
	PodCIDR string `json:"podCIDR"`
	// ServiceCIDR of the cluster.
	ServiceCIDR string `json:"serviceCIDR"`
	// ExternalCIDR has the addresses of nodes and IP resources towards peers; empty means that a free one is found, 10.70.0.0/16 first.
	ExternalCIDR string `json:"externalCIDR"`
	// InternalCIDR is kept free; empty means that a free one is found, 10.80.0.0/16 first.
	InternalCIDR string `json:"internalCIDR"`
	// ReservedSubnets are never used.
	ReservedSubnets []string `json:"reservedSubnets"`
	// Pools are where peers are seen whose own ranges are not free here.
	Pools []string `json:"pools"`
}

// Offloading configures the offloading module.
type Offloading struct {
	// Enabled says whether the module runs.
	Enabled bool `json:"enabled"`
	// CreateNode is the default of VirtualNode.spec.createNode.
	CreateNode bool `json:"createNode"`
	// DisableNetworkCheck is the default of VirtualNode.spec.disableNetworkCheck.
	DisableNetworkCheck bool `json:"disableNetworkCheck"`
	// DefaultNodeResources are granted where a slice does not say; of others it gets a share of what is free.
	DefaultNodeResources corev1.ResourceList `json:"defaultNodeResources"`
	// SharingPercentage is that share, in percent; nil means 90.
	SharingPercentage *int32 `json:"sharingPercentage"`
	// SharingPercentages by class of slices; those that are named here are answered besides the default class.
	SharingPercentages map[string]int32 `json:"sharingPercentages"`
	// Sharing says whether all offers together may be more than what is free: shared, which empty means, too, or exclusive.
	Sharing Sharing `json:"sharing"`
	// ResourcePlugin decides what is granted in place of all that.
	ResourcePlugin ResourcePlugin `json:"resourcePlugin"`
	// Reflection configures what crosses.
	Reflection Reflection `json:"reflection"`
	// ServiceAccountTokens configures the tokens that offloaded pods get.
	ServiceAccountTokens ServiceAccountTokens `json:"serviceAccountTokens"`
	// TwinNamespaces configures the namespaces made for consumers.
	TwinNamespaces TwinNamespaces `json:"twinNamespaces"`
	// Consumers configures what their pods may use here.
	Consumers Consumers `json:"consumers"`
	// Providers configures what is believed of them.
	Providers Providers `json:"providers"`
}

// Sharing says what several consumers are offered of what is free.
type Sharing string

const (
	// SharedOffers are each a share of what is free: all together may be more.
	SharedOffers Sharing = "shared"
	// ExclusiveOffers together are not more than what is free.
	ExclusiveOffers Sharing = "exclusive"
)

// ResourcePlugin is a gRPC service that decides what ResourceSlices are granted.
type ResourcePlugin struct {
	// Address is unix:///path or host:port; empty means that there is none.
	Address string `json:"address"`
	// TLSSecret is the name of the Secret with the certificate that is shown to one at host:port, and with its CA. It is mounted as
	// ResourcePluginFolder.
	TLSSecret string `json:"tlsSecret"`
}

// ResourcePluginFolder has tls.crt, tls.key and ca.crt of ResourcePlugin.TLSSecret.
const ResourcePluginFolder = "/etc/liqo-resource-plugin"

// Providers configures what this cluster believes of what a provider says of itself.
type Providers struct {
	// AcceptLabels says whether the labels that a provider suggests are taken when its VirtualNode is made; nil means what the profile
	// says. Later changes are approved one by one.
	AcceptLabels *bool `json:"acceptLabels"`
	// AssumePrivateAddresses says whether pods of a provider that announced no range may have any private address that is free here; nil
	// means what the profile says.
	AssumePrivateAddresses *bool `json:"assumePrivateAddresses"`
}

// Reflection configures what crosses.
type Reflection struct {
	// Pod configures pods; they have no policy.
	Pod offloadingv1beta1.ReflectorConfig `json:"pod"`
	// EndpointSlice configures EndpointSlices, which follow the policy of their Services.
	EndpointSlice offloadingv1beta1.ReflectorConfig `json:"endpointslice"`
	// ConfigMap configures ConfigMaps.
	ConfigMap offloadingv1beta1.ReflectorConfig `json:"configmap"`
	// Secret configures Secrets.
	Secret offloadingv1beta1.ReflectorConfig `json:"secret"`
	// Service configures Services.
	Service ServiceReflection `json:"service"`
	// Ingress configures Ingresses.
	Ingress IngressReflection `json:"ingress"`
	// NetworkPolicy configures NetworkPolicies.
	NetworkPolicy offloadingv1beta1.ReflectorConfig `json:"networkpolicy"`
	// ServiceAccount configures the tokens of pods; they have no policy.
	ServiceAccount offloadingv1beta1.ReflectorConfig `json:"serviceaccount"`
	// Event configures Events, which come back from the provider.
	Event offloadingv1beta1.ReflectorConfig `json:"event"`
	// PersistentVolumeClaim configures the claims of the storage fabric; they have no policy.
	PersistentVolumeClaim offloadingv1beta1.ReflectorConfig `json:"persistentvolumeclaim"`
	// MaxRemovals is the share, in percent, of the copies of a kind at a provider that may go at once because their originals are missing
	// in a list; more waits for a confirmation. 100 never waits; nil means what virtual kubelets do by default.
	MaxRemovals *int `json:"maxRemovals"`
	// Skip lists what never crosses.
	Skip Skip `json:"skip"`
}

// Skip lists metadata keys that never cross.
type Skip struct {
	// Annotations are annotation keys.
	Annotations []string `json:"annotations"`
	// Labels are label keys.
	Labels []string `json:"labels"`
}

// ServiceAccountTokens configures the tokens that offloaded pods get.
type ServiceAccountTokens struct {
	// MaxLifetime of a token, from 10m to 1h; nil means what the profile says.
	MaxLifetime *metav1.Duration `json:"maxLifetime"`
}

// TwinNamespaces configures the namespaces made for consumers.
type TwinNamespaces struct {
	// PodSecurity is the level that they enforce; empty means what the profile says.
	PodSecurity string `json:"podSecurity"`
	// MaxPerTenant is how many one consumer may have.
	MaxPerTenant int `json:"maxPerTenant"`
	// RequireSuffix says whether their names must end with the consumer's ID; nil means what the profile says.
	RequireSuffix *bool `json:"requireSuffix"`
	// Quota are the limits of the ResourceQuota of each of them.
	Quota corev1.ResourceList `json:"quota"`
	// Network says whom pods in them may talk with.
	Network TwinNetwork `json:"network"`
}

// TwinNetwork says whom consumers' pods may talk with.
type TwinNetwork struct {
	// Isolate keeps them to pods of the same consumer, to DNS and to Peers; nil means what the profile says.
	Isolate *bool `json:"isolate"`
	// BlockMetadata keeps them from clouds' metadata services, isolated or not.
	BlockMetadata bool `json:"blockMetadata"`
	// Peers that isolated pods may talk with besides, in both directions.
	Peers []networkingv1.NetworkPolicyPeer `json:"peers"`
}

// Storage configures the storage fabric.
type Storage struct {
	// Enabled says whether claims of its class get volumes.
	Enabled bool `json:"enabled"`
	// VirtualStorageClassName is the class by which claims ask for such volumes.
	VirtualStorageClassName string `json:"virtualStorageClassName"`
	// RealStorageClassName is the class of the volumes behind them on physical nodes, and the one that is offered to consumers
	// as the default; empty means the cluster's default class.
	RealStorageClassName string `json:"realStorageClassName"`
	// StorageNamespace holds the claims of those volumes.
	StorageNamespace string `json:"storageNamespace"`
	// MoverImage is the image, with its tag, of the pods by which liqoctl moves volumes.
	MoverImage string `json:"moverImage"`
}

// VirtualKubelet is how virtual kubelets are run by default.
type VirtualKubelet struct {
	// Image with its tag.
	Image string `json:"image"`
	// ImagePullSecrets of the pods.
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets"`
	// PullPolicy of the image.
	PullPolicy corev1.PullPolicy `json:"pullPolicy"`
	// Replicas of the Deployments.
	Replicas int32 `json:"replicas"`
	// NodeIdentity is who they are for this cluster; empty means NodeIdentityNode.
	NodeIdentity NodeIdentity `json:"nodeIdentity"`
	// Extra of the Deployments.
	Extra VirtualKubeletExtra `json:"extra"`
	// VirtualNode configures the Nodes.
	VirtualNode VirtualNode `json:"virtualNode"`
	// Metrics configures their metrics.
	Metrics Port `json:"metrics"`
}

// VirtualKubeletExtra is what the Deployments of virtual kubelets get besides.
type VirtualKubeletExtra struct {
	// Annotations of Deployments and pods.
	Annotations map[string]string `json:"annotations"`
	// Labels of Deployments and pods.
	Labels map[string]string `json:"labels"`
	// Args of the container.
	Args []string `json:"args"`
	// Resources of the container.
	Resources corev1.ResourceRequirements `json:"resources"`
	// Tolerations of the pods.
	Tolerations []corev1.Toleration `json:"tolerations"`
	// PriorityClassName of the pods; empty means none.
	PriorityClassName string `json:"priorityClassName"`
}

// VirtualNode configures the Nodes.
type VirtualNode struct {
	// Extra is what they get besides.
	Extra NodeExtra `json:"extra"`
}

// NodeExtra is what virtual Nodes get besides.
type NodeExtra struct {
	// Annotations of the Nodes.
	Annotations map[string]string `json:"annotations"`
	// Labels of the Nodes.
	Labels map[string]string `json:"labels"`
}

// Port of a server.
type Port struct {
	// Port is the TCP port.
	Port int `json:"port"`
}

// Webhook configures the admission webhooks.
type Webhook struct {
	// Port that they are served on.
	Port int `json:"port"`
}
