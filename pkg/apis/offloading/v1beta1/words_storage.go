package v1beta1

// Names of the storage fabric.
const (
	// StorageProvisioner is the provisioner of the StorageClass by which a claim asks for a volume wherever its first pod runs.
	StorageProvisioner = "liqo.io/storage"
	// PlaceholderDriver is the CSI driver that the PersistentVolumes of remote claims name. No node has it, so no node ever
	// mounts one of them.
	PlaceholderDriver = "storage.liqo.io"
	// DefaultStorageNamespace holds the claims that are behind volumes on physical nodes.
	DefaultStorageNamespace = "liqo-storage"
	// VolumePrefix and the UID of the claim that a volume was made for make the volume's name.
	VolumePrefix = "pvc-"
)

// Labels of the storage fabric.
const (
	// StorageAvailableLabel ("true") marks virtual nodes whose provider offers storage.
	StorageAvailableLabel = "storage.liqo.io/available"
	// StorageProvisionerLabel ("true") marks the claims that are behind volumes on physical nodes.
	StorageProvisionerLabel = "liqo.io/storage-provisioner"
	// VirtualClaimNamespaceLabel on such a claim is the namespace of the claim that it stands for, shortened to a label's length.
	VirtualClaimNamespaceLabel = "storage.liqo.io/virtual-pvc-namespace"
	// VirtualClaimNameLabel on such a claim is the name of the claim that it stands for, shortened to a label's length.
	VirtualClaimNameLabel = "storage.liqo.io/virtual-pvc-name"
	// MoveLabel on what 'liqoctl move volume' makes is the UID of the claim that moves.
	MoveLabel = "storage.liqo.io/move"
	// RetainedLabel ("true") on a claim behind a volume says that the volume was given up with policy Retain: the data stays
	// until somebody deletes the claim.
	RetainedLabel = "storage.liqo.io/retained"
)

// Annotations of the storage fabric.
const (
	// RemoteStorageClassAnnotation on a claim is its class at the provider.
	RemoteStorageClassAnnotation = "liqo.io/remote-storage-class"
	// RemoteAccessModesAnnotation on a claim lists its access modes at the provider, separated by commas.
	RemoteAccessModesAnnotation = "liqo.io/remote-access-modes"
	// RemoteClaimNameAnnotation on a claim is the name of the claim at the provider where it is not the same, as while a
	// volume moves.
	RemoteClaimNameAnnotation = "storage.liqo.io/remote-name"
	// VirtualClaimAnnotation on a claim behind a volume is <namespace>/<name> of the claim that it stands for.
	VirtualClaimAnnotation = "storage.liqo.io/claim"
	// VolumeAnnotation on a claim behind a volume is the name of that volume.
	VolumeAnnotation = "storage.liqo.io/volume"
	// ReclaimPolicyAnnotation on a claim behind a volume is the policy that the volume has.
	ReclaimPolicyAnnotation = "storage.liqo.io/reclaim-policy"
	// SelectedNodeAnnotation on a claim behind a volume on a physical node is the node that it was put on. Without the annotation by
	// which Kubernetes says so, the volume could not be made there.
	SelectedNodeAnnotation = "storage.liqo.io/selected-node"
	// MovingAnnotation on a claim names the run of 'liqoctl move volume' that is about to give it another volume. Another run
	// takes it off before it undoes anything, which keeps the first one from going on.
	MovingAnnotation = "storage.liqo.io/moving"
	// MovedClaimAnnotation on a volume that a claim's data was copied to is that claim, as JSON, until it has one of the two
	// volumes for good: whoever runs the move again finds in it how to end it, or how to go back.
	MovedClaimAnnotation = "storage.liqo.io/moved-claim"
	// WaitingVolumesAnnotation on a VirtualNode names, separated by commas, the volumes at its provider that were given back or deleted
	// and wait for the virtual kubelet to look what became of their data.
	WaitingVolumesAnnotation = "storage.liqo.io/waiting-volumes"
	// DeleteVolumesAnnotation on a NamespaceOffloading or VirtualNode lists the UIDs, separated by commas, of the claims whose
	// volumes at the provider may be lost with it. "true" means all, and counts only while the object is being deleted.
	DeleteVolumesAnnotation = "storage.liqo.io/delete-volumes"
)

// VolumeFinalizer on a PersistentVolume keeps it until what is behind it was given up as its policy says.
const VolumeFinalizer = "storage.liqo.io/volume"

// Reasons of conditions and Events of the storage fabric.
const (
	// ReasonVolumesHoldData: something cannot go, because volumes at the provider would be lost with it.
	ReasonVolumesHoldData = "VolumesHoldData"
	// ReasonVolumeProvisioned: a claim got its volume.
	ReasonVolumeProvisioned = "VolumeProvisioned"
	// ReasonMountOptionsIgnored: the mount options of a claim's class do not apply at the provider; those of the class there do.
	ReasonMountOptionsIgnored = "MountOptionsIgnored"
	// ReasonVolumePending: what is behind a volume is not ready; the message says why.
	ReasonVolumePending = "VolumePending"
	// ReasonVolumeRefused: a claim cannot have a volume there; the message says why, and what to change.
	ReasonVolumeRefused = "VolumeRefused"
	// ReasonVolumeLost: what was behind a volume is gone. It is never made again empty.
	ReasonVolumeLost = "VolumeLost"
	// ReasonClaimConflict: a claim of the name is there already, made for another one. Its data is not given to this one.
	ReasonClaimConflict = "ClaimConflict"
	// ReasonVolumeNotAtProvider: a pod cannot run there, because its volume is not there.
	ReasonVolumeNotAtProvider = "VolumeNotAtProvider"
)
