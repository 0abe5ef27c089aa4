package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func virtualNode(name, cluster, ready string) *offloadingv1beta1.VirtualNode {
	return &offloadingv1beta1.VirtualNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + cluster, Name: name},
		Spec:       offloadingv1beta1.VirtualNodeSpec{ClusterID: corev1beta1.ClusterID(cluster)},
		Status:     offloadingv1beta1.VirtualNodeStatus{Summary: []corev1beta1.Condition{{Type: corev1beta1.ConditionReady, Status: ready}}},
	}
}

func offloaded(namespace string, conditions ...metav1.Condition) *offloadingv1beta1.NamespaceOffloading {
	return &offloadingv1beta1.NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "offloading"},
		Status:     offloadingv1beta1.NamespaceOffloadingStatus{Conditions: conditions},
	}
}

func readiness(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: corev1beta1.ConditionReady, Status: status, Reason: reason}
}

func quota(cluster, name, cpu string) *offloadingv1beta1.Quota {
	return &offloadingv1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + cluster, Name: name},
		Spec: offloadingv1beta1.QuotaSpec{User: cluster + name, Resources: corev1.ResourceList{
			"cpu": resource.MustParse(cpu), "pods": resource.MustParse("10"), "made-up-by.the/consumer": resource.MustParse("1"),
		}},
	}
}

func pod(name, origin string, phase corev1.PodPhase, labels map[string]string) *corev1.Pod {
	all := map[string]string{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod, offloadingv1beta1.OriginLabel: origin}
	for key, value := range labels {
		all[key] = value
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop-" + origin, Name: name, Labels: all},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("64Mi")}}}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func collecting(t *testing.T, grants bool, fail error, objects ...client.Object) *Collector {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*offloadingv1beta1.QuotaList); ok && !grants {
				t.Error("Quotas are listed, for which there is no cache")
			}
			if fail != nil {
				return fail
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	return &Collector{cache: reader, grants: grants, series: newSeries()}
}

func everything() []client.Object {
	return []client.Object{
		virtualNode("milan-a", "milan", "True"), virtualNode("milan-b", "milan", "False"),
		offloaded("good", readiness("True", offloadingv1beta1.ReasonOffloadingReady)),
		offloaded("refused", readiness("False", offloadingv1beta1.ReasonNamespaceNotAllowed)),
		offloaded("odd", readiness("False", "WhateverAPeerSays")),
		offloaded("new"),
		quota("turin", "a", "2"), quota("turin", "b", "1500m"),
		pod("1", "turin", corev1.PodRunning, nil), pod("2", "turin", corev1.PodPending, nil), pod("3", "turin", corev1.PodSucceeded, nil),
		pod("4", "turin", "", nil), pod("5", "turin", corev1.PodRunning, map[string]string{offloadingv1beta1.ManagedByLabel: "somebody"}),
	}
}

const wanted = `
# HELP liqo_offloaded_namespace_not_ready 1 for each namespace whose NamespaceOffloading is not ready, with the reason.
# TYPE liqo_offloaded_namespace_not_ready gauge
liqo_offloaded_namespace_not_ready{namespace="new",reason="RemoteNamespacePending"} 1
liqo_offloaded_namespace_not_ready{namespace="odd",reason="Other"} 1
liqo_offloaded_namespace_not_ready{namespace="refused",reason="NamespaceNotAllowed"} 1
# HELP liqo_offloaded_namespaces Namespaces with a NamespaceOffloading, by whether it is ready.
# TYPE liqo_offloaded_namespaces gauge
liqo_offloaded_namespaces{ready="false"} 3
liqo_offloaded_namespaces{ready="true"} 1
# HELP liqo_provider_granted_resources What was granted to a consumer: cores, bytes or pods, by resource.
# TYPE liqo_provider_granted_resources gauge
liqo_provider_granted_resources{cluster_id="turin",resource="cpu"} 3.5
liqo_provider_granted_resources{cluster_id="turin",resource="pods"} 20
# HELP liqo_provider_pods Pods that run here for a consumer, by phase.
# TYPE liqo_provider_pods gauge
liqo_provider_pods{cluster_id="turin",phase="Failed"} 0
liqo_provider_pods{cluster_id="turin",phase="Pending"} 2
liqo_provider_pods{cluster_id="turin",phase="Running"} 1
liqo_provider_pods{cluster_id="turin",phase="Succeeded"} 1
liqo_provider_pods{cluster_id="turin",phase="Unknown"} 0
# HELP liqo_provider_requested_resources What the pods of a consumer that have not ended request here: cores, bytes or pods, by resource.
# TYPE liqo_provider_requested_resources gauge
liqo_provider_requested_resources{cluster_id="turin",resource="cpu"} 0.75
liqo_provider_requested_resources{cluster_id="turin",resource="ephemeral-storage"} 0
liqo_provider_requested_resources{cluster_id="turin",resource="memory"} 2.01326592e+08
liqo_provider_requested_resources{cluster_id="turin",resource="pods"} 3
# HELP liqo_virtual_node_ready Whether a virtual node and its virtual kubelet work: 1 or 0.
# TYPE liqo_virtual_node_ready gauge
liqo_virtual_node_ready{cluster_id="milan",node_name="milan-a"} 1
liqo_virtual_node_ready{cluster_id="milan",node_name="milan-b"} 0
`

func TestWhatTheCachesHoldIsShown(t *testing.T) {
	c := collecting(t, true, nil, everything()...)
	c.ctx = t.Context()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(wanted)); err != nil {
		t.Error(err)
	}
}

func TestWithoutGrantsNoQuotaIsLookedAt(t *testing.T) {
	c := collecting(t, false, nil, everything()...)
	c.ctx = t.Context()
	if got := testutil.CollectAndCount(c, "liqo_provider_granted_resources"); got != 0 {
		t.Errorf("%d series of grants", got)
	}
	if got := testutil.CollectAndCount(c, "liqo_virtual_node_ready"); got != 2 {
		t.Errorf("%d series of virtual nodes, want 2", got)
	}
}

func TestOnlyTheActiveReplicaShowsAnything(t *testing.T) {
	c := collecting(t, true, nil, everything()...)
	if got := testutil.CollectAndCount(c); got != 0 {
		t.Errorf("a replica that waits shows %d series", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return testutil.CollectAndCount(c) > 0, nil
	})
	if err != nil {
		t.Errorf("the active replica shows nothing: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := testutil.CollectAndCount(c); got != 0 {
		t.Errorf("a replica that was active shows %d series", got)
	}
}

func TestACacheThatDoesNotAnswerTakesNoOtherMetricsWithIt(t *testing.T) {
	c := collecting(t, true, errors.New("the cache is not filled"))
	c.ctx = t.Context()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c, prometheus.NewGauge(prometheus.GaugeOpts{Name: "another"}))
	if got, err := testutil.GatherAndCount(registry); err != nil || got != 1 {
		t.Errorf("%d series (%v), want the other one", got, err)
	}
}
