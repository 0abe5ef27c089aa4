package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What an operator of databases makes of a custom resource, as CloudNativePG, Strimzi or Zalando's do: labels, a toleration and a readiness gate of
// its own domain, replicas that are spread, and half an hour to stop.
const (
	clusterLabel = "postgres.example-operator.io/cluster"
	roleLabel    = "postgres.example-operator.io/role"
	inSync       = corev1.PodConditionType("postgres.example-operator.io/in-sync")
)

// TestOperator shows that the objects of an operator work over both clusters under default values: its Services select by its own labels on either
// side, lead to the pods that it calls ready alone, and follow a change of roles.
func TestOperator(t *testing.T) {
	the.shared(t)
	const namespace = "operated"
	twin := the.offloaded(t, namespace)
	of := map[string]string{clusterLabel: "orders"}
	primary := map[string]string{clusterLabel: "orders", roleLabel: "primary"}
	set := statefulSet(namespace, "orders", operated())
	set.Spec.Replicas, set.Spec.PodManagementPolicy = ptr.To[int32](2), appsv1.ParallelPodManagement
	set.Spec.Template.Labels = map[string]string{appLabel: "orders", clusterLabel: "orders", roleLabel: "replica"}
	one := intstr.FromInt32(1)
	the.rome.creates(t, set, serviceOver(namespace, "orders", of, true), serviceOver(namespace, "orders-rw", primary, false),
		&policyv1.PodDisruptionBudget{ObjectMeta: named(namespace, "orders"), Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: of}}})

	pods := running(t, namespace, 2)
	if pods[0].Spec.NodeName == pods[1].Spec.NodeName || pods[0].Spec.NodeName != virtualNode && pods[1].Spec.NodeName != virtualNode {
		t.Fatalf("the replicas are not spread over both clusters: %s", describe(pods))
	}
	both := map[*side]string{the.rome: namespace, the.milan: twin}
	for c, where := range both {
		eventually(t, around, c.name+" to lead to no pod that the operator does not call ready", c.serves(where, "orders", 0, 2))
	}
	for i := range pods {
		calls(t, &pods[i], corev1.ConditionTrue)
	}
	the.rome.ready(t, namespace, "orders", 2)
	for c, where := range both {
		eventually(t, around, c.name+" to lead to both pods", c.serves(where, "orders", 2, 2))
		eventually(t, around, c.name+" to have no primary", c.serves(where, "orders-rw", 0, 0))
	}
	the.rome.creates(t, podOf(namespace, "client", script(forever)))
	the.rome.ready(t, namespace, "client", 1)
	for i := range pods {
		takesOver(t, namespace, &pods[i], &pods[1-i])
		for c, where := range both {
			eventually(t, around, c.name+" to lead to the primary alone", c.serves(where, "orders-rw", 1, 1))
		}
		// Whoever asks at the provider is told by the very pod.
		eventually(t, patience, "a client at the provider to be answered by "+pods[i].Name, func(ctx context.Context) (bool, string) {
			o := the.kubectl(t, the.rome, 20*time.Second, "exec", "-n", namespace, "client", "--", "timeout", "3", "wget", "-q", "-O", "-", "http://orders-rw:8080/name")
			return o.code == 0 && o.stdout == pods[i].Name, o.String()
		})
	}
	calls(t, &pods[0], corev1.ConditionFalse)
	for c, where := range both {
		eventually(t, around, c.name+" to lead to the other pod alone", c.serves(where, "orders", 1, 2))
	}
	calls(t, &pods[0], corev1.ConditionTrue)
	// Kubernetes looks again at a namespace that goes once half of the longest grace period of its pods is over, however soon they end.
	the.rome.deletes(t, set)
	the.rome.deletes(t, podOf(namespace, "client", script(forever)))
	the.rome.empties(t, namespace)
}

// operated is the spec of a database's pod: it says its name.
func operated() corev1.PodSpec {
	spec := script(`mkdir /tmp/www; printf %s "$HOSTNAME" > /tmp/www/name; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp/www & wait $!`)
	spec.NodeSelector = nil
	spec.TerminationGracePeriodSeconds = ptr.To[int64](1800)
	spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: inSync}}
	spec.Tolerations = []corev1.Toleration{{Key: "postgres.example-operator.io/dedicated", Operator: corev1.TolerationOpExists}}
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		MinDomains: ptr.To[int32](2), LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{clusterLabel: "orders"}}}}
	return spec
}

func serviceOver(namespace, name string, selector map[string]string, headless bool) *corev1.Service {
	service := &corev1.Service{ObjectMeta: named(namespace, name), Spec: corev1.ServiceSpec{
		Selector: selector, Ports: []corev1.ServicePort{{Name: "sql", Port: 8080}},
	}}
	if headless {
		service.Spec.ClusterIP, service.Spec.PublishNotReadyAddresses = corev1.ClusterIPNone, false
	}
	return service
}

// running waits until the containers of a number of the operator's pods run, ready or not, and returns the pods in order.
func running(t *testing.T, namespace string, count int) (pods []corev1.Pod) {
	t.Helper()
	eventually(t, forPods(count), "the containers of the operator's pods to run", func(ctx context.Context) (bool, string) {
		var err error
		pods, err = the.rome.pods(ctx, namespace, client.MatchingLabels{clusterLabel: "orders"})
		good := 0
		for i := range pods {
			for _, c := range pods[i].Status.Conditions {
				if c.Type == corev1.ContainersReady && c.Status == corev1.ConditionTrue && !isReady(&pods[i]) {
					good++
				}
			}
		}
		return err == nil && good == count && len(pods) == count, describe(pods)
	})
	if len(pods) == 2 && pods[0].Name > pods[1].Name {
		pods[0], pods[1] = pods[1], pods[0]
	}
	return pods
}

// calls has the operator say whether a pod is in sync.
func calls(t *testing.T, pod *corev1.Pod, status corev1.ConditionStatus) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q}]}}`, inSync, status)
	if err := the.rome.Status().Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		t.Fatalf("setting the readiness gate of pod %s: %v", pod.Name, err)
	}
}

// takesOver has the operator make one pod the primary, in the other one's place.
func takesOver(t *testing.T, namespace string, primary, replica *corev1.Pod) {
	t.Helper()
	for pod, role := range map[*corev1.Pod]string{replica: "replica", primary: "primary"} {
		changed := &corev1.Pod{ObjectMeta: named(namespace, pod.Name)}
		the.rome.changes(t, changed, func() { changed.Labels[roleLabel] = role })
	}
}

// serves checks how many endpoints a Service has, and how many of them are ready.
func (c *side) serves(namespace, service string, ready, all int) check {
	return func(ctx context.Context) (bool, string) {
		var list discoveryv1.EndpointSliceList
		if err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
			return false, err.Error()
		}
		are, there := 0, 0
		for i := range list.Items {
			for _, endpoint := range list.Items[i].Endpoints {
				there++
				if ptr.Deref(endpoint.Conditions.Ready, false) {
					are++
				}
			}
		}
		return are == ready && there == all, fmt.Sprintf("%d endpoints, %d of them ready: %+v", there, are, list.Items)
	}
}
