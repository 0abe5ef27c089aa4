package reflection

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// HostNamespaces names those of its host's namespaces that a local pod asks for. At a provider it gets none of them.
func HostNamespaces(spec *corev1.PodSpec) []string {
	var asked []string
	for _, space := range []struct {
		name string
		set  bool
	}{{"hostNetwork", spec.HostNetwork}, {"hostPID", spec.HostPID}, {"hostIPC", spec.HostIPC}} {
		if space.set {
			asked = append(asked, space.name)
		}
	}
	return asked
}

// HostNamespacesMessage tells the user what a pod that asks for its host's namespaces does without; empty if it asks for none.
func HostNamespacesMessage(spec *corev1.PodSpec) string {
	asked := HostNamespaces(spec)
	if len(asked) == 0 {
		return ""
	}
	return "the pod has its own instead of its host's namespaces at the provider: " + strings.Join(asked, ", ") + " are off there"
}

// dropHostNetwork frees the copied containers' ports of those of the host that an API server enters for a pod in the host's network: each
// port was the host's, too, and is none any more.
func dropHostNetwork(spec *corev1.PodSpec, local *corev1.Pod) {
	if !local.Spec.HostNetwork {
		return
	}
	eachContainer(spec, func(c *corev1.Container) {
		for i := range c.Ports {
			c.Ports[i].HostPort, c.Ports[i].HostIP = 0, ""
		}
	})
}
