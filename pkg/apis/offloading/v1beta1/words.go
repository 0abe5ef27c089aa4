package v1beta1

// Labels of offloading objects.
const (
	// OriginLabel on a reflected object is the ID of the cluster that it comes from.
	OriginLabel = "offloading.liqo.io/origin"
	// DestinationLabel on a reflected object is the ID of the cluster that it was made in.
	DestinationLabel = "offloading.liqo.io/destination"
	// NodeNameLabel on a ShadowPod is the virtual node that it comes through.
	NodeNameLabel = "offloading.liqo.io/nodename"
	// ServiceAccountNameLabel on a Secret with a pod's tokens is the pod's ServiceAccount (shortened if it is long).
	ServiceAccountNameLabel = "offloading.liqo.io/service-account-name"
	// ManagedByLabel marks Pods and EndpointSlices made from shadow objects.
	ManagedByLabel = "liqo.io/managed-by"
	// ManagedByShadowPod is the value of ManagedByLabel on Pods.
	ManagedByShadowPod = "shadowpod"
	// ManagedByShadowEndpointSlice is the value of ManagedByLabel on EndpointSlices.
	ManagedByShadowEndpointSlice = "shadowendpointslice"
	// EndpointSliceManager is the value of endpointslice.kubernetes.io/managed-by on EndpointSlices that were reflected.
	EndpointSliceManager = "endpointslice.reflection.liqo.io"
	// LocalPodLabel ("true") marks this cluster's pods that run on a virtual node.
	LocalPodLabel = "liqo.io/shadowPod"
	// SchedulingLabel ("true") on a namespace selects it for the webhook and the policies of pods.
	SchedulingLabel = "liqo.io/scheduling-enabled"
	// MarkedLabel ("true") is on a pod while it is admitted, if the controller manager is to look at it: it names its node, or may be large. It stays
	// if the controller manager does not answer, and means nothing then.
	MarkedLabel = "offloading.liqo.io/marked"
	// LargePodsLabel ("true") is on an offloaded namespace since it had a pod that may be large (capacity.Small).
	LargePodsLabel = "offloading.liqo.io/large-pods"
	// SizeCheckedLabel ("true") is on bindings that the controller manager is asked about, and so on their pods: those of namespaces with
	// LargePodsLabel, and those to nodes with CrowdedAnnotation.
	SizeCheckedLabel = "offloading.liqo.io/size-checked"
	// TooManyBytesLabel ("true") is on the twins of a consumer for whom more is stored than the provider lets it: it makes and changes nothing there.
	TooManyBytesLabel = "offloading.liqo.io/too-many-bytes"
	// OffloadedLabel ("true") is on a namespace from when it is offloaded, in whatever strategy, until nothing of it is at any provider: as long as
	// virtual kubelets get tokens for its pods.
	OffloadedLabel = "liqo.io/offloaded"
	// VirtualNodeLabel names the VirtualNode that a virtual kubelet's objects belong to.
	VirtualNodeLabel = "liqo.io/virtual-node"
	// RemoteUnavailableLabel ("true") marks pods whose virtual node is not ready.
	RemoteUnavailableLabel = "liqo.io/remote-unavailable"
	// CreatorUserLabel on a ShadowPod is a hash of the user that created it.
	CreatorUserLabel = "liqo.io/creator-user"
	// ComponentLabel names the component that a pod belongs to.
	ComponentLabel = "offloading.liqo.io/component"
	// VirtualKubeletComponent is the value of ComponentLabel on virtual kubelets.
	VirtualKubeletComponent = "virtual-kubelet"
	// ReflectionComponent is the value of ComponentLabel on RoleBindings by which virtual kubelets read an offloaded namespace; an admission
	// policy looks at those that have it.
	ReflectionComponent = "reflection"
)

// Annotations of offloading objects.
const (
	// SkipReflectionAnnotation (presence) keeps an object or a namespace at home under policy DenyList.
	SkipReflectionAnnotation = "liqo.io/skip-reflection"
	// AllowReflectionAnnotation (presence) lets an object cross under policy AllowList.
	AllowReflectionAnnotation = "liqo.io/allow-reflection"
	// ForceRemoteNodePortAnnotation ("true") on a Service has its node ports opened at the provider, too.
	ForceRemoteNodePortAnnotation = "liqo.io/force-remote-node-port"
	// UseDirectConnectionsAnnotation ("true") on a Service has providers reach the Service's pods at other providers by networks of their own
	// with these, where they have one.
	UseDirectConnectionsAnnotation = "liqo.io/use-direct-connections"
	// DirectConnectionsDataAnnotation on a ShadowEndpointSlice is a JSON map from cluster IDs to addresses that pods have in their own cluster.
	// Those of all clusters, in the order of the IDs, are the addresses of the first endpoints.
	DirectConnectionsDataAnnotation = "liqo.io/direct-connections-data"
	// ManagedByNamespaceMapAnnotation on a twin namespace or its RoleBinding is <tenant namespace>/<NamespaceMap>.
	ManagedByNamespaceMapAnnotation = "liqo.io/managed-by-namespace-map"
	// OriginalNameAnnotation on a twin namespace is the name of the consumer's namespace.
	OriginalNameAnnotation = "liqo.io/original-name"
	// OriginNamespaceUIDAnnotation on a twin is the UID of the consumer's namespace that it was made for.
	OriginNamespaceUIDAnnotation = "liqo.io/origin-namespace-uid"
	// RenderedHashAnnotation on a virtual kubelet's Deployment is the digest of what it was rendered to.
	RenderedHashAnnotation = "liqo.io/rendered-hash"
	// NodeAppliedAnnotation on a virtual Node lists the labels, annotations and taints that Liqo put there, so that it can
	// take them away again without touching those of others.
	NodeAppliedAnnotation = "liqo.io/last-applied"
	// LargestPodAnnotation on a virtual Node is, in JSON, the most of each resource that one more pod can request: what is left on one node of
	// the provider.
	LargestPodAnnotation = "liqo.io/largest-pod"
	// CrowdedAnnotation ("true") is on a virtual Node of whose provider no node may have room for a pod that is small (capacity.Small).
	CrowdedAnnotation = "offloading.liqo.io/crowded"
	// AntiAffinityPresetAnnotation on a pod is soft, hard or propagate.
	AntiAffinityPresetAnnotation = "liqo.io/anti-affinity-preset"
	// AntiAffinityLabelsAnnotation on a pod lists the label keys that the preset uses, separated by commas.
	AntiAffinityLabelsAnnotation = "liqo.io/anti-affinity-labels"
	// RemoteRuntimeClassAnnotation on a pod is its runtime class at the provider.
	RemoteRuntimeClassAnnotation = "liqo.io/remote-runtime-class-name"
	// APIServerSupportAnnotation on a pod is remote or disabled; without it the pod talks to its own cluster's API server.
	APIServerSupportAnnotation = "liqo.io/api-server-support"
	// RemotePodCIDRsAnnotation on a VirtualNode lists the prefixes, separated by commas, that pod addresses reported by the
	// provider must lie in, or is "none". It is written once, from the first accepted ResourceSlice. Without it, and with "none", no
	// address of a remote pod is shown.
	RemotePodCIDRsAnnotation = "liqo.io/remote-pod-cidrs"
	// NoPodCIDRs in RemotePodCIDRsAnnotation: the provider announced no range that can be its own.
	NoPodCIDRs = "none"
	// ProviderLabelsAnnotation on a VirtualNode lists, as key=value, those of its labels that the provider suggested and that were taken.
	ProviderLabelsAnnotation = "liqo.io/provider-labels"
	// ProviderNodeSelectorAnnotation on a VirtualNode lists, as key=value, what of its offloadingPatch's nodeSelector comes from its ResourceSlice.
	ProviderNodeSelectorAnnotation = "liqo.io/provider-node-selector"
	// SuggestedLabelsAnnotation on a VirtualNode lists the labels that the provider suggests now, while these are others.
	SuggestedLabelsAnnotation = "liqo.io/suggested-labels"
	// ApprovedLabelsAnnotation on a VirtualNode, written by an administrator, lists the suggested labels that are to be taken. It counts
	// for exactly these.
	ApprovedLabelsAnnotation = "liqo.io/approved-labels"
	// ConfirmedRemovalsAnnotation on a VirtualNode, written by an administrator, is the token of the removals that are held and are to be
	// made. It counts for exactly these, and is taken away once they are not held any more. On a NamespaceMap it is the names, separated by
	// commas, of the namespaces whose twins are to go.
	ConfirmedRemovalsAnnotation = "liqo.io/confirmed-removals"
	// ReflectedKeysAnnotation on a reflected object records which of its labels and annotations were reflected, four
	// characters each, so that they can be removed when they vanish at home.
	ReflectedKeysAnnotation = "offloading.liqo.io/reflected-keys"
	// DroppedFieldsAnnotation on a reflected object names the fields that the provider's API server does not keep, so that its user
	// is told once.
	DroppedFieldsAnnotation = "offloading.liqo.io/dropped-fields"
	// RefusedPartAnnotation on a reflected object says which part of it the provider refused, so that its user is told once.
	RefusedPartAnnotation = "offloading.liqo.io/refused-part"
	// GivenClassAnnotation on a reflected Ingress or Service is the class that it got because the provider offered it, to be told from
	// one that the provider chose.
	GivenClassAnnotation = "offloading.liqo.io/given-class"
	// SecretLedgerOmittedAnnotation on a ConfigMap SecretLedger is how many Secrets did not fit into it.
	SecretLedgerOmittedAnnotation = "offloading.liqo.io/secret-ledger-omitted"
	// SkippedNamespacesAnnotation on a NamespaceMap of this cluster changes whenever one of its namespaces gets or loses
	// SkipReflectionAnnotation, so that virtual kubelets, which cannot watch namespaces, read them again. It is not replicated.
	SkippedNamespacesAnnotation = "offloading.liqo.io/skipped-namespaces"
	// LogsRequestedAnnotation ("true") on a ShadowPod asks the provider to let the logs of its pod be read.
	LogsRequestedAnnotation = "offloading.liqo.io/logs-requested"
	// OpenGatesAnnotation on a ShadowPod lists those readiness gates of its consumer's pod that are not met, separated by commas; empty if
	// all are. Its pod then has the readiness gate ReadinessGatesCondition.
	OpenGatesAnnotation = "offloading.liqo.io/open-readiness-gates"
	// OriginNamespaceAnnotation and OriginLabelsAnnotation on ShadowPods and remote pods are the namespace and the labels that the pod has in
	// its own cluster, where files of the downward API say that.
	OriginNamespaceAnnotation = "offloading.liqo.io/origin-namespace"
	// OriginLabelsAnnotation: see OriginNamespaceAnnotation; one label per line, as in such a file.
	OriginLabelsAnnotation = "offloading.liqo.io/origin-labels"
	// OnPartitionAnnotation on a pod says what its provider does with it once it hears nothing of the pod's cluster any more: keep it (the
	// default), stop it, or stop it while that cluster starts no other one before (fence); the last two with a time if wanted, as stop=5m.
	OnPartitionAnnotation = "liqo.io/on-partition"
	// SignOfLifePrefix and the value of a CreatorUserLabel name the Lease, in the tenant namespace, by which the virtual kubelet of that user
	// tells that it lives. Its provider makes it once a pod asks for that, and judges by when it was written.
	SignOfLifePrefix = "liqo-sign-of-life-"
	// EndsInAnnotation (whole seconds, at least "1") on a ShadowPod has the provider end its pod in that time, which may be shorter or longer
	// than the pod's own, and make no other one. It comes before the deletion of the ShadowPod, which cannot say that.
	EndsInAnnotation = "offloading.liqo.io/ends-in"
	// CreatorUserAnnotation on a Pod that stands for a ShadowPod is the value of its CreatorUserLabel: whose grant the Pod takes
	// of, also when the ShadowPod is gone.
	CreatorUserAnnotation = "offloading.liqo.io/creator-user"
	// KeptAtHomeAnnotation on a pod of an offloaded namespace names the fields of it that no provider takes, so that it runs on nodes of
	// its own cluster only.
	KeptAtHomeAnnotation = "offloading.liqo.io/kept-at-home"
	// NoPullSecretsAnnotation ("true") of a pod at a provider says that its consumer names no Secrets to pull images with: admission leaves it
	// without those of its ServiceAccount.
	NoPullSecretsAnnotation = "offloading.liqo.io/no-pull-secrets"
	// ContainersAnnotation of a pod at a provider names the containers that its consumer brought, init containers and those for debugging among
	// them, with commas between. Admission lets the consumer open streams into no others, such as the provider's sidecars.
	ContainersAnnotation = "offloading.liqo.io/containers"
	// ResourcesAskedAnnotation on the Pod of a ShadowPod is a digest of how much cpu and memory the ShadowPod asked for when the Pod was
	// made, or was last resized because of it.
	ResourcesAskedAnnotation = "offloading.liqo.io/resources-asked"
	// AskedAnnotation on a Pod or EndpointSlice of a shadow object lists digests of what the shadow object asked for last: labels and
	// annotations, and of a pod images, deadline and tolerations. What vanishes from it is taken away again, what is listed already is
	// not asked for a second time.
	AskedAnnotation = "offloading.liqo.io/asked"
	// TokenPodNameAnnotation on a Secret with a pod's tokens is the name of the pod.
	TokenPodNameAnnotation = "offloading.liqo.io/service-account-for-pod-name"
	// TokenPodUIDAnnotation on a Secret with a pod's tokens is the UID of the pod in its own cluster.
	TokenPodUIDAnnotation = "offloading.liqo.io/service-account-for-pod-uid"
	// TokenExpirationAnnotation on a Secret with a pod's tokens is when the first of them ends (RFC 3339).
	TokenExpirationAnnotation = "offloading.liqo.io/service-account-expiration"
	// RemoteServiceAccountAnnotation on a pod is its ServiceAccount at the provider (with API server support "remote").
	RemoteServiceAccountAnnotation = "liqo.io/remote-service-account-name"
)

// Finalizers.
const (
	// NamespaceOffloadingFinalizer removes the namespace's mappings.
	NamespaceOffloadingFinalizer = "namespaceoffloading-controller.liqo.io/finalizer"
	// NamespaceMapFinalizer removes the twins.
	NamespaceMapFinalizer = "namespacemap-controller.liqo.io/finalizer"
	// ShadowPodRecordFinalizer on a Pod that may finish keeps it until its end is recorded in the ShadowPod.
	ShadowPodRecordFinalizer = "shadowpod.liqo.io/record"
	// VirtualNodeFinalizer drains and removes the Node and its virtual kubelet.
	VirtualNodeFinalizer = "virtualnode-controller.liqo.io/finalizer"
)

// Names and taints.
const (
	// NamespaceOffloadingName is the only name of a NamespaceOffloading.
	NamespaceOffloadingName = "offloading"
	// VirtualNodeTaint keeps pods of namespaces that are not offloaded off virtual nodes.
	VirtualNodeTaint = "virtual-node.liqo.io/not-allowed"
	// CordonedTaint keeps new pods off the virtual nodes of a provider that takes none; what runs there stays.
	CordonedTaint = "virtual-node.liqo.io/cordoned"
	// DefaultVkOptionsTemplate is the chart's VkOptionsTemplate, in Liqo's namespace.
	DefaultVkOptionsTemplate = "virtual-kubelet-default"
	// RemoteClusterRole is what a slice's user may do in the twins.
	RemoteClusterRole = "liqo-virtual-kubelet-remote"
	// LocalClusterRole is what a virtual kubelet may do in an offloaded namespace of its own cluster, bound per namespace.
	LocalClusterRole = "liqo-virtual-kubelet-local"
	// TenantClusterRole is what a consumer may do in its tenant namespace.
	TenantClusterRole = "liqo-remote-controlplane"
	// VirtualKubeletTenantClusterRole is what a virtual kubelet may do in its tenant namespace.
	VirtualKubeletTenantClusterRole = "liqo-virtual-kubelet-tenant"
	// VirtualKubeletClusterRole is what a virtual kubelet may do cluster-wide: read how it is run, write the volumes of its provider.
	VirtualKubeletClusterRole = "liqo-virtual-kubelet"
	// VirtualKubeletBootstrapClusterRole lets a virtual kubelet ask for the certificate by which it becomes a node.
	VirtualKubeletBootstrapClusterRole = "liqo-virtual-kubelet-bootstrap"
	// VirtualKubeletAccountClusterRole is what a virtual kubelet may do cluster-wide where it is no node but a ServiceAccount;
	// the admission policy VirtualNodesPolicy confines it to its own node.
	VirtualKubeletAccountClusterRole = "liqo-virtual-kubelet-account"
	// VirtualKubeletTokensClusterRole is what such a virtual kubelet may do besides in an offloaded namespace, bound per
	// namespace.
	VirtualKubeletTokensClusterRole = "liqo-virtual-kubelet-tokens"
	// VirtualNodesPolicy is the admission policy that confines identities of virtual nodes, and its binding. The RoleBinding of this name in
	// Liqo's own namespace names the users that are virtual nodes; it grants them nothing.
	VirtualNodesPolicy = "liqo-virtual-nodes"
	// ManagerTenantClusterRole is what liqo-controller-manager may do in tenant namespaces, bound there by itself.
	ManagerTenantClusterRole = "liqo-controller-manager-tenant"
	// ManagerTwinClusterRole is what liqo-controller-manager may do in twin namespaces, bound there by itself.
	ManagerTwinClusterRole = "liqo-controller-manager-twin"
	// DefaultRuntimeClass is the RuntimeClass by which a pod asks for a virtual node.
	DefaultRuntimeClass = "liqo"
	// PodLogsRole is the Role in a twin namespace, with its RoleBinding, by which the consumer reads logs of the pods that it asked for.
	PodLogsRole = "liqo-pod-logs"
	// SecretLedger is the ConfigMap in a twin namespace by which the provider tells what became of reflected Secrets.
	SecretLedger = "liqo-secret-ledger"
)

// Reasons of conditions and Events in this group.
const (
	// ReasonPartiallyReflected: the provider refused a part of the object or does not keep it, and the object crossed without it; the
	// message says which.
	ReasonPartiallyReflected = "PartiallyReflected"
	// ReasonLargerThanAnyNode: a pod requests more than what any one node of the provider has left; it is not bound to the virtual node.
	ReasonLargerThanAnyNode = "LargerThanAnyNode"
	// ReasonTwinHoldsData: a twin of an earlier peering, or of an earlier namespace of the same name, holds claims; it is neither removed
	// nor given to another namespace.
	ReasonTwinHoldsData = "TwinHoldsData"
	// ReasonTwinsUnknown: the provider has twins of namespaces of whose offloading nothing is known here, as after the restore of an old
	// backup; they are kept.
	ReasonTwinsUnknown = "TwinsUnknown"
	// ReasonManyAtOnce: copies at the provider whose originals a list did not show, as after the restore of an old backup, are more than
	// may go at once; they are kept until an administrator confirms.
	ReasonManyAtOnce = "ManyAtOnce"
	// ReasonRemotePodExists: the pod has its twin at the provider.
	ReasonRemotePodExists = "RemotePodExists"
	// ReasonNotRequested: the provider was never asked for a twin of the pod.
	ReasonNotRequested = "NotRequested"
	// ReasonRemotePodMissing: the twin is gone and the provider has to make it again.
	ReasonRemotePodMissing = "RemotePodMissing"
	// ReasonReadinessGatesNotReady: a readiness gate of the pod is not met at home.
	ReasonReadinessGatesNotReady = "ReadinessGatesNotReady"
	// ReasonOffloadingReady: all selected clusters have their twin.
	ReasonOffloadingReady = "OffloadingReady"
	// ReasonNoClusterSelected: the selector selects no virtual node.
	ReasonNoClusterSelected = "NoClusterSelected"
	// ReasonClusterSelected: the selector selects the cluster.
	ReasonClusterSelected = "ClusterSelected"
	// ReasonClusterNotSelected: the selector does not select the cluster.
	ReasonClusterNotSelected = "ClusterNotSelected"
	// ReasonInvalidClusterSelector: the selector cannot be parsed.
	ReasonInvalidClusterSelector = "InvalidClusterSelector"
	// ReasonTwinPending: the provider has not answered yet.
	ReasonTwinPending = "RemoteNamespacePending"
	// ReasonTwinReady: the twin can be used.
	ReasonTwinReady = "RemoteNamespaceReady"
	// ReasonTwinFailed: the provider could not make the twin.
	ReasonTwinFailed = "RemoteNamespaceFailed"
	// ReasonTwinTerminating: the twin is being removed.
	ReasonTwinTerminating = "RemoteNamespaceTerminating"
	// ReasonNamespaceConflict: a namespace of the twin's name exists and is not the consumer's.
	ReasonNamespaceConflict = "NamespaceConflict"
	// ReasonNamespaceNotAllowed: the provider does not let the consumer use this name.
	ReasonNamespaceNotAllowed = "NamespaceNotAllowed"
	// ReasonNamespaceNeverOffloaded: the namespace holds what must never cross, such as private keys of Liqo or of a peering; the message
	// says what.
	ReasonNamespaceNeverOffloaded = "NamespaceNeverOffloaded"
	// ReasonNamespaceLimit: the consumer has as many namespaces as the provider lets it have.
	ReasonNamespaceLimit = "NamespaceLimitReached"
	// ReasonMappingReady: all twins are in place.
	ReasonMappingReady = "MappingReady"
	// ReasonVirtualNodeReady: Node and virtual kubelet run.
	ReasonVirtualNodeReady = "VirtualNodeReady"
	// ReasonVirtualKubeletStarting: the virtual kubelet is not ready yet; the message says which pod and why.
	ReasonVirtualKubeletStarting = "VirtualKubeletStarting"
	// ReasonNodeNotReady: the Node is not ready.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonTemplateMissing: the VkOptionsTemplate does not exist.
	ReasonTemplateMissing = "VkOptionsTemplateMissing"
	// ReasonInvalidVirtualNode: the VirtualNode contradicts its namespace or another node; the message says how.
	ReasonInvalidVirtualNode = "InvalidVirtualNode"
	// ReasonPolicyMissing: the admission policy that confines virtual kubelets is not there, so they get no rights.
	ReasonPolicyMissing = "AdmissionPolicyMissing"
	// ReasonDraining: pods are leaving the node.
	ReasonDraining = "Draining"
	// ReasonPodCreated: the pod exists.
	ReasonPodCreated = "CreatedPod"
	// ReasonPodCreationFailed: the pod could not be created.
	ReasonPodCreationFailed = "FailedCreatePod"
	// ReasonDebugFailed: an ephemeral container could not be added to the pod; the message says why.
	ReasonDebugFailed = "FailedDebug"
	// ReasonResizeFailed: the pod could not be resized and runs on as it is.
	ReasonResizeFailed = "FailedResize"
	// ReasonPodTerminated: the pod finished.
	ReasonPodTerminated = "PodTerminated"
	// ReasonStoppedOnPartition: the provider stopped the pod because it heard nothing of its consumer, and the pod asks for that.
	ReasonStoppedOnPartition = "StoppedOnPartition"
	// ReasonPodConflict: a pod of that name exists and is not this consumer's.
	ReasonPodConflict = "PodConflict"
	// ReasonPodRefused: the pod has a field that is not on the allow-list.
	ReasonPodRefused = "PodRefused"
	// ReasonForeignReference: the pod names an object of the twin namespace that did not come from its consumer.
	ReasonForeignReference = "ForeignReference"
	// ReasonReferencesPending: the pod is made once the objects that it names are at the provider; the message names them.
	ReasonReferencesPending = "ReferencesPending"
	// ReasonKeysRefused: the pod is without labels or annotations that the provider does not let pods of other clusters have.
	ReasonKeysRefused = "KeysRefused"
	// ReasonQuotaExceeded: the grant is used up.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonTooManyEndedPods: the provider keeps twice as many pods of the slice as may run, those that ended among them.
	ReasonTooManyEndedPods = "TooManyEndedPods"
	// ReasonTooManyBytes: more is stored for the consumer than the provider lets it; nothing is made or changed until it deleted some.
	ReasonTooManyBytes = "TooManyBytes"
	// ReasonCordoned: the slice or its tenant is cordoned.
	ReasonCordoned = "Cordoned"
	// ReasonMoreRunsThanIsOffered: the pods of the virtual node take more than it is offered since the provider has less that is free.
	ReasonMoreRunsThanIsOffered = "MoreRunsThanIsOffered"
	// ReasonOffloadingBackOff: the pod's namespace is not offloaded to this cluster.
	ReasonOffloadingBackOff = "OffloadingBackOff"
	// ReasonOffloadingAborted: the pod's namespace is no longer offloaded to this cluster.
	ReasonOffloadingAborted = "OffloadingAborted"
	// ReasonRemotePodTerminated: the remote pod is gone and will not come back.
	ReasonRemotePodTerminated = "RemotePodTerminated"
	// ReasonInvalidRemoteStatus: the provider reported something that cannot be true.
	ReasonInvalidRemoteStatus = "InvalidRemoteStatus"
	// ReasonFailedReflection: the object could not cross; the message says why.
	ReasonFailedReflection = "FailedReflection"
	// ReasonTokensPending: the pod is made once the Secret with the tokens of its ServiceAccount is at the provider.
	ReasonTokensPending = "SATokensPending"
	// ReasonTokensFailed: the tokens of the pod's ServiceAccount could not be brought to the provider; the message says why.
	ReasonTokensFailed = "FailedSATokensReflection"
	// ReasonTokensRecovered: the tokens of the pod's ServiceAccount are at the provider again, after a failure was told.
	ReasonTokensRecovered = "SuccessfulSATokensReflection"
	// ReasonNoAPIServerAddress: the pod cannot use its own cluster's API server, because no address is known that works.
	ReasonNoAPIServerAddress = "APIServerAddressUnknown"
	// ReasonEarlierPod: a ShadowPod of an earlier pod of that name is still at the provider, and is waited for.
	ReasonEarlierPod = "EarlierPod"
	// ReasonHostNamespacesOff: the pod runs without the namespaces of its host that it asks for.
	ReasonHostNamespacesOff = "HostNamespacesOff"
	// ReasonPriorityNotKept: the pod runs without the priority that it has in its own cluster.
	ReasonPriorityNotKept = "PriorityNotKept"
	// ReasonReflectionDisabled: the object's policy keeps it at home.
	ReasonReflectionDisabled = "ReflectionDisabled"
	// ReasonNameConflict: an object of that name exists at the provider and is not ours.
	ReasonNameConflict = "NameConflict"
	// ReasonNotReflectable: the object never crosses, whatever the policy; the message says why.
	ReasonNotReflectable = "NotReflectable"
	// ReasonTooLarge: the object is larger than the remote API server takes.
	ReasonTooLarge = "TooLarge"
	// ReasonContended: somebody at the provider keeps changing what was reflected; the message names the field.
	ReasonContended = "Contended"
	// ReasonStatusOfOthers: the status that would come back from the provider is written by somebody else in this cluster; the
	// message names who.
	ReasonStatusOfOthers = "StatusOfOthers"
	// ReasonRemoteChangeReverted: somebody at the provider changed what was reflected, and it was put back; the message names
	// the field and who changed it.
	ReasonRemoteChangeReverted = "RemoteChangeReverted"
	// ReasonLabelsNotApproved: the provider suggests other labels for its node than were taken when the VirtualNode was made.
	ReasonLabelsNotApproved = "LabelsNotApproved"
	// ReasonNoPodAddressRange: the provider announced no range that addresses of its pods can be in, so none of them is shown.
	ReasonNoPodAddressRange = "NoPodAddressRange"
	// ReasonRemoteOverLimit: the provider shows more objects than are accepted from it.
	ReasonRemoteOverLimit = "RemoteOverLimit"
	// ReasonLedgerOverflow: there are more reflected Secrets in a twin than its ledger can list.
	ReasonLedgerOverflow = "SecretLedgerOverflow"
	// ReasonNoRemoteEndpoints: an EndpointSlice has no endpoint that the provider has to be told of.
	ReasonNoRemoteEndpoints = "NoRemoteEndpoints"
	// ReasonNoLocalEndpoints: a Service takes what comes from outside to the pods of the node that it comes to, and all of its pods are at a provider.
	ReasonNoLocalEndpoints = "NoLocalEndpoints"
	// ReasonServiceNotReflected: the Service of an EndpointSlice stays at home.
	ReasonServiceNotReflected = "ServiceNotReflected"
	// ReasonAddressNotAnnounced: an endpoint is left out because its address is in no range that the consumer announced and
	// the provider accepted.
	ReasonAddressNotAnnounced = "AddressNotAnnounced"
	// ReasonRangesPending: the addresses of the peer wait for the ranges under which this cluster sees them: its Configuration says why.
	ReasonRangesPending = "RangesPending"
	// ReasonEndpointSliceConflict: an EndpointSlice of that name exists and is not this consumer's.
	ReasonEndpointSliceConflict = "EndpointSliceConflict"
	// ReasonEndpointSliceInvalid: the EndpointSlice that the consumer wants is malformed.
	ReasonEndpointSliceInvalid = "EndpointSliceInvalid"
	// ReasonInvalidRemoteEvent: the provider wrote an Event that cannot be true or says nothing.
	ReasonInvalidRemoteEvent = "InvalidRemoteEvent"
	// ReasonRoutineEvent: a remote Event tells nothing that is not told already.
	ReasonRoutineEvent = "RoutineEvent"
	// ReasonStaleEvent: a remote Event is of the past.
	ReasonStaleEvent = "StaleEvent"
	// ReasonRemoteUnavailable: the provider does not answer.
	ReasonRemoteUnavailable = "RemoteUnavailable"
	// ReasonNetworkUnavailable: the provider answers, and no packet from this cluster comes to the pods there: the tunnel is down,
	// or the provider's network does not lead to their node.
	ReasonNetworkUnavailable = "NetworkUnavailable"
	// ReasonRightsRevoked: the provider answers, and took our rights back.
	ReasonRightsRevoked = "RightsRevoked"
)
