package reflection

import (
	corev1 "k8s.io/api/core/v1"
)

// Reference is an object in a pod's namespace that the pod uses by name.
type Reference struct {
	// Kind is the name of a reflected kind: configmap or secret.
	Kind string
	// Name of the object.
	Name string
}

// References lists the ConfigMaps and Secrets that a pod uses: in volumes, in the environment of its containers, and to pull
// its images. Each is listed once.
func References(spec *corev1.PodSpec) []Reference {
	var found references
	for i := range spec.ImagePullSecrets {
		found.secret(spec.ImagePullSecrets[i].Name)
	}
	for i := range spec.Volumes {
		found.volume(&spec.Volumes[i])
	}
	eachContainer(spec, func(c *corev1.Container) { found.environment(c.Env, c.EnvFrom) })
	for i := range spec.EphemeralContainers {
		found.environment(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	return found.list
}

type references struct {
	list []Reference
	seen map[Reference]bool
}

func (r *references) add(kind, name string) {
	reference := Reference{Kind: kind, Name: name}
	if name == "" || r.seen[reference] {
		return
	}
	if r.seen == nil {
		r.seen = map[Reference]bool{}
	}
	r.seen[reference] = true
	r.list = append(r.list, reference)
}

func (r *references) configMap(name string) { r.add("configmap", name) }

func (r *references) secret(name string) { r.add("secret", name) }

func (r *references) volume(v *corev1.Volume) {
	switch {
	case v.ConfigMap != nil:
		r.configMap(v.ConfigMap.Name)
	case v.Secret != nil:
		r.secret(v.Secret.SecretName)
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		r.secret(v.CSI.NodePublishSecretRef.Name)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				r.configMap(source.ConfigMap.Name)
			}
			if source.Secret != nil {
				r.secret(source.Secret.Name)
			}
		}
	}
}

func (r *references) environment(env []corev1.EnvVar, from []corev1.EnvFromSource) {
	for i := range env {
		source := env[i].ValueFrom
		if source == nil {
			continue
		}
		if source.ConfigMapKeyRef != nil {
			r.configMap(source.ConfigMapKeyRef.Name)
		}
		if source.SecretKeyRef != nil {
			r.secret(source.SecretKeyRef.Name)
		}
	}
	for i := range from {
		if from[i].ConfigMapRef != nil {
			r.configMap(from[i].ConfigMapRef.Name)
		}
		if from[i].SecretRef != nil {
			r.secret(from[i].SecretRef.Name)
		}
	}
}
