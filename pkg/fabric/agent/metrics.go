package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"liqo.io/liqo/pkg/kube/caller"
	"liqo.io/liqo/pkg/netlink"
)

// Counter reads what our firewall has counted.
type Counter interface {
	Counted() (map[string]uint64, error)
}

// Metrics are what both agents tell of their work. Nil tells nothing.
type Metrics struct {
	kernel     Counter
	dropped    *prometheus.Desc
	repairs    prometheus.Counter
	took       prometheus.Histogram
	programmed prometheus.Gauge
	// since is when what is wanted now was wanted first, until it is in the kernel. One goroutine knows it.
	since time.Time
}

// NewMetrics makes them.
func NewMetrics(kernel Counter) *Metrics {
	return &Metrics{
		kernel: kernel,
		dropped: prometheus.NewDesc("liqo_network_dropped_packets_total",
			"Packets that were dropped, by what was wrong with them, since the firewall was made.", []string{"reason"}, nil),
		repairs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "liqo_network_repairs_total", Help: "How often something of ours in the kernel, which somebody else had changed, was put right.",
		}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "liqo_network_programming_duration_seconds", Help: "Time from when something else was wanted until the kernel had it.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}),
		programmed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "liqo_network_programmed", Help: "Whether the kernel has all that is wanted (1) or refuses something, or has not got it yet (0).",
		}),
	}
}

// Want tells that something else is wanted.
func (m *Metrics) Want(now time.Time) {
	if m == nil {
		return
	}
	if m.since.IsZero() {
		m.since = now
	}
	m.programmed.Set(0)
}

// See takes in what a pass came to.
func (m *Metrics) See(r netlink.Report, now time.Time) {
	if m == nil {
		return
	}
	if r.Repair && len(r.Changes) > 0 {
		m.repairs.Inc()
	}
	if r.Err != nil {
		m.programmed.Set(0)
		return
	}
	m.programmed.Set(1)
	if !m.since.IsZero() {
		m.took.Observe(now.Sub(m.since).Seconds())
		m.since = time.Time{}
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.dropped
	for _, c := range []prometheus.Collector{m.repairs, m.took, m.programmed} {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range []prometheus.Collector{m.repairs, m.took, m.programmed} {
		c.Collect(to)
	}
	counted, err := m.kernel.Counted()
	if err != nil {
		to <- prometheus.NewInvalidMetric(m.dropped, err)
		return
	}
	for reason, packets := range counted {
		to <- prometheus.MustNewConstMetric(m.dropped, prometheus.CounterValue, float64(packets), reason)
	}
}

// MetricsPort is where an agent serves its metrics.
type MetricsPort struct {
	// Port to listen at; 0 serves nothing.
	Port int
	// PlainHTTP serves them to whoever reaches the port.
	PlainHTTP bool
}

// Register adds the flags.
func (m *MetricsPort) Register(set *pflag.FlagSet) {
	set.IntVar(&m.Port, "metrics-port", 0, "port that serves metrics, over HTTPS, to whom the cluster authorizes; 0 serves none")
	set.BoolVar(&m.PlainHTTP, "metrics-plain-http", false, "serve metrics over HTTP, to whoever reaches the port")
}

// Serve serves metrics until the context ends.
func (m MetricsPort) Serve(ctx context.Context, config *rest.Config, collectors ...prometheus.Collector) error {
	if m.Port == 0 {
		return nil
	}
	for _, c := range collectors {
		if err := ctrlmetrics.Registry.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making the client that authorizes readers of metrics: %w", err)
	}
	server, err := metricsserver.NewServer(caller.Serving(net.JoinHostPort("", strconv.Itoa(m.Port)), m.PlainHTTP), config, client)
	if err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	if err := server.Start(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}
