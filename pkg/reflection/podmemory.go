package reflection

import (
	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// SlimRemotePod drops of a pod at the provider what this package never reads of one: a cache of many holds a fraction.
func SlimRemotePod(pod *corev1.Pod) {
	pod.ManagedFields, pod.OwnerReferences, pod.Finalizers, pod.GenerateName = nil, nil, nil, ""
	pod.Labels = only(pod.Labels, offloadingv1beta1.OriginLabel, offloadingv1beta1.DestinationLabel)
	pod.Annotations = only(pod.Annotations, corev1beta1.OriginUIDAnnotation, offloadingv1beta1.ResourcesAskedAnnotation)
	pod.Spec = corev1.PodSpec{}
}

// only returns the entries of the given keys.
func only(of map[string]string, keys ...string) map[string]string {
	kept := make(map[string]string, len(keys))
	for _, key := range keys {
		if value, there := of[key]; there {
			kept[key] = value
		}
	}
	return kept
}

// SlimShadowPod drops of a ShadowPod's specification what may never change, so that ShadowPodChanges, ShadowPodTolerations,
// ShadowPodDebuggers and ShadowPodResize find the same changes in the rest. They are not to be written: where there are some, the whole
// ShadowPod has to be read.
func SlimShadowPod(shadow *offloadingv1beta1.ShadowPod) {
	shadow.ManagedFields, shadow.OwnerReferences, shadow.GenerateName = nil, nil, ""
	spec := &shadow.Spec.Pod
	*spec = corev1.PodSpec{
		Containers: slimContainers(spec.Containers), InitContainers: slimContainers(spec.InitContainers),
		EphemeralContainers: slimDebuggers(spec.EphemeralContainers), ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds,
		Tolerations: spec.Tolerations, Volumes: slimVolumes(spec.Volumes), Resources: spec.Resources,
	}
}

func slimContainers(list []corev1.Container) []corev1.Container {
	var slim []corev1.Container
	for i := range list {
		slim = append(slim, corev1.Container{
			Name: list[i].Name, Image: list[i].Image, Env: slimEnv(list[i].Env),
			Resources: corev1.ResourceRequirements{Requests: list[i].Resources.Requests, Limits: list[i].Resources.Limits},
		})
	}
	return slim
}

// slimEnv keeps what LacksAPIServer looks at.
func slimEnv(list []corev1.EnvVar) []corev1.EnvVar {
	for i := range list {
		if list[i].Name == apiHost && list[i].Value == "" && list[i].ValueFrom == nil {
			return []corev1.EnvVar{{Name: apiHost}}
		}
	}
	return nil
}

func slimDebuggers(list []corev1.EphemeralContainer) []corev1.EphemeralContainer {
	var slim []corev1.EphemeralContainer
	for i := range list {
		slim = append(slim, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: list[i].Name}})
	}
	return slim
}

// slimVolumes keeps what TokenSecretOf looks at.
func slimVolumes(list []corev1.Volume) []corev1.Volume {
	var slim []corev1.Volume
	for i := range list {
		if list[i].Projected == nil {
			continue
		}
		var sources []corev1.VolumeProjection
		for _, source := range list[i].Projected.Sources {
			if source.Secret != nil {
				sources = append(sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: source.Secret.LocalObjectReference}})
			}
		}
		if len(sources) > 0 {
			slim = append(slim, corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}})
		}
	}
	return slim
}
