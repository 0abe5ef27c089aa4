package reflection

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

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
	eachContainer(spec, func(c *corev1.Container) { nameServiceAccount(c, local.Spec.ServiceAccountName) })
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

// nameServiceAccount resolves references to the account's name, which at the provider is another one.
func nameServiceAccount(c *corev1.Container, account string) {
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "spec.serviceAccountName" {
			c.Env[i].Value, c.Env[i].ValueFrom = account, nil
		}
	}
}

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
