package v1beta1

// Condition types of a VirtualNode, and their statuses; all but VirtualKubelet and Node stand in its summary.
const (
	// VirtualKubeletCondition is the state of the virtual kubelet's Deployment.
	VirtualKubeletCondition = "VirtualKubelet"
	// NodeCondition is the state of the Node.
	NodeCondition = "Node"
	// RightsCondition tells that the provider took back our rights to the virtual node. It is there, and False, only then.
	RightsCondition = "Rights"
	// LabelsChangedCondition tells that the provider suggests other labels than were taken. It is there, and True, only then.
	LabelsChangedCondition = "LabelsChanged"
	// AddressesShownCondition tells that no address of the virtual node's pods is shown, and what to do about it. It is there, and False,
	// only then.
	AddressesShownCondition = "AddressesShown"
	// CordonedCondition tells that the provider takes no new pods, and the Node has CordonedTaint; it is there only then.
	CordonedCondition = "Cordoned"
	// OverCommittedCondition of a VirtualNode, and of its Node, tells that more of its pods runs than the provider offers now, and by how much;
	// it is there, and True, only then.
	OverCommittedCondition = "OverCommitted"
	// RemovalsHeldCondition of a VirtualNode, and of its Node, tells that the removal of many copies at once waits for a confirmation; of a
	// NamespaceMap, that the removal of twins does. It is there, and True, only then.
	RemovalsHeldCondition = "RemovalsHeld"
	// StatusNone: there is none.
	StatusNone = "None"
	// StatusCreating: it does not run yet.
	StatusCreating = "Creating"
	// StatusRunning: it runs.
	StatusRunning = "Running"
	// StatusNotReady: it ran, and is not ready now.
	StatusNotReady = "NotReady"
	// StatusDraining: its pods are leaving.
	StatusDraining = "Draining"
	// StatusDeleting: it is going.
	StatusDeleting = "Deleting"
)

// Condition types of a twin in a NamespaceOffloading.
const (
	// OffloadingRequiredCondition tells whether the selector selects the cluster.
	OffloadingRequiredCondition = "OffloadingRequired"
	// RemoteNamespaceReadyCondition tells whether the twin can be used.
	RemoteNamespaceReadyCondition = "Ready"
)

// Condition types that a virtual kubelet puts on this cluster's pods.
const (
	// RemotePodCondition tells which pod at the provider a pod runs as; "False" that the provider was never asked for one.
	RemotePodCondition = "offloading.liqo.io/RemotePod"
	// InvalidRemoteStatusCondition ("True") tells what of the provider's report about a pod was not believed.
	InvalidRemoteStatusCondition = "offloading.liqo.io/InvalidRemoteStatus"
	// ChangeRefusedCondition ("True") tells which change of a running pod, such as a container of kubectl debug, the provider does not
	// take; the pod runs on without it. A provider's controller puts it on ShadowPods for what admission took and the pod did not get.
	ChangeRefusedCondition = "offloading.liqo.io/ChangeRefused"
	// KeysRefusedCondition ("True") on a ShadowPod tells which of its labels and annotations the provider does not give to the pod.
	KeysRefusedCondition = "offloading.liqo.io/KeysRefused"
	// ReadinessGatesCondition on a pod of a consumer tells whether the readiness gates are met that the pod has in its own cluster.
	ReadinessGatesCondition = "offloading.liqo.io/ReadinessGates"
	// ReachableCondition ("False") on a pod of a consumer tells that no packet of the consumer comes to the node that the pod runs on.
	ReachableCondition = "offloading.liqo.io/Reachable"
	// ReducedCondition ("True") on a ShadowPod tells which of its tolerations the provider does not give to the pod, and how long it has to end.
	ReducedCondition = "offloading.liqo.io/Reduced"
	// APIServerReachableCondition ("False") tells why a pod that has a token for its own cluster's API server cannot use it.
	APIServerReachableCondition = "offloading.liqo.io/APIServerReachable"
	// AddressShownCondition ("False") tells why the pod is shown without its address, although it has one.
	AddressShownCondition = "offloading.liqo.io/AddressShown"
	// HostNamespacesCondition ("False") tells which of its host's namespaces a pod asks for and does not get at the provider.
	HostNamespacesCondition = "offloading.liqo.io/HostNamespaces"
	// PriorityCondition ("False") tells which priority a pod has in its own cluster and not at the provider.
	PriorityCondition = "offloading.liqo.io/Priority"
)
