package reflection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// injectedTokenVolume is how the API server names the volume with the ServiceAccount's token that it adds to pods.
const injectedTokenVolume = "kube-api-access-"

// podAccess is which API server a pod talks to at the provider.
type podAccess string

const (
	// accessHome: this cluster's, as the pod's own ServiceAccount; it is what pods without annotation have if it is enabled.
	accessHome podAccess = "home"
	// accessNone: none; tokens of this cluster do not leave it.
	accessNone podAccess = "disabled"
	// accessRemote: the provider's, as one of its ServiceAccounts.
	accessRemote podAccess = "remote"
)

func accessOf(local *corev1.Pod, api HomeAPI) (podAccess, *Refusal) {
	switch mode := podAccess(local.Annotations[offloadingv1beta1.APIServerSupportAnnotation]); mode {
	case "":
		if api.Enabled {
			return accessHome, nil
		}
		return accessNone, nil
	case accessNone:
		return accessNone, nil
	case accessRemote:
		return accessRemote, nil
	default:
		return "", &Refusal{Reason: offloadingv1beta1.ReasonPodRefused, Message: fmt.Sprintf(
			"annotation %s must be %q or %q", offloadingv1beta1.APIServerSupportAnnotation, accessRemote, accessNone)}
	}
}

// apply gives the pod its identity at the provider, and takes the one of this cluster away.
func (mode podAccess) apply(spec *corev1.PodSpec, local *corev1.Pod, in PodInput) {
	if mode == accessHome {
		applyHome(spec, local, in)
		return
	}
	dropInjectedTokens(spec)
	if mode == accessRemote {
		name := local.Annotations[offloadingv1beta1.RemoteServiceAccountAnnotation]
		if name == "" {
			name = local.Spec.ServiceAccountName
		}
		spec.ServiceAccountName, spec.AutomountServiceAccountToken = name, ptr.To(true)
		return
	}
	spec.AutomountServiceAccountToken = ptr.To(false)
	for i := range spec.Volumes {
		if projected := spec.Volumes[i].Projected; projected != nil {
			projected.Sources = slices.DeleteFunc(projected.Sources, holdsToken)
		}
	}
	renameRootCA(spec, RenamedConfigMap(in.Home, RootCAConfigMap))
	tellOfItself(spec, local, in)
}

// dropInjectedTokens removes the volumes that the API server added, with their mounts.
func dropInjectedTokens(spec *corev1.PodSpec) {
	dropped := map[string]bool{}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		dropped[v.Name] = injected(&v)
		return dropped[v.Name]
	})
	eachContainer(spec, func(c *corev1.Container) {
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return dropped[m.Name] })
	})
}

func renameRootCA(spec *corev1.PodSpec, name string) {
	rename := func(ref *string) {
		if *ref == RootCAConfigMap {
			*ref = name
		}
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].ConfigMap != nil {
			rename(&spec.Volumes[i].ConfigMap.Name)
		}
		if projected := spec.Volumes[i].Projected; projected != nil {
			for j := range projected.Sources {
				if projected.Sources[j].ConfigMap != nil {
					rename(&projected.Sources[j].ConfigMap.Name)
				}
			}
		}
	}
	eachContainer(spec, func(c *corev1.Container) {
		for i := range c.EnvFrom {
			if c.EnvFrom[i].ConfigMapRef != nil {
				rename(&c.EnvFrom[i].ConfigMapRef.Name)
			}
		}
		for i := range c.Env {
			if from := c.Env[i].ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
				rename(&from.ConfigMapKeyRef.Name)
			}
		}
	})
}

// tellOfItself has a pod told of itself what its own cluster knows: a program that makes itself the owner of something, or looks up its node,
// asks that one. Files of the downward API are made of the remote pod, which has what they say as annotations.
func tellOfItself(spec *corev1.PodSpec, local *corev1.Pod, in PodInput) {
	eachContainer(spec, func(c *corev1.Container) {
		for i := range c.Env {
			if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil {
				if value, known := ownField(local, in, from.FieldRef.FieldPath); known {
					c.Env[i].Value, c.Env[i].ValueFrom = literal(value), nil
				}
			}
		}
	})
	eachFile(spec, func(ref *corev1.ObjectFieldSelector) {
		if key, told := toldByAnnotation[ref.FieldPath]; told {
			ref.FieldPath = annotationsField + key + "']"
		}
	})
}

// toldByAnnotation are the annotations of a remote pod of which files of the downward API are made.
var toldByAnnotation = map[string]string{
	uidField: corev1beta1.OriginUIDAnnotation, namespaceField: offloadingv1beta1.OriginNamespaceAnnotation,
	allLabelsField: offloadingv1beta1.OriginLabelsAnnotation,
}

// tellByAnnotations puts on a remote pod what its files are made of, beside the UID, which is there anyway. Labels
// that a user keeps at home are not told either.
func tellByAnnotations(annotations map[string]string, local *corev1.Pod, not NotReflected, spec *corev1.PodSpec) {
	eachFile(spec, func(ref *corev1.ObjectFieldSelector) {
		switch ref.FieldPath {
		case annotationsField + offloadingv1beta1.OriginNamespaceAnnotation + "']":
			annotations[offloadingv1beta1.OriginNamespaceAnnotation] = local.Namespace
		case annotationsField + offloadingv1beta1.OriginLabelsAnnotation + "']":
			var lines []string
			for _, key := range slices.Sorted(maps.Keys(without(local.Labels, not.Labels))) {
				lines = append(lines, fmt.Sprintf("%s=%q", key, local.Labels[key])) // as a kubelet writes them
			}
			annotations[offloadingv1beta1.OriginLabelsAnnotation] = strings.Join(lines, "\n")
		}
	})
}

// eachFile calls do with the field of each file of the downward API.
func eachFile(spec *corev1.PodSpec, do func(*corev1.ObjectFieldSelector)) {
	files := func(items []corev1.DownwardAPIVolumeFile) {
		for i := range items {
			if items[i].FieldRef != nil {
				do(items[i].FieldRef)
			}
		}
	}
	for i := range spec.Volumes {
		if downward := spec.Volumes[i].DownwardAPI; downward != nil {
			files(downward.Items)
		}
		for _, source := range ptr.Deref(spec.Volumes[i].Projected, corev1.ProjectedVolumeSource{}).Sources {
			if source.DownwardAPI != nil {
				files(source.DownwardAPI.Items)
			}
		}
	}
}

// Fields of a pod, and the beginnings of those that name a key.
const (
	uidField         = "metadata.uid"
	allLabelsField   = "metadata.labels"
	labelsField      = "metadata.labels['"
	annotationsField = "metadata.annotations['"
)

// ownField is what the pod's own cluster says of a field; not known is what only the provider does.
func ownField(local *corev1.Pod, in PodInput, path string) (value string, known bool) {
	switch path {
	case uidField:
		return string(local.UID), local.UID != ""
	case namespaceField:
		return local.Namespace, local.Namespace != ""
	case "spec.nodeName":
		return in.Node, in.Node != ""
	case "spec.serviceAccountName":
		return local.Spec.ServiceAccountName, true
	case "status.hostIP", "status.hostIPs":
		host := cmp.Or(local.Status.HostIP, in.NodeIP)
		return host, host != ""
	}
	for prefix, of := range map[string]map[string]string{labelsField: local.Labels, annotationsField: local.Annotations} {
		if key, found := strings.CutPrefix(path, prefix); found {
			return of[strings.TrimSuffix(key, "']")], true
		}
	}
	return "", false
}

// literal is a value that no variable is looked for in.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }

func eachContainer(spec *corev1.PodSpec, do func(*corev1.Container)) {
	for i := range spec.InitContainers {
		do(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		do(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		do((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

// checkOwn refuses what reaches for volumes and containers that the pod does not have: they would be of what the provider's admission puts into pods
// later, the tokens and certificates of its sidecars or secrets of a vault.
func checkOwn(root *field.Path, spec *corev1.PodSpec) field.ErrorList {
	volumes, containers := map[string]bool{}, map[string]bool{"": true}
	for i := range spec.Volumes {
		volumes[spec.Volumes[i].Name] = true
	}
	var errs field.ErrorList
	refuse := func(own map[string]bool, name string, path *field.Path, message string) {
		if !own[name] && len(errs) < maxPodErrors {
			errs = append(errs, field.Forbidden(path, message))
		}
	}
	check := func(path *field.Path, c *corev1.Container) {
		for i, mount := range c.VolumeMounts {
			refuse(volumes, mount.Name, path.Child("volumeMounts").Index(i).Child("name"), msgMount)
		}
		for i, device := range c.VolumeDevices {
			refuse(volumes, device.Name, path.Child("volumeDevices").Index(i).Child("name"), msgMount)
		}
		for i, variable := range c.Env {
			if from := variable.ValueFrom; from != nil && from.FileKeyRef != nil {
				refuse(volumes, from.FileKeyRef.VolumeName, path.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName"), msgMount)
			}
		}
	}
	for i := range spec.InitContainers {
		containers[spec.InitContainers[i].Name] = true
		check(root.Child("initContainers").Index(i), &spec.InitContainers[i])
	}
	for i := range spec.Containers {
		containers[spec.Containers[i].Name] = true
		check(root.Child("containers").Index(i), &spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		c, path := &spec.EphemeralContainers[i], root.Child("ephemeralContainers").Index(i)
		check(path, (*corev1.Container)(&c.EphemeralContainerCommon))
		refuse(containers, c.TargetContainerName, path.Child("targetContainerName"), msgTarget)
	}
	return errs
}
