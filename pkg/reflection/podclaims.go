package reflection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodClaim is a claim that a pod uses.
type PodClaim struct {
	// Name of the claim.
	Name string
	// Ephemeral says that the claim was made for this pod, and goes with it.
	Ephemeral bool
}

// PodClaims names the claims that pods with this spec use by name.
func PodClaims(spec *corev1.PodSpec) []string {
	var names []string
	for i := range spec.Volumes {
		if source := spec.Volumes[i].PersistentVolumeClaim; source != nil && !slices.Contains(names, source.ClaimName) {
			names = append(names, source.ClaimName)
		}
	}
	return names
}

// ClaimsOf lists the claims that a pod uses: those that it names, and those that Kubernetes makes for its ephemeral volumes.
func ClaimsOf(pod *corev1.Pod) []PodClaim {
	var list []PodClaim
	for _, name := range PodClaims(&pod.Spec) {
		list = append(list, PodClaim{Name: name})
	}
	for i := range pod.Spec.Volumes {
		if volume := &pod.Spec.Volumes[i]; volume.Ephemeral != nil {
			list = append(list, PodClaim{Name: ephemeralClaim(pod, volume), Ephemeral: true})
		}
	}
	return list
}

// ephemeralClaim is the name of the claim that Kubernetes makes for an ephemeral volume.
func ephemeralClaim(pod *corev1.Pod, volume *corev1.Volume) string {
	return pod.Name + "-" + volume.Name
}

// renameClaims has a pod use the claims that stand at the provider for its own. The claim of an ephemeral volume was made in the
// pod's own cluster, so that the one at the provider is to it like any other: left as it is, the provider would look for one that
// was made for the pod there.
func renameClaims(spec *corev1.PodSpec, local *corev1.Pod, names map[string]string) {
	for i := range spec.Volumes {
		volume := &spec.Volumes[i]
		if volume.Ephemeral != nil {
			if name := names[ephemeralClaim(local, volume)]; name != "" {
				volume.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
			} else if template := volume.Ephemeral.VolumeClaimTemplate; template != nil {
				template.ObjectMeta = metav1.ObjectMeta{} // providers take none: see podFields
			}
			continue
		}
		if source := volume.PersistentVolumeClaim; source != nil && names[source.ClaimName] != "" {
			source.ClaimName = names[source.ClaimName]
		}
	}
}
