package isolation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/networking/podaddress"
)

// maxPods is how many addresses a Configuration holds.
const maxPods = 65536

// offloadedBy are the namespaces that one of this cluster's own NamespaceMaps offloads; none if it is the copy of a peer's.
func offloadedBy(m *offloadingv1beta1.NamespaceMap) (names []string) {
	if m.Labels[corev1beta1.ReplicationLabel] != "true" || m.Labels[corev1beta1.ReplicatedLabel] == "true" {
		return nil
	}
	for name := range m.Spec.DesiredMapping {
		names = append(names, name)
	}
	return names
}

// twinOf is the tenant namespace of the consumer that a namespace is a twin for; empty if it is none.
func twinOf(namespace metav1.Object) string {
	tenant, _, _ := strings.Cut(namespace.GetAnnotations()[offloadingv1beta1.ManagedByNamespaceMapAnnotation], "/")
	return tenant
}

// addresses are those under which pods can be reached.
func addresses(pods []corev1.Pod) (all []networkingv1beta1.PodIP) {
	for i := range pods {
		for _, address := range podaddress.Of(&pods[i]) {
			all = append(all, networkingv1beta1.PodIP(address.String()))
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxPods)]
}
