package reflection

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// serve writes at which addresses an Ingress is served, as an ingress controller does.
func (w *world) serve(c *fixture.Cluster, namespace, manager string, addresses ...string) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "writing the status of an Ingress", func(ctx context.Context) (bool, string) {
		ingress := &networkingv1.Ingress{}
		if err := c.Client.Get(ctx, key(namespace, "web"), ingress); err != nil {
			return false, err.Error()
		}
		ingress.Status.LoadBalancer.Ingress = nil
		for _, address := range addresses {
			ingress.Status.LoadBalancer.Ingress = append(ingress.Status.LoadBalancer.Ingress, networkingv1.IngressLoadBalancerIngress{IP: address})
		}
		err := c.Client.Status().Update(ctx, ingress, client.FieldOwner(manager))
		return err == nil, fmt.Sprint(err)
	})
}

// served waits until the Ingress at home is served at these addresses.
func (w *world) served(want ...string) {
	w.Helper()
	fixture.Await(w, fixture.Patience, fmt.Sprintf("the Ingress at home to be served at %v", want), func(ctx context.Context) (bool, string) {
		got, err := w.addresses(ctx)
		return err == nil && slices.Equal(got, want), fmt.Sprint(got, err, "\n", w.events.all())
	})
}

func (w *world) addresses(ctx context.Context) ([]string, error) {
	ingress := &networkingv1.Ingress{}
	err := env.Rome.Client.Get(ctx, key(w.namespace, "web"), ingress)
	var addresses []string
	for _, address := range ingress.Status.LoadBalancer.Ingress {
		addresses = append(addresses, address.IP)
	}
	return addresses, err
}

// mayWriteStatus gives reflection of this namespace the role at home that the chart renders where statuses come back.
func (w *world) mayWriteStatus() {
	w.Helper()
	objects, err := env.Rome.Manifests(map[string]any{"offloading": map[string]any{"reflection": map[string]any{
		"ingress": map[string]any{"statusBack": true}}}})
	fixture.Must(w, "rendering the chart", err)
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ClusterRole" && o.GetName() == "liqo-virtual-kubelet-local"
	})
	if i < 0 {
		w.Fatal("the chart has no ClusterRole liqo-virtual-kubelet-local")
	}
	role := objects[i]
	role.SetName(w.namespace)
	fixture.Must(w, "creating the role of reflection", env.Rome.Client.Create(w.Context(), role))
	w.Cleanup(func() {
		fixture.Must(w, "deleting the role of reflection", env.Rome.Client.Delete(context.WithoutCancel(w.Context()), role))
	})
	fixture.Must(w, "binding the role of reflection", env.Rome.Client.Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "status-back", Namespace: w.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.GetName()},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.account}},
	}))
}

// TestIngressStatusBack: the addresses of the provider's load balancer come back if the chart says so, and only where no ingress
// controller of this cluster says anything.
func TestIngressStatusBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ingress")
	w.put(specimens["ingress"].make("web"))
	w.converged("web")
	w.serve(env.Milan, w.twin, "nginx", "192.0.2.1", "127.0.0.1", "169.254.169.254")
	w.wanted.Change(func(now *mirror.Wanted) {
		now.Kinds = map[string]offloadingv1beta1.ReflectorConfig{"ingress": {NumWorkers: 3, StatusBack: true}}
	})
	// The right comes with the value of the chart.
	w.problem("web", "Forbidden")
	if got, err := w.addresses(t.Context()); err != nil || len(got) > 0 {
		t.Fatalf("addresses %v came back without the right to: %v", got, err)
	}
	w.mayWriteStatus()
	fixture.Await(t, fixture.Patience, "the right to write the status", func(ctx context.Context) (bool, string) {
		ingress := &networkingv1.Ingress{}
		if err := w.local.Get(ctx, key(w.namespace, "web"), ingress); err != nil {
			return false, err.Error()
		}
		err := w.local.Status().Patch(ctx, ingress, client.RawPatch("application/merge-patch+json", []byte(`{}`)), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	w.editLocal("web", func(o reflection.Object) { o.GetLabels()["again"] = "1" })
	w.served("192.0.2.1")

	before := &networkingv1.Ingress{}
	fixture.Must(t, "reading the Ingress", env.Rome.Client.Get(t.Context(), key(w.namespace, "web"), before))
	w.serve(env.Rome, w.namespace, "traefik", "198.51.100.1")
	w.serve(env.Milan, w.twin, "nginx", "192.0.2.3")
	w.problem("web", offloadingv1beta1.ReasonStatusOfOthers)
	w.told(offloadingv1beta1.ReasonStatusOfOthers, `field manager "traefik"`)
	w.served("198.51.100.1")
	w.serve(env.Rome, w.namespace, "traefik")
	w.served("192.0.2.3")

	after := &networkingv1.Ingress{}
	fixture.Must(t, "reading the Ingress", env.Rome.Client.Get(t.Context(), key(w.namespace, "web"), after))
	if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
		t.Errorf("more than the status was written: %s", diff)
	}
	w.editLocal("web", func(o reflection.Object) {
		o.SetAnnotations(map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""})
	})
	w.gone("web")
	w.served()
}

// TestIngressWithoutService: Ingresses cross once there is a Service, and what crossed goes with its Ingress though there is none
// any more.
func TestIngressWithoutService(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ingress")
	w.put(specimens["ingress"].make("web"))
	w.converged("web")
	w.stop()
	w.deleteFrom(env.Rome, w.namespace, "web")
	parent := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: parentName, Namespace: w.namespace}}
	fixture.Must(t, "deleting the last Service", env.Rome.Client.Delete(t.Context(), parent))
	w.start()
	w.gone("web")
	w.restart()
	w.put(specimens["ingress"].make("late"))
	if w.remote(t.Context(), "late") != nil {
		t.Error("an Ingress crossed although there is no Service")
	}
	w.put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "back"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	w.converged("late")
}
