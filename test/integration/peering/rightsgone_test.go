package peering

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// What a finalizer waits for must not need what the deletion of its namespace takes away. The administrator of milan deletes a tenant
// namespace: Kubernetes takes our right to its Secrets first, and everything goes nevertheless, with what the tenant has here.
func TestATenantNamespaceDeletedAtTheProviderGoes(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "memory", "1Gi", "pods", "10"))
	twin := c.Twin(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	fixture.Must(t, "deleting the tenant namespace at milan", env.Milan.Client.Delete(t.Context(), namespace))
	world.AwaitGone(t, env.Milan, namespace)
	world.AwaitGone(t, env.Milan, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: twin}})
}
