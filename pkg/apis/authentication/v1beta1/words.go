package v1beta1

// Labels of authentication objects.
const (
	// NonceLabel ("true") marks the provider's nonce Secret.
	NonceLabel = "liqo.io/nonce"
	// SignedNonceLabel ("true") marks the consumer's signed nonce Secret.
	SignedNonceLabel = "liqo.io/signed-nonce"
	// IdentityTypeLabel is the IdentityType on kubeconfig Secrets.
	IdentityTypeLabel = "liqo.io/identity-type"
	// ResourceSliceNameLabel names the ResourceSlice that an Identity, VirtualNode or Secret belongs to.
	ResourceSliceNameLabel = "liqo.io/resourceslice-name"
)

// Annotations of authentication objects.
const (
	// RemoteTenantNamespaceAnnotation on a control plane kubeconfig Secret is the tenant namespace at the provider.
	RemoteTenantNamespaceAnnotation = "liqo.io/remote-tenant-namespace"
	// CreateVirtualNodeAnnotation ("true") on a ResourceSlice asks for a VirtualNode once it is granted.
	CreateVirtualNodeAnnotation = "liqo.io/create-virtual-node"
	// CordonAnnotation ("true") on a ResourceSlice stops new pods of it. Only the provider may set or remove it.
	CordonAnnotation = "liqo.io/cordon"
	// CordonTenantAnnotation ("true") on a ResourceSlice says that its whole tenant is cordoned. It follows the Tenant's tenantCondition, at the provider alone.
	CordonTenantAnnotation = "liqo.io/cordon-tenant"
	// NonceUsedByAnnotation on a nonce Secret is the UID of the Tenant that was accepted with it: a nonce serves once.
	NonceUsedByAnnotation = "liqo.io/nonce-used-by"
	// PeeringGroupsAnnotation ("true") on both nonce Secrets says that the provider gives rights to the certificates of the present peering alone,
	// which the CSR then has to name.
	PeeringGroupsAnnotation = "liqo.io/peering-groups"
	// SliceUIDAnnotation on a Quota is the UID of the ResourceSlice that it was last computed from.
	SliceUIDAnnotation = "liqo.io/resourceslice-uid"
	// ReplicatedAnnotationPrefix starts the keys of the annotations that travel to the provider with a replicated object.
	ReplicatedAnnotationPrefix = "replicated.liqo.io/"
	// NodeSelectorAnnotation of a ResourceSlice has the labels of the provider's nodes that it is for, as key=value,key=value. It travels.
	NodeSelectorAnnotation = "replicated.liqo.io/node-selector"
)

// Finalizers.
const (
	// TenantFinalizer removes what a Tenant was given outside its namespace.
	TenantFinalizer = "tenant.liqo.io/finalizer"
	// ReplicationFinalizer on a replicated object removes its copy at the provider.
	ReplicationFinalizer = "crdreplicator.liqo.io/resource"
	// ReplicatorFinalizer on a control plane Identity keeps it until nothing is replicated through it any more.
	ReplicatorFinalizer = "crdreplicator.liqo.io/operator"
)

// Names and keys of Secrets.
const (
	// NonceSecret is the provider's nonce, in the tenant namespace.
	NonceSecret = "liqo-nonce"
	// SignedNonceSecret is the consumer's signed nonce, in the tenant namespace.
	SignedNonceSecret = "liqo-signed-nonce"
	// NonceKey holds the nonce in both Secrets.
	NonceKey = "nonce"
	// SignedNonceKey holds the signature in SignedNonceSecret.
	SignedNonceKey = "signedNonce"
	// KubeconfigKey holds the kubeconfig in kubeconfig Secrets.
	KubeconfigKey = "kubeconfig"
	// KubeconfigSecretPrefix and an Identity's name make the name of its kubeconfig Secret.
	KubeconfigSecretPrefix = "kubeconfig-"
	// KeySecretPrefix and an Identity's name make the name of the Secret with its private key.
	KeySecretPrefix = "liqo-key-"
	// PrivateKeyKey holds the private key (PKCS8 PEM) in key Secrets.
	PrivateKeyKey = "privateKey"
	// PublicKeyKey holds the public key (PKIX PEM) in key Secrets.
	PublicKeyKey = "publicKey"
	// CSRKey holds the certificate signing request in SignedNonceSecret and in records of issued certificates.
	CSRKey = "csr"
	// CertificateKey holds the certificate in records of issued certificates.
	CertificateKey = "certificate"
	// RequestedAtKey holds, in records of issued certificates, when the consumer's request was first answered, by the provider's clock (RFC 3339).
	RequestedAtKey = "requestedAt"
	// ExpiresAtKey holds, in records of issued certificates, when that answer expires (RFC 3339). The record's certificate may be younger: the
	// provider keeps one ready for the same request.
	ExpiresAtKey = "expiresAt"
	// NextPrivateKeyKey holds the private key that a running renewal introduces.
	NextPrivateKeyKey = "nextPrivateKey"
	// CertificateSecretPrefix and "tenant", slice-<name> or renew-<name> make the name of the provider's record of an issued certificate.
	CertificateSecretPrefix = "liqo-remote-certificate-"
	// ControlPlaneIdentityPrefix and a cluster ID make the name of a control plane Identity.
	ControlPlaneIdentityPrefix = "controlplane-"
	// ResourceSliceIdentityPrefix and a slice's name make the name of its Identity.
	ResourceSliceIdentityPrefix = "resourceslice-"
)

// ConsumerSeenCondition of a Tenant tells whether the consumer gave a sign of life lately: it asked for a certificate. There is none as long
// as no such sign is known.
const ConsumerSeenCondition = "ConsumerSeen"

// Condition types of a ResourceSlice, and their statuses; Identity and Troubles, as Ready, stand in its summary.
const (
	// IdentityCondition tells the consumer whether the slice's certificate became an Identity: True or False.
	IdentityCondition = "Identity"
	// AuthenticationCondition tells whether the slice has a certificate.
	AuthenticationCondition = "Authentication"
	// ResourcesCondition tells whether the slice was granted.
	ResourcesCondition = "Resources"
	// CordonedCondition says that the slice keeps what it has and gets no new pods; it is there only then.
	CordonedCondition = "Cordoned"
	// OverCommittedCondition says that more runs than is offered now: it stays, and nothing new is taken. It is there only then.
	OverCommittedCondition = "OverCommitted"
	// PluginFailedCondition says that the provider's resource plugin does not decide on the slice: what was granted stays. It is there only then.
	PluginFailedCondition = "PluginFailed"
	// Accepted is the positive status of both.
	Accepted = "Accepted"
	// Denied is the negative status of both.
	Denied = "Denied"
)

// Troubles are the conditions in the summary of a ResourceSlice that are there only while something is wrong.
var Troubles = []string{CordonedCondition, OverCommittedCondition, PluginFailedCondition}

// Reasons of conditions and Events in this group.
const (
	// ReasonReady: everything is in place.
	ReasonReady = "Ready"
	// ReasonNonceGenerated: a nonce was made for the peer.
	ReasonNonceGenerated = "NonceGenerated"
	// ReasonNonceSigned: the peer's nonce was signed.
	ReasonNonceSigned = "NonceSigned"
	// ReasonNonceMissing: there is no nonce for the tenant's cluster ID; peer again.
	ReasonNonceMissing = "NonceMissing"
	// ReasonNonceReplayed: the nonce was already used by another Tenant; peer again.
	ReasonNonceReplayed = "NonceReplayed"
	// ReasonSignatureVerificationFailed: the signature does not fit the nonce, the key or the cluster IDs.
	ReasonSignatureVerificationFailed = "SignatureVerificationFailed"
	// ReasonInvalidCSR: the CSR is not exactly the expected one.
	ReasonInvalidCSR = "InvalidCSR"
	// ReasonInvalidTenant: the Tenant contradicts its namespace.
	ReasonInvalidTenant = "InvalidTenant"
	// ReasonTenantMissing: no Tenant owns the namespace.
	ReasonTenantMissing = "TenantMissing"
	// ReasonTenantLimit: the tenant has as much as the provider lets it have.
	ReasonTenantLimit = "TenantLimitReached"
	// ReasonTenantCordoned: the tenant gets nothing new.
	ReasonTenantCordoned = "TenantCordoned"
	// ReasonSliceCordoned: the slice keeps what it has and gets no new pods.
	ReasonSliceCordoned = "SliceCordoned"
	// ReasonMoreRunsThanIsOffered: the pods of the slice take more than it is offered since the provider has less that is free.
	ReasonMoreRunsThanIsOffered = "MoreRunsThanIsOffered"
	// ReasonCountingResources: the provider's nodes and pods are not counted yet; a first offer follows within seconds.
	ReasonCountingResources = "CountingResources"
	// ReasonWaitingForPlugin: the provider's resource plugin was asked for the first time, and has not decided yet.
	ReasonWaitingForPlugin = "WaitingForPlugin"
	// ReasonPluginUnreachable: the provider's resource plugin is not reached, or says that it is not serving.
	ReasonPluginUnreachable = "PluginUnreachable"
	// ReasonPluginLate: the provider's resource plugin does not answer in time.
	ReasonPluginLate = "PluginLate"
	// ReasonPluginAnswerRefused: the provider's resource plugin answers with an error, or with what cannot be.
	ReasonPluginAnswerRefused = "PluginAnswerRefused"
	// ReasonRenewalNotSigned: a renewal was not signed with the key of the certificate that was issued last.
	ReasonRenewalNotSigned = "RenewalNotSigned"
	// ReasonPeeringRevoked: the certificates of the peering have no rights any more; peer again.
	ReasonPeeringRevoked = "PeeringRevoked"
	// ReasonConsumerSeen: the consumer has asked for a certificate lately.
	ReasonConsumerSeen = "ConsumerSeen"
	// ReasonConsumerSilent: the consumer has asked for no certificate for long, and its last one has expired.
	ReasonConsumerSilent = "ConsumerSilent"
	// ReasonTenantDrained: the tenant has no rights and no pods; its data is kept.
	ReasonTenantDrained = "TenantDrained"
	// ReasonAuthParamsFailed: the certificate could not be issued.
	ReasonAuthParamsFailed = "AuthParamsFailed"
	// ReasonCertificatePending: the certificate was asked for and is awaited.
	ReasonCertificatePending = "CertificatePending"
	// ReasonCertificateRenewed: a fresh certificate was issued.
	ReasonCertificateRenewed = "CertificateRenewed"
	// ReasonCertificateMismatch: the peer's certificate does not fit our key, name or time.
	ReasonCertificateMismatch = "CertificateMismatch"
	// ReasonEndpointChanged: the peer offers another API server or CA than was pinned at peering; peer again to accept it.
	ReasonEndpointChanged = "EndpointChanged"
	// ReasonInvalidEndpoint: the peer's API server address is not acceptable.
	ReasonInvalidEndpoint = "InvalidEndpoint"
	// ReasonKeyMissing: the private key of the identity is gone; peer again.
	ReasonKeyMissing = "KeyMissing"
	// ReasonAuthenticationAccepted: the slice's certificate was issued.
	ReasonAuthenticationAccepted = "ResourceSliceAuthenticationAccepted"
	// ReasonAuthenticationDenied: the slice's certificate was refused.
	ReasonAuthenticationDenied = "ResourceSliceAuthenticationDenied"
	// ReasonResourcesAccepted: the slice was granted.
	ReasonResourcesAccepted = "ResourceSliceResourcesAccepted"
	// ReasonDefaultClassDisabled: this provider does not answer slices of the default class.
	ReasonDefaultClassDisabled = "DefaultResourceSliceClassDisabled"
	// ReasonWaitingForProvider: the slice was sent and not answered yet.
	ReasonWaitingForProvider = "WaitingForProvider"
	// ReasonNotReplicated: the object could not be sent to the provider; the message says why.
	ReasonNotReplicated = "NotReplicated"
	// ReasonPermissionPending: the rights in a new tenant namespace are not effective yet.
	ReasonPermissionPending = "PermissionPending"
	// ReasonInvalidNamespace: a tenant namespace's name does not fit its label.
	ReasonInvalidNamespace = "InvalidTenantNamespace"
	// ReasonAPIServerUnknown: the address to advertise to consumers is not known; set apiServer.address.
	ReasonAPIServerUnknown = "APIServerAddressUnknown"
	// ReasonCSRMissing: there is nothing to sign yet.
	ReasonCSRMissing = "CSRMissing"
	// ReasonInvalidSlice: the slice contradicts its tenant, or asks for what cannot be granted.
	ReasonInvalidSlice = "InvalidResourceSlice"
	// ReasonInvalidRenew: the Renew contradicts its tenant or slice.
	ReasonInvalidRenew = "InvalidRenew"
	// ReasonRenewing: a fresh certificate was asked for.
	ReasonRenewing = "Renewing"
	// ReasonIdentityPending: the Identity of the slice is not usable yet.
	ReasonIdentityPending = "IdentityPending"
	// ReasonNameConflict: an object of that name exists at the provider and is not ours.
	ReasonNameConflict = "NameConflict"
	// ReasonPeerUnreachable: the provider does not answer.
	ReasonPeerUnreachable = "PeerUnreachable"
	// ReasonUnauthorized: the provider does not accept our identity, or took its rights away.
	ReasonUnauthorized = "Unauthorized"
	// ReasonRemoteThrottled: the provider asked us to slow down.
	ReasonRemoteThrottled = "RemoteThrottled"
	// ReasonRefusedByProvider: the provider's rules do not allow the object.
	ReasonRefusedByProvider = "RefusedByProvider"
	// ReasonRemoteNamespaceMissing: our tenant namespace does not exist at the provider.
	ReasonRemoteNamespaceMissing = "RemoteTenantNamespaceMissing"
	// ReasonReplacing: the copy of an earlier object of the same name is removed first.
	ReasonReplacing = "ReplacingCopy"
	// ReasonDeletionPending: something else has to go first; the message names it.
	ReasonDeletionPending = "DeletionPending"
	// ReasonVirtualNodeCreated: the slice's VirtualNode was created.
	ReasonVirtualNodeCreated = "VirtualNodeCreated"
	// ReasonOwnRangesUnknown: it is not known which addresses this cluster's pods have, so that a provider's cannot be told from them.
	ReasonOwnRangesUnknown = "OwnRangesUnknown"
	// ReasonVirtualNodeConflict: a VirtualNode or Node of the slice's name exists and is not the slice's.
	ReasonVirtualNodeConflict = "VirtualNodeConflict"
	// ReasonRequestRefused: a virtual kubelet's certificate request is not exactly the expected one, and was left alone.
	ReasonRequestRefused = "CertificateRequestRefused"
	// ReasonRequestApproved: a virtual kubelet's certificate request was approved.
	ReasonRequestApproved = "CertificateRequestApproved"
	// ReasonNotOurs: an object of the name that we need exists and was not made by us.
	ReasonNotOurs = "ObjectNotOurs"
)
