package kubelet

import (
	"crypto/tls"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	_ "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue" // shows client-go's queues as metrics

	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/expiry"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/podcache"
)

// NewMeter shows the connection to the provider. All of a virtual kubelet's own metrics name its node, so that those of two nodes of
// one provider do not add up by mistake.
func NewMeter(registerer prometheus.Registerer, node string) (*peer.Meter, error) {
	meter := peer.NewMeter()
	if err := prometheus.WrapRegistererWith(prometheus.Labels{"node_name": node}, registerer).Register(meter); err != nil {
		return nil, fmt.Errorf("registering the metrics of the connection: %w", err)
	}
	return meter, nil
}

// measure shows what the node's pods are and take, and until when its certificates are valid.
func (n *Kubelet) measure() error {
	cluster := n.options.Flags.Provider.ID
	ofNode := prometheus.WrapRegistererWith(prometheus.Labels{"node_name": n.options.Flags.Node}, n.options.Metrics)
	for _, collector := range []prometheus.Collector{
		newCensus(cluster, n.census),
		expiry.Of(expiry.NodeClient, cluster, n.options.Identity.ClientCertificate),
		expiry.Of(expiry.KubeletServing, cluster, func() *tls.Certificate {
			serving, err := n.options.Identity.ServingCertificate(nil)
			if err != nil {
				return nil // there is none yet, which the endpoint's log tells
			}
			return serving
		}),
	} {
		if err := ofNode.Register(collector); err != nil {
			return fmt.Errorf("registering the metrics of the node: %w", err)
		}
	}
	return nil
}

// census is what the node's pods are and take, and what its VirtualNode grants; nil while that is not known.
func (n *Kubelet) census() (podcache.Census, corev1.ResourceList) {
	pods, vn := n.Pods(), n.options.Settings.Get().Node
	if vn == nil {
		return pods.Census(), nil
	}
	return pods.Census(), vn.Spec.ResourceQuota.Hard
}

// census shows the pods of a node as metrics, from memory, at each scrape.
type census struct {
	pods, granted, requested *prometheus.Desc
	current                  func() (podcache.Census, corev1.ResourceList)
}

func newCensus(cluster string, current func() (podcache.Census, corev1.ResourceList)) *census {
	constant := prometheus.Labels{"cluster_id": cluster}
	return &census{
		pods: prometheus.NewDesc("liqo_virtual_kubelet_pods", "Pods on the virtual node, by phase.", []string{"phase"}, constant),
		granted: prometheus.NewDesc("liqo_virtual_kubelet_granted_resources",
			"What the provider granted to the virtual node: cores, bytes or pods, by resource.", []string{"resource"}, constant),
		requested: prometheus.NewDesc("liqo_virtual_kubelet_requested_resources",
			"What the pods on the virtual node that have not ended request: cores, bytes or pods, by resource.", []string{"resource"}, constant),
		current: current,
	}
}

// Describe implements prometheus.Collector.
func (c *census) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.pods
	descs <- c.granted
	descs <- c.requested
}

// Collect implements prometheus.Collector.
func (c *census) Collect(metrics chan<- prometheus.Metric) {
	now, granted := c.current()
	gauge := func(desc *prometheus.Desc, value float64, label string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, label)
	}
	for _, phase := range podcache.Phases {
		gauge(c.pods, float64(now.Phases[phase]), string(phase))
	}
	for _, name := range capacity.Measured {
		if amount, ok := granted[name]; ok {
			gauge(c.granted, amount.AsApproximateFloat64(), string(name))
		}
		requested := now.Requests[name]
		gauge(c.requested, requested.AsApproximateFloat64(), string(name))
	}
}
