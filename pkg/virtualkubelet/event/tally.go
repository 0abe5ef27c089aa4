package event

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"liqo.io/liqo/pkg/kube/registry"
)

// What became of a remote Event, beside the reasons for which package reflection leaves it there.
const (
	outcomeWritten  = "Written"
	outcomeLimited  = "Limited"
	outcomeUnknown  = "UnknownObject"
	outcomeOverflow = "Overflow"
	outcomeFlood    = "Flood"
	outcomeFailed   = "Failed"
)

// tally counts what became of remote Events.
type tally struct{ events *prometheus.CounterVec }

func newTally(o Options) (*tally, error) {
	events, err := registry.Ensure(o.Registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "liqo_virtual_kubelet_event_counter",
		ConstLabels: prometheus.Labels{"cluster_id": o.Remote, "node_name": o.NodeName},
		Help:        "Events of the provider, by what became of them.",
	}, []string{"result"}))
	if err != nil {
		return nil, fmt.Errorf("counting Events: %w", err)
	}
	return &tally{events: events}, nil
}

func (t *tally) count(result string) { t.events.WithLabelValues(result).Inc() }
