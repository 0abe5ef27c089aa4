// Package registry registers metrics of parts of a process that are made more than once, such as a reflector that is made again for other
// settings: Prometheus takes a metric once.
package registry

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Ensure returns the collector once the registerer gathers it, or the one that was registered before it for the same metrics: that goes
// on counting. Without a registerer nobody gathers it. It fails if something else has its names.
func Ensure[C prometheus.Collector](registerer prometheus.Registerer, collector C) (C, error) {
	if registerer == nil {
		return collector, nil
	}
	err := registerer.Register(collector)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		if existing, same := twice.ExistingCollector.(C); same {
			return existing, nil
		}
	}
	if err != nil {
		return collector, fmt.Errorf("registering metrics: %w", err)
	}
	return collector, nil
}
