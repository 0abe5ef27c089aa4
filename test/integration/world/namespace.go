package world

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/test/integration/fixture"
)

// Offloaded makes a namespace and offloads it; the twin has the same name.
func (s *Shared) Offloaded(t *testing.T) string {
	t.Helper()
	return s.OffloadedTo(t, corev1.NodeSelector{})
}

// OffloadedTo offloads it to the virtual nodes that are selected.
func (s *Shared) OffloadedTo(t *testing.T, selector corev1.NodeSelector) string {
	t.Helper()
	return s.OffloadedAs(t, InStrategy(offloadingv1beta1.RemotePodOffloadingStrategyType, selector))
}

// OffloadedAs offloads it in a way of the caller's.
func (s *Shared) OffloadedAs(t *testing.T, spec offloadingv1beta1.NamespaceOffloadingSpec) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("shop")}}
	fixture.Must(t, "creating a namespace", s.Rome.Client.Create(t.Context(), namespace))
	rome, err := target.FromKubeconfig(s.Rome.Kubeconfig, "")
	fixture.Must(t, "opening the kubeconfig of rome", err)
	_, err = offload.Namespace(t.Context(), offload.Options{Cluster: rome, Namespaces: []string{namespace.Name}, Timeout: 2 * fixture.Patience, Spec: spec})
	fixture.Must(t, "offloading namespace "+namespace.Name, err)
	s.Rome.AwaitServiceAccount(t, namespace.Name)
	return namespace.Name
}

// InStrategy is how a namespace is offloaded with a strategy, to a twin of the same name.
func InStrategy(strategy offloadingv1beta1.PodOffloadingStrategyType, selector corev1.NodeSelector) offloadingv1beta1.NamespaceOffloadingSpec {
	return offloadingv1beta1.NamespaceOffloadingSpec{
		NamespaceMappingStrategy: offloadingv1beta1.EnforceSameNameMappingStrategyType, PodOffloadingStrategy: strategy, ClusterSelector: selector,
	}
}
