package mirror

import "github.com/prometheus/client_golang/prometheus"

// NewErrorCounter returns the counter of failures of reflection to a provider through a virtual node, by namespace, kind and reason. It
// is the one that Engines of the same registerer count in.
func NewErrorCounter(registerer prometheus.Registerer, remote, node string) (*prometheus.CounterVec, error) {
	reporter, err := newReporter(Options{Remote: remote, NodeName: node, Registerer: registerer})
	if err != nil {
		return nil, err
	}
	return reporter.errors, nil
}
