package reflection

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// stuck is a finalizer that nobody but the test removes.
const stuck = "example.org/stuck"

// deleteNamespace begins the deletion of a namespace. Its RoleBinding holds it: rights that are being deleted are rights, so
// that what happens in a namespace that is stuck can be seen.
func (w *world) deleteNamespace(c *fixture.Cluster, namespace, binding string) {
	w.Helper()
	w.finalizers(c, namespace, binding, stuck)
	fixture.Must(w, "deleting namespace "+namespace,
		c.Client.Delete(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
}

func (w *world) finalizers(c *fixture.Cluster, namespace, binding string, finalizers ...string) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "an edit of RoleBinding "+binding, func(ctx context.Context) (bool, string) {
		var object rbacv1.RoleBinding
		if err := c.Client.Get(ctx, key(namespace, binding), &object); err != nil {
			return false, err.Error()
		}
		object.Finalizers = finalizers
		err := c.Client.Update(ctx, &object)
		return err == nil, fmt.Sprint(err)
	})
}

// emptied waits until nothing is left in a namespace that is being deleted but what is stuck.
func (w *world) emptied(c *fixture.Cluster, namespace string) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "namespace "+namespace+" to be stuck", func(ctx context.Context) (bool, string) {
		var object corev1.Namespace
		if err := c.Client.Get(ctx, client.ObjectKey{Name: namespace}, &object); err != nil {
			return false, err.Error()
		}
		for _, condition := range object.Status.Conditions {
			if condition.Type == corev1.NamespaceFinalizersRemaining && condition.Status == corev1.ConditionTrue && strings.Contains(condition.Message, stuck) {
				return true, ""
			}
		}
		return false, fmt.Sprint(object.Status.Conditions)
	})
}

// release ends the deletion of a namespace.
func (w *world) release(c *fixture.Cluster, namespace, binding string) {
	w.Helper()
	w.finalizers(c, namespace, binding)
	fixture.Await(w, fixture.Patience, "namespace "+namespace+" to be gone", func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

func namespaceDeletedAtHome(w *world, s specimen) {
	w.put(s.make("c3"))
	before := w.converged("c3")
	w.deleteNamespace(env.Rome, w.namespace, localBinding)
	w.gone("c3")
	w.release(env.Rome, w.namespace, localBinding)
	w.createHome()
	w.put(s.make("c3"))
	if after := w.converged("c3"); after.GetUID() == before.GetUID() {
		w.Error("what came with the old namespace is still there")
	}
}

func namespaceDeletedAtTheProvider(w *world, s specimen) {
	local := w.put(s.make("c3"))
	w.converged("c3")
	w.deleteNamespace(env.Milan, w.twin, offloadingv1beta1.RemoteClusterRole)
	w.emptied(env.Milan, w.twin)
	w.put(s.make("c3-late"))
	w.told(offloadingv1beta1.ReasonFailedReflection, "it is being terminated")
	w.release(env.Milan, w.twin, offloadingv1beta1.RemoteClusterRole)
	if err := env.Rome.Client.Get(w.Context(), client.ObjectKeyFromObject(local), local); err != nil || local.GetDeletionTimestamp() != nil {
		w.Errorf("the local object was touched (%v): %+v", err, local)
	}
	w.createTwin()
	for _, name := range []string{"c3", "c3-late"} {
		w.editLocal(name, func(o reflection.Object) { o.GetLabels()["again"] = "true" })
		w.converged(name)
	}
}
