package reflection

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Reference is an object in a pod's namespace that the pod uses by name.
type Reference struct {
	// Kind is one of the kinds below, of which configmap and secret are reflected kinds.
	Kind string
	// Name of the object.
	Name string
}

// Kinds of references.
const (
	ConfigMapReference = "configmap"
	SecretReference    = "secret"
	ClaimReference     = "persistentvolumeclaim"
)

// References lists the ConfigMaps and Secrets that a pod uses: in volumes, in the environment of its containers, and to pull
// its images. Each is listed once.
func References(spec *corev1.PodSpec) []Reference {
	return namedBy(spec).reflected()
}

// NamedObject is an object in a pod's namespace that the pod names.
type NamedObject struct {
	Reference
	// Optional says that the pod starts without it.
	Optional bool
}

// Named lists all objects that a pod names, each once: what References lists, and claims. One that is optional here and needed there
// is needed.
func Named(spec *corev1.PodSpec) []NamedObject { return namedBy(spec).list }

func namedBy(spec *corev1.PodSpec) *references {
	found := &references{}
	for i := range spec.ImagePullSecrets {
		found.secret(spec.ImagePullSecrets[i].Name, ptr.To(true))
	}
	for i := range spec.Volumes {
		found.volume(&spec.Volumes[i])
	}
	eachContainer(spec, func(c *corev1.Container) { found.environment(c.Env, c.EnvFrom) })
	return found
}

type references struct {
	list []NamedObject
	seen map[Reference]int
}

func (r *references) add(kind, name string, optional *bool) {
	reference := Reference{Kind: kind, Name: name}
	if name == "" {
		return
	}
	if at, seen := r.seen[reference]; seen {
		r.list[at].Optional = r.list[at].Optional && ptr.Deref(optional, false)
		return
	}
	if r.seen == nil {
		r.seen = map[Reference]int{}
	}
	r.seen[reference] = len(r.list)
	r.list = append(r.list, NamedObject{Reference: reference, Optional: ptr.Deref(optional, false)})
}

// reflected are those that cross by themselves.
func (r *references) reflected() []Reference {
	var list []Reference
	for i := range r.list {
		if r.list[i].Kind != ClaimReference {
			list = append(list, r.list[i].Reference)
		}
	}
	return list
}

func (r *references) configMap(name string, optional *bool) {
	r.add(ConfigMapReference, name, optional)
}

func (r *references) secret(name string, optional *bool) { r.add(SecretReference, name, optional) }

func (r *references) volume(v *corev1.Volume) {
	switch {
	case v.ConfigMap != nil:
		r.configMap(v.ConfigMap.Name, v.ConfigMap.Optional)
	case v.Secret != nil:
		r.secret(v.Secret.SecretName, v.Secret.Optional)
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		r.secret(v.CSI.NodePublishSecretRef.Name, nil)
	case v.PersistentVolumeClaim != nil:
		r.add(ClaimReference, v.PersistentVolumeClaim.ClaimName, nil)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				r.configMap(source.ConfigMap.Name, source.ConfigMap.Optional)
			}
			if source.Secret != nil {
				r.secret(source.Secret.Name, source.Secret.Optional)
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
			r.configMap(source.ConfigMapKeyRef.Name, source.ConfigMapKeyRef.Optional)
		}
		if source.SecretKeyRef != nil {
			r.secret(source.SecretKeyRef.Name, source.SecretKeyRef.Optional)
		}
	}
	for i := range from {
		if from[i].ConfigMapRef != nil {
			r.configMap(from[i].ConfigMapRef.Name, from[i].ConfigMapRef.Optional)
		}
		if from[i].SecretRef != nil {
			r.secret(from[i].SecretRef.Name, from[i].SecretRef.Optional)
		}
	}
}
