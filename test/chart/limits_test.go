package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

// A grant bounds what runs, in profile hardened at least: a pod that declares nothing takes what it likes of a node's processors, memory and disk,
// and counts as nothing but a pod.
func TestWhereLittleIsAllowedPodsDeclareWhatTheyTake(t *testing.T) {
	all := func(scale string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse("1m"), "memory": resource.MustParse("1Mi"), "ephemeral-storage": resource.MustParse(scale)}
	}
	withoutDisk := func(list corev1.ResourceList) corev1.ResourceList {
		delete(list, "ephemeral-storage")
		return list
	}
	of := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Name: "a", Image: "stress", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	resources := corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("110")}
	disk := resources.DeepCopy()
	disk["ephemeral-storage"] = resource.MustParse("1Gi")
	for name, tc := range map[string]struct {
		pod     corev1.PodSpec
		granted corev1.ResourceList
		passes  bool
	}{
		"nothing is declared":        {corev1.PodSpec{Containers: []corev1.Container{of(nil, nil)}}, resources, false},
		"requests alone":             {corev1.PodSpec{Containers: []corev1.Container{of(withoutDisk(all("1Mi")), nil)}}, resources, false},
		"no disk, where it is given": {corev1.PodSpec{Containers: []corev1.Container{of(withoutDisk(all("1Mi")), withoutDisk(all("1Mi")))}}, disk, false},
		"more disk than requested":   {corev1.PodSpec{Containers: []corev1.Container{of(all("1Mi"), all("1Gi"))}}, disk, false},
		"a sidecar without limits": {corev1.PodSpec{InitContainers: []corev1.Container{of(all("1Mi"), nil)},
			Containers: []corev1.Container{of(all("1Mi"), all("1Mi"))}}, disk, false},
		"all is declared": {corev1.PodSpec{Containers: []corev1.Container{of(all("1Mi"), all("1Mi"))}}, disk, true},
	} {
		for values, enforced := range map[string]bool{"profile: hardened": true, "": false,
			"{profile: hardened, controllerManager: {config: {defaultLimitsEnforcement: None}}}": false} {
			grant := &offloadingv1beta1.QuotaSpec{Resources: tc.granted, LimitsEnforcement: configuration(t, values).ControllerManager.DefaultLimitsEnforcement}
			tc.pod.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			if refusal := capacity.Check(grant, &tc.pod, nil); (refusal == nil) != (tc.passes || !enforced) {
				t.Errorf("%s, with values %q: %v", name, values, refusal)
			}
		}
	}
}
