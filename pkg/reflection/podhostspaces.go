package reflection

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
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

// PriorityMessage tells the user which priority of a pod stays at home: PriorityClasses are a cluster's own. Empty if the pod has none, or the
// one that pods have which ask for none.
func PriorityMessage(spec *corev1.PodSpec) string {
	priority := ptr.Deref(spec.Priority, 0)
	if priority == 0 {
		return ""
	}
	class := ""
	if spec.PriorityClassName != "" {
		class = fmt.Sprintf(" (PriorityClass %q)", spec.PriorityClassName)
	}
	return fmt.Sprintf("the pod is without its priority %d%s at the provider, whose own priorities decide which pods start and stay there", priority, class)
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
