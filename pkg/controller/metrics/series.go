package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/conditions"
)

// Values of the label reason for namespaces: those that users meet, and one for everything else.
var reasons = []string{
	offloadingv1beta1.ReasonNoClusterSelected, offloadingv1beta1.ReasonInvalidClusterSelector, offloadingv1beta1.ReasonTwinPending,
	offloadingv1beta1.ReasonTwinFailed, offloadingv1beta1.ReasonTwinTerminating, offloadingv1beta1.ReasonNamespaceConflict,
	offloadingv1beta1.ReasonNamespaceNotAllowed, offloadingv1beta1.ReasonNamespaceLimit,
}

const otherReason = "Other"

// series are the metrics.
type series struct{ nodes, namespaces, failing, pods, granted, requested *prometheus.Desc }

func newSeries() series {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return series{
		nodes: desc("liqo_virtual_node_ready", "Whether a virtual node and its virtual kubelet work: 1 or 0.", "cluster_id", "node_name"),
		namespaces: desc("liqo_offloaded_namespaces",
			"Namespaces with a NamespaceOffloading, by whether it is ready.", "ready"),
		failing: desc("liqo_offloaded_namespace_not_ready",
			"1 for each namespace whose NamespaceOffloading is not ready, with the reason.", "namespace", "reason"),
		pods:    desc("liqo_provider_pods", "Pods that run here for a consumer, by phase.", "cluster_id", "phase"),
		granted: desc("liqo_provider_granted_resources", "What was granted to a consumer: cores, bytes or pods, by resource.", "cluster_id", "resource"),
		requested: desc("liqo_provider_requested_resources",
			"What the pods of a consumer that have not ended request here: cores, bytes or pods, by resource.", "cluster_id", "resource"),
	}
}

func (s series) all() []*prometheus.Desc {
	return []*prometheus.Desc{s.nodes, s.namespaces, s.failing, s.pods, s.granted, s.requested}
}

// show tells what the caches show.
func (s series) show(v *view, metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for i := range v.nodes.Items {
		vn, up := &v.nodes.Items[i], 0.0
		if conditions.Is(vn.Status.All(), corev1beta1.ConditionReady, string(metav1.ConditionTrue)) {
			up = 1
		}
		gauge(s.nodes, up, string(vn.Spec.ClusterID), vn.Name)
	}
	ready := 0
	for i := range v.namespaces.Items {
		nso := &v.namespaces.Items[i]
		c := meta.FindStatusCondition(nso.Status.Conditions, corev1beta1.ConditionReady)
		if c != nil && c.Status == metav1.ConditionTrue {
			ready++
			continue
		}
		gauge(s.failing, 1, nso.Namespace, reasonOf(c))
	}
	gauge(s.namespaces, float64(ready), "true")
	gauge(s.namespaces, float64(len(v.namespaces.Items)-ready), "false")
	for cluster, consumer := range consumers(v) {
		for phase, count := range consumer.phases {
			gauge(s.pods, float64(count), cluster, string(phase))
		}
		for i, name := range capacity.Measured {
			if granted, ok := consumer.granted[name]; ok {
				gauge(s.granted, granted.AsApproximateFloat64(), cluster, string(name))
			}
			gauge(s.requested, consumer.requested[i], cluster, string(name))
		}
	}
}

// reasonOf is the reason of a condition, if it is one of the list. A namespace without a condition was not looked at yet.
func reasonOf(c *metav1.Condition) string {
	switch {
	case c == nil:
		return offloadingv1beta1.ReasonTwinPending
	case slices.Contains(reasons, c.Reason):
		return c.Reason
	default:
		return otherReason
	}
}

// consumer is what one consumer was granted and what it has.
type consumer struct {
	phases  map[corev1.PodPhase]int
	granted corev1.ResourceList
	// requested is in the order of capacity.Measured.
	requested [len(capacity.Measured)]float64
}

// consumers sorts Quotas and Pods by their consumer.
func consumers(v *view) map[string]*consumer {
	all := map[string]*consumer{}
	of := func(cluster string) *consumer {
		if all[cluster] == nil {
			all[cluster] = &consumer{phases: map[corev1.PodPhase]int{
				corev1.PodPending: 0, corev1.PodRunning: 0, corev1.PodSucceeded: 0, corev1.PodFailed: 0, corev1.PodUnknown: 0,
			}, granted: corev1.ResourceList{}}
		}
		return all[cluster]
	}
	for i := range v.quotas.Items {
		quota := &v.quotas.Items[i]
		if cluster, ok := strings.CutPrefix(quota.Namespace, corev1beta1.TenantNamespacePrefix); ok {
			c := of(cluster)
			c.granted = capacity.Sum(c.granted, quota.Spec.Resources)
		}
	}
	for i := range v.pods.Items {
		if cluster := v.pods.Items[i].Labels[offloadingv1beta1.OriginLabel]; cluster != "" {
			of(cluster).count(&v.pods.Items[i])
		}
	}
	return all
}

// count adds a pod.
func (c *consumer) count(pod *corev1.Pod) {
	phase := pod.Status.Phase
	if _, known := c.phases[phase]; !known {
		phase = corev1.PodPending
	}
	c.phases[phase]++
	if phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return
	}
	requests := capacity.PodRequests(&pod.Spec)
	for i, name := range capacity.Measured {
		amount := requests[name]
		c.requested[i] += amount.AsApproximateFloat64()
	}
}
