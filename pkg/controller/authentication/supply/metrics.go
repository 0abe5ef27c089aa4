package supply

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/capacity"
)

// What is offered, as metrics: cores, bytes or pieces, by resource.
var (
	offeredDesc = prometheus.NewDesc("liqo_node_offered", "What the virtual node of a consumer's ResourceSlice is offered here.",
		[]string{"cluster_id", "resource_slice", "resource"}, nil)
	usedDesc = prometheus.NewDesc("liqo_node_used", "What the pods of a consumer's ResourceSlice request here.",
		[]string{"cluster_id", "resource_slice", "resource"}, nil)
	freeDesc = prometheus.NewDesc("liqo_node_free", "What a consumer could use here: what nodes have, less what pods of others request.",
		[]string{"cluster_id", "resource"}, nil)
	overDesc = prometheus.NewDesc("liqo_provider_overcommitment",
		"All that consumers are offered together, in parts of what they could use: more than 1 is promised more than once.",
		[]string{"resource"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Supply) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{offeredDesc, usedDesc, freeDesc, overDesc} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector. There is something to show while this replica follows nodes and pods.
func (s *Supply) Collect(metrics chan<- prometheus.Metric) {
	if !s.Known() {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	offers, together, consumers := s.pool.Offers(s.options.Exclusive), corev1.ResourceList{}, map[string]bool{}
	for slice, a := range s.asking {
		consumers[a.of.Consumer] = true
		together = capacity.Sum(together, a.told.Resources)
		running := offers[a.of].Running
		for name, quantity := range a.told.Resources {
			used := running[name]
			gauge(offeredDesc, quantity.AsApproximateFloat64(), a.of.Consumer, slice.Name, string(name))
			gauge(usedDesc, used.AsApproximateFloat64(), a.of.Consumer, slice.Name, string(name))
		}
	}
	for consumer := range consumers {
		for name, quantity := range s.pool.Free(consumer) {
			gauge(freeDesc, quantity.AsApproximateFloat64(), consumer, string(name))
		}
	}
	for name, room := range s.pool.Room(nil) {
		if offered, is := together[name]; is && !room.IsZero() {
			gauge(overDesc, offered.AsApproximateFloat64()/room.AsApproximateFloat64(), string(name))
		}
	}
}
