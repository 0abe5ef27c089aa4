package placement

import (
	"fmt"
	"strings"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// HomeNamespaces are the namespaces of a cluster that never leave it, besides those that are known by their name or label alone.
// Everything that is offered, asked for, admitted or reflected is held against WhyNeverOffloaded; admission policies
// liqo-home-namespaces and liqo-home-mappings say the same, and a test compares them.
type HomeNamespaces struct {
	// Liqo is the namespace that Liqo runs in; empty if it is not known.
	Liqo string
	// Storage is the namespace of the claims behind volumes on physical nodes; empty means the default one.
	Storage string
}

// WhyNeverOffloaded says in one sentence why a namespace can never be offloaded, by its name and labels; empty if it can. Labels that are
// not known are nil.
func (h HomeNamespaces) WhyNeverOffloaded(name string, labels map[string]string) string {
	storage := h.Storage
	if storage == "" {
		storage = offloadingv1beta1.DefaultStorageNamespace
	}
	why := ""
	switch {
	case name == h.Liqo && name != "":
		why = "Liqo itself runs in it, with its private keys"
	case strings.HasPrefix(name, corev1beta1.TenantNamespacePrefix), labels[corev1beta1.TenantNamespaceLabel] == "true":
		why = "it is the tenant namespace of a peering, and holds its private keys and kubeconfigs"
	case name == storage:
		why = "it holds the volumes of other namespaces"
	case strings.HasPrefix(name, "kube-"):
		why = "it is reserved for Kubernetes itself"
	default:
		return ""
	}
	return fmt.Sprintf("namespace %s can never be offloaded: %s", name, why)
}
