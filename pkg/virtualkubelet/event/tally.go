package event

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
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
	t := &tally{events: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "liqo_virtual_kubelet_event_counter",
		ConstLabels: prometheus.Labels{"cluster_id": o.Remote, "node_name": o.NodeName},
		Help:        "Events of the provider, by what became of them.",
	}, []string{"result"})}
	if o.Registerer == nil {
		return t, nil
	}
	err := o.Registerer.Register(t.events)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		if existing, same := twice.ExistingCollector.(*prometheus.CounterVec); same {
			t.events = existing
			return t, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of Events: %w", err)
	}
	return t, nil
}

func (t *tally) count(result string) { t.events.WithLabelValues(result).Inc() }
