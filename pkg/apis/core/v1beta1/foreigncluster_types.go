package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RoleType says what a remote cluster is to this one.
// +kubebuilder:validation:Enum=Consumer;Provider;ConsumerAndProvider;Unknown
type RoleType string

// The roles of a remote cluster.
const (
	// ConsumerRole is a cluster that uses this cluster's resources.
	ConsumerRole RoleType = "Consumer"
	// ProviderRole is a cluster whose resources this cluster uses.
	ProviderRole RoleType = "Provider"
	// ConsumerAndProviderRole is a cluster that is both.
	ConsumerAndProviderRole RoleType = "ConsumerAndProvider"
	// UnknownRole is a cluster about which nothing but its ID is known.
	UnknownRole RoleType = "Unknown"
)

// ForeignClusterSpec is what identifies a peer.
type ForeignClusterSpec struct {
	// clusterID of the remote cluster. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterID cannot be changed; delete the object and let it be created again"
	ClusterID ClusterID `json:"clusterID"`
}

// Module is the state of one module (networking, authentication, offloading) of a peering.
type Module struct {
	// enabled says whether anything of this module exists for the peer.
	// +optional
	Enabled bool `json:"enabled"`
	// conditions of the module's parts.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.status in ['None','Pending','Established','Error','Ready','NotReady','SomeNotReady'])",message="status must be one of None, Pending, Established, Error, Ready, NotReady, SomeNotReady"
	Conditions []Condition `json:"conditions,omitempty"`
}

// Modules are the states of a peering's modules.
type Modules struct {
	// networking: the network fabric between the clusters.
	// +optional
	Networking Module `json:"networking,omitempty"`
	// authentication: identities and tenants.
	// +optional
	Authentication Module `json:"authentication,omitempty"`
	// offloading: virtual nodes and their virtual kubelets.
	// +optional
	Offloading Module `json:"offloading,omitempty"`
}

// TenantNamespaces are the names of the namespaces that hold the peering's objects.
type TenantNamespaces struct {
	// local is the tenant namespace in this cluster.
	// +optional
	Local string `json:"local,omitempty"`
	// remote is the tenant namespace in the remote cluster.
	// +optional
	Remote string `json:"remote,omitempty"`
}

// ForeignClusterStatus is what is observed of a peer.
type ForeignClusterStatus struct {
	// observedGeneration is the generation that the status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// role of the remote cluster.
	// +kubebuilder:default=Unknown
	// +optional
	Role RoleType `json:"role,omitempty"`
	// modules of the peering.
	// +optional
	Modules Modules `json:"modules,omitempty"`
	// conditions of the peering as a whole: APIServerStatus. Programs of Liqo v1 take whatever is not Established or Ready for a fault, so what they
	// do not know stands in summary. Earlier versions had it here.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.type == 'Ready' ? c.status in ['True','False','Unknown'] : c.status in ['None','Pending','Established','Error','Ready','NotReady','SomeNotReady'])",message="Ready must be True, False or Unknown; other conditions one of None, Pending, Established, Error, Ready, NotReady, SomeNotReady"
	Conditions []Condition `json:"conditions,omitempty"`
	// summary has what Liqo v1 knows no condition for, each True, False or Unknown: Ready, which sums the peering up, and CutOff, while the peer's
	// reach into this cluster is revoked.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.status in ['True','False','Unknown'])",message="what sums a peering up must be True, False or Unknown"
	Summary []Condition `json:"summary,omitempty"`
	// apiServerUrl is the address of the remote cluster's API server, if this cluster uses it.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	APIServerURL string `json:"apiServerUrl,omitempty"`
	// foreignProxyUrl is the proxy through which the remote API server is reached.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ForeignProxyURL string `json:"foreignProxyUrl,omitempty"`
	// tenantNamespace holds the names of the tenant namespaces.
	// +optional
	TenantNamespace TenantNamespaces `json:"tenantNamespace,omitempty"`
}

// All are the conditions that Liqo v1 knows, and those of the summary. Earlier versions have all of them among the conditions.
func (s *ForeignClusterStatus) All() []Condition { return slices.Concat(s.Conditions, s.Summary) }

// ForeignCluster is one known peer. liqo-controller-manager creates it when something of a peering exists, and removes it
// when nothing refers to the peer any more.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=liqo,shortName=fc
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.status.role`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.summary[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="ClusterID",type=string,priority=1,JSONPath=`.spec.clusterID`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.summary[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ForeignCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ForeignClusterSpec `json:"spec"`
	// +optional
	Status ForeignClusterStatus `json:"status,omitempty"`
}

// ForeignClusterList is a list of ForeignClusters.
// +kubebuilder:object:root=true
type ForeignClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ForeignCluster `json:"items"`
}
