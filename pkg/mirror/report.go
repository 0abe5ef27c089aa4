package mirror

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"liqo.io/liqo/pkg/kube/registry"
	"liqo.io/liqo/pkg/reflection"
)

// Values of the label result.
const (
	resultCreated = "created"
	resultUpdated = "updated"
	resultDeleted = "deleted"
	// resultBroughtBack is a write of the local status.
	resultBroughtBack = "broughtback"
)

// reporter tells what happened: Events to users, metrics to operators.
type reporter struct {
	recorder Recorder
	items    *prometheus.CounterVec
	errors   *prometheus.CounterVec
}

func newReporter(o Options) (*reporter, error) {
	constant := prometheus.Labels{"cluster_id": o.Remote, "node_name": o.NodeName}
	r := &reporter{
		recorder: o.Recorder,
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_virtual_kubelet_reflection_item_counter", ConstLabels: constant,
			Help: "Writes that reflection made, at the provider unless the result is broughtback, by namespace, kind and result.",
		}, []string{"namespace", "reflector_resource", "result"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_virtual_kubelet_reflection_error_counter", ConstLabels: constant,
			Help: "Failures of reflection, by namespace, kind and reason.",
		}, []string{"namespace", "reflector_resource", "reason"}),
	}
	for _, counter := range []**prometheus.CounterVec{&r.items, &r.errors} {
		var err error
		if *counter, err = registry.Ensure(o.Registerer, *counter); err != nil {
			return nil, fmt.Errorf("counting what reflection does: %w", err)
		}
	}
	return r, nil
}

func (r *reporter) done(kind, namespace, result string) {
	r.items.WithLabelValues(namespace, kind, result).Inc()
}

func (r *reporter) failed(kind, namespace, reason string) {
	r.errors.WithLabelValues(namespace, kind, reason).Inc()
}

// forget drops the series of a namespace that is no longer reflected.
func (r *reporter) forget(namespace string) {
	r.items.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	r.errors.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
}

func (r *reporter) event(object reflection.Object, kind, reason, message string) {
	if r.recorder != nil {
		r.recorder.Event(object.DeepCopyObject(), kind, reason, message)
	}
}
