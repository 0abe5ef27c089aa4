package outages

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/test/integration/fixture"
)

// withAddresses are the values by which the addresses of Ingresses come back.
var withAddresses = map[string]any{"offloading": map[string]any{"reflection": map[string]any{"ingress": map[string]any{"statusBack": true}}}}

// serve writes at which addresses an Ingress is served, as an ingress controller does.
func serve(t *testing.T, c *fixture.Cluster, namespace, name, manager, address string) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "Ingress "+name+" to be served in "+c.ID, func(ctx context.Context) (bool, string) {
		ingress := &networkingv1.Ingress{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ingress); err != nil {
			return false, err.Error()
		}
		ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: address}}
		err := c.Client.Status().Update(ctx, ingress, client.FieldOwner(manager))
		return err == nil, fmt.Sprint(err)
	})
}

func servedAt(ctx context.Context, namespace, name string) ([]string, error) {
	ingress := &networkingv1.Ingress{}
	err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ingress)
	var addresses []string
	for _, address := range ingress.Status.LoadBalancer.Ingress {
		addresses = append(addresses, address.IP)
	}
	return addresses, err
}

func awaitServed(t *testing.T, namespace, name string, want ...string) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, fmt.Sprintf("Ingress %s to be served at %v", name, want), func(ctx context.Context) (bool, string) {
		got, err := servedAt(ctx, namespace, name)
		return err == nil && slices.Equal(got, want), fmt.Sprint(got, err)
	})
}

// The addresses that a provider gave an Ingress stay while it does not answer, and go when it has no business with it any more. Those
// of others stay in any case.
func TestAddressesOfIngressesGoWithTheirProvider(t *testing.T) {
	w := env.Peered(t)
	w.Rome.Reconfigure(t, nil, withAddresses)
	defer w.Rome.Reconfigure(t, withAddresses, nil)
	namespace := env.Offloaded(t)
	for _, name := range []string{"web", "local"} {
		fixture.Must(t, "creating an Ingress", env.Rome.Client.Create(t.Context(), &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}}}},
		}))
	}
	serve(t, env.Rome, namespace, "local", "traefik", "198.51.100.1")
	serve(t, env.Milan, namespace, "web", "nginx", "192.0.2.1")
	awaitServed(t, namespace, "web", "192.0.2.1")

	mend := env.Cut(t)
	end := time.Now().Add(apart)
	fixture.Await(t, 2*apart, "the provider to be lost for a while", func(ctx context.Context) (bool, string) {
		if got, err := servedAt(ctx, namespace, "web"); err == nil && len(got) == 0 {
			t.Fatal("the addresses of a provider that does not answer are gone")
		}
		return time.Now().After(end), "it passes"
	})
	mend()
	fixture.Await(t, 2*fixture.Patience, "the provider to be back", func(ctx context.Context) (bool, string) {
		milan := &corev1beta1.ForeignCluster{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: "milan"}, milan); err != nil {
			return false, err.Error()
		}
		why := milan.WhyLost()
		return why == "", why
	})

	rome, err := target.FromKubeconfig(env.Rome.Kubeconfig, "")
	fixture.Must(t, "opening the kubeconfig of rome", err)
	fixture.Must(t, "unoffloading", offload.Undo(t.Context(), offload.UndoOptions{Cluster: rome, Namespaces: []string{namespace}, Timeout: 2 * fixture.Patience}))
	awaitServed(t, namespace, "web")
	awaitServed(t, namespace, "local", "198.51.100.1")
}
