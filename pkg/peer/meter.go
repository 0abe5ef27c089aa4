package peer

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqo.io/liqo/pkg/kube/expiry"
)

// probeBuckets are the upper bounds of the durations of probes in seconds: from two processes on one machine to the usual deadline
// of a probe.
var probeBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}

// Meter shows the connections of a process to its peers as metrics: whether each peer works with us, how fast it answers, and until when the
// certificate by which it knows us is valid. Peers whose Options name it are shown while they run. It is to be registered once. A nil
// Meter shows nothing.
type Meter struct {
	up, expiry *prometheus.Desc
	durations  *prometheus.HistogramVec
	failures   *prometheus.CounterVec

	mu      sync.Mutex
	running map[*Peer]bool
}

// NewMeter makes a Meter that shows no peer yet.
func NewMeter() *Meter {
	return &Meter{
		up: prometheus.NewDesc("liqo_peer_up",
			"Whether the peer's API server answers, accepts our certificate and leaves us our rights: 1 or 0; no value before the first answer or failure.",
			[]string{"cluster_id"}, nil),
		expiry: expiry.Desc(expiry.Peer),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "liqo_peer_probe_duration_seconds", Buckets: probeBuckets,
			Help: "How long the peer's API server took to answer a probe.",
		}, []string{"cluster_id"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_peer_probe_failures_total",
			Help: "Probes that the peer's API server did not answer in time, or with an error.",
		}, []string{"cluster_id"}),
		running: map[*Peer]bool{},
	}
}

// Describe implements prometheus.Collector.
func (m *Meter) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.up
	descs <- m.expiry
	m.durations.Describe(descs)
	m.failures.Describe(descs)
}

// Collect implements prometheus.Collector.
func (m *Meter) Collect(metrics chan<- prometheus.Metric) {
	m.durations.Collect(metrics)
	m.failures.Collect(metrics)
	shown := map[string]bool{}
	for _, p := range m.peers() {
		state, cluster := p.State(), p.options.ClusterID
		// While one connection follows another to the same peer there are two of them for a moment.
		if shown[cluster] || !state.Connected && !state.Lost() {
			continue
		}
		shown[cluster] = true
		up := 0.0
		if state.Connected && !state.Revoked() {
			up = 1
		}
		metrics <- prometheus.MustNewConstMetric(m.up, prometheus.GaugeValue, up, cluster)
		if notAfter := p.notAfter(); !notAfter.IsZero() {
			metrics <- expiry.Metric(m.expiry, notAfter, cluster)
		}
	}
}

func (m *Meter) peers() []*Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*Peer, 0, len(m.running))
	for p := range m.running {
		all = append(all, p)
	}
	return all
}

// follow shows a peer until the function that it returns is called.
func (m *Meter) follow(p *Peer) (end func()) {
	if m == nil {
		return func() {}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[p] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.running, p)
		for other := range m.running {
			if other.options.ClusterID == p.options.ClusterID {
				return
			}
		}
		m.durations.DeleteLabelValues(p.options.ClusterID)
		m.failures.DeleteLabelValues(p.options.ClusterID)
	}
}

// probed takes the outcome of one probe. One that was cut off by the end of the process is none.
func (m *Meter) probed(ctx context.Context, cluster string, took time.Duration, err error) {
	switch {
	case m == nil || ctx.Err() != nil:
	case err != nil:
		m.failures.WithLabelValues(cluster).Inc()
	default:
		m.durations.WithLabelValues(cluster).Observe(took.Seconds())
	}
}

// notAfter is when the client certificate in use expires; the zero time stands for none.
func (p *Peer) notAfter() time.Time {
	access := p.access.Load()
	if access == nil {
		return time.Time{}
	}
	return expiry.OfPEM(access.config.CertData)
}
