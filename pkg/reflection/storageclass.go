package reflection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// defaultClassAnnotations mark the class of claims that name none.
var defaultClassAnnotations = []string{"storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"}

// WhyClassNotOffered says why another cluster's claim may not have a class here; empty if it may. Without a class, or with one that
// no StorageClass stands for, a claim gets no new volume but one that somebody made for a claim of their own.
func WhyClassNotOffered(name *string, classes []storagev1.StorageClass) string {
	if name != nil && *name == "" {
		return "its storage class must not be empty: a volume without class would be one of the provider's own"
	}
	for i := range classes {
		if name != nil && classes[i].Name == *name || name == nil && IsDefaultClass(&classes[i]) {
			return ""
		}
	}
	if name == nil {
		return "it names no storage class, and the provider has no default one"
	}
	return fmt.Sprintf("the provider does not offer the storage class %q", cutOff(*name, maxObjectName))
}

// IsDefaultClass tells whether claims that name no class get this one, or another one that is marked likewise.
func IsDefaultClass(class *storagev1.StorageClass) bool {
	for _, annotation := range defaultClassAnnotations {
		if class.Annotations[annotation] == "true" {
			return true
		}
	}
	return false
}

// WhyVolumesNotOffered says why Kubernetes may not make the claims of a pod's ephemeral volumes; empty if it may.
func WhyVolumesNotOffered(spec *corev1.PodSpec, classes []storagev1.StorageClass) string {
	for i := range spec.Volumes {
		ephemeral := spec.Volumes[i].Ephemeral
		if ephemeral == nil || ephemeral.VolumeClaimTemplate == nil {
			continue
		}
		if why := WhyClassNotOffered(ephemeral.VolumeClaimTemplate.Spec.StorageClassName, classes); why != "" {
			return fmt.Sprintf("the ephemeral volume %s cannot be made: %s", spec.Volumes[i].Name, why)
		}
	}
	return ""
}

// HasEphemeralVolumes tells whether Kubernetes makes claims for a pod.
func HasEphemeralVolumes(spec *corev1.PodSpec) bool {
	for i := range spec.Volumes {
		if spec.Volumes[i].Ephemeral != nil {
			return true
		}
	}
	return false
}
