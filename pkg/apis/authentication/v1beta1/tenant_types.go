package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// AuthzPolicy says how a tenant is authenticated.
// +kubebuilder:validation:Enum=KeysExchange;TolerateNoHandshake
type AuthzPolicy string

const (
	// KeysExchange requires the signed nonce.
	KeysExchange AuthzPolicy = "KeysExchange"
	// TolerateNoHandshake trusts whoever created the Tenant: for declarative peering by an administrator.
	TolerateNoHandshake AuthzPolicy = "TolerateNoHandshake"
)

// TenantCondition is what the provider lets the tenant do.
// +kubebuilder:validation:Enum=Active;Cordoned;Drained
type TenantCondition string

const (
	// TenantActive tenants may do everything that was granted.
	TenantActive TenantCondition = "Active"
	// TenantCordoned tenants keep what they have and get nothing new.
	TenantCordoned TenantCondition = "Cordoned"
	// TenantDrained tenants lose their rights and their pods here, and no data.
	TenantDrained TenantCondition = "Drained"
)

// TenantSpec is who a consumer is. That publicKey, csr and signature are given with authzPolicy KeysExchange is checked by the
// webhook: expressions in a schema cannot look at bytes, because the API server reads them as another base64 than JSON uses.
type TenantSpec struct {
	// clusterID of the consumer. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterID cannot be changed; create another Tenant"
	ClusterID corev1beta1.ClusterID `json:"clusterID"`
	// publicKey of the consumer, PEM (PKIX).
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	PublicKey []byte `json:"publicKey,omitempty"`
	// csr for the consumer's client certificate, PEM.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	CSR []byte `json:"csr,omitempty"`
	// signature of the provider's nonce, made with the consumer's private key.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Signature []byte `json:"signature,omitempty"`
	// proxyURL through which the consumer wants to reach this cluster's API server.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ProxyURL *string `json:"proxyURL,omitempty"`
	// authzPolicy says how the tenant is authenticated.
	// +kubebuilder:default=KeysExchange
	// +optional
	AuthzPolicy AuthzPolicy `json:"authzPolicy,omitempty"`
	// tenantCondition is what the tenant may do.
	// +kubebuilder:default=Active
	// +optional
	TenantCondition TenantCondition `json:"tenantCondition,omitempty"`
	// revokedPeering is the peering whose certificates have no rights here any more, as 16 hexadecimal digits of the digest of the key that it
	// was made with. 'liqoctl revoke' sets it. The consumer has rights again once it is peered with another key.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	RevokedPeering string `json:"revokedPeering,omitempty"`
	// limits of what the tenant gets in this cluster, whatever it asks for. What is left out is as the configuration of this
	// cluster says. They are the provider's: the consumer can neither see nor write them.
	// +optional
	Limits *TenantLimits `json:"limits,omitempty"`
}

// TenantLimits are the most that a tenant gets. What it has already is not taken away when a limit becomes less, but for resources: those
// are granted anew.
type TenantLimits struct {
	// resources that all ResourceSlices of the tenant are granted together. Of a resource that is not named they get what the
	// configuration says, else what the nodes of this cluster have.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// sharingPercentage is how much of what this cluster has free the tenant is offered, in percent, of the resources that its
	// ResourceSlices ask for no quantity of; together they get as much as one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SharingPercentage *int32 `json:"sharingPercentage,omitempty"`
	// resourceSlices that are answered.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	ResourceSlices *int32 `json:"resourceSlices,omitempty"`
	// namespaces that are made for the tenant.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	Namespaces *int32 `json:"namespaces,omitempty"`
}

// TenantStatus is what a Tenant was given.
type TenantStatus struct {
	// tenantNamespace holds the tenant's objects in this cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	TenantNamespace string `json:"tenantNamespace,omitempty"`
	// authParams that the consumer needs to authenticate.
	// +optional
	AuthParams *AuthParams `json:"authParams,omitempty"`
	// conditions of the tenant: Ready, and ConsumerSeen, which is False once the consumer gives no sign of life any more.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Tenant is a consumer as its provider knows it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=liqo,shortName=tn
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Condition",type=string,JSONPath=`.spec.tenantCondition`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Tenant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TenantSpec `json:"spec"`
	// +optional
	Status TenantStatus `json:"status,omitempty"`
}

// TenantList is a list of Tenants.
// +kubebuilder:object:root=true
type TenantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Tenant `json:"items"`
}
