package settings

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// tunnelFailsAndWorks has rome's gateway say, as it does after five questions without an answer, that no packet comes to milan, and later that
// they do. A Service of rome sends nothing to the pods there meanwhile; one of milan does all the time, and the pods stay the same ones.
func tunnelFailsAndWorks(t *testing.T) {
	const count = 2
	namespace, labels := env.Offloaded(t), map[string]string{"app": "behind"}
	for i := range count {
		pod := world.Pod(namespace, fmt.Sprintf("p%d", i))
		pod.Labels = labels
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod))
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "behind"},
		Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}
	fixture.Must(t, "creating a Service", env.Rome.Client.Create(t.Context(), service))
	both := func() [2]map[string]types.UID {
		return [2]map[string]types.UID{world.AwaitPods(t, env.Rome, namespace, count), world.AwaitPods(t, env.Milan, namespace, count)}
	}
	before := both()
	awaitReady(t, env.Rome, service, count, true)
	awaitReady(t, env.Milan, service, count, true)

	tells(t, networkingv1beta1.ConnectionError)
	awaitReady(t, env.Rome, service, count, false)
	awaitReady(t, env.Milan, service, count, true)
	pods := &corev1.PodList{}
	fixture.Must(t, "listing pods", env.Rome.Client.List(t.Context(), pods, client.InNamespace(namespace)))
	for i := range pods.Items {
		status := &pods.Items[i].Status
		if said := fmt.Sprint(status.Conditions); status.Phase != corev1.PodRunning || !strings.Contains(said, offloadingv1beta1.ReasonNetworkUnavailable) {
			t.Errorf("pod %s is %s: %s", pods.Items[i].Name, status.Phase, said)
		}
	}

	tells(t, networkingv1beta1.Connected)
	awaitReady(t, env.Rome, service, count, true)
	for i, now := range both() {
		if !maps.Equal(before[i], now) {
			t.Errorf("there were pods %v, and are %v", before[i], now)
		}
	}
}

// tells is what rome's gateway tells of the tunnel to milan.
func tells(t *testing.T, value networkingv1beta1.ConnectionStatusValue) {
	t.Helper()
	connection := &networkingv1beta1.Connection{}
	fixture.Must(t, "reading the Connection", env.Rome.Client.Get(t.Context(), client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: "milan"}, connection))
	connection.Status.Value = value
	fixture.Must(t, "telling that the tunnel is "+string(value), env.Rome.Client.Status().Update(t.Context(), connection))
}

// awaitReady waits until a Service has so many endpoints in a cluster, and all of them are ready, or none is.
func awaitReady(t *testing.T, c *fixture.Cluster, service *corev1.Service, count int, ready bool) {
	t.Helper()
	what := fmt.Sprintf("Service %s of %s to have %d endpoints with readiness %t", service.Name, c.ID, count, ready)
	fixture.Await(t, fixture.Patience, what, func(ctx context.Context) (bool, string) {
		list := &discoveryv1.EndpointSliceList{}
		err := c.Client.List(ctx, list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
		var said []string
		as := 0
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, true) == ready {
					as++
				}
				said = append(said, fmt.Sprintf("%v of %s: ready %t", endpoint.Addresses, slice.Name, ptr.Deref(endpoint.Conditions.Ready, true)))
			}
		}
		return err == nil && len(said) == count && as == count, fmt.Sprint(said, err)
	})
}
