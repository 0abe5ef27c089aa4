package gateway

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/netlink"
)

// driver is what v1 calls the kind of tunnel.
const driver = "wireguard"

// Traffic reads what a tunnel carried.
type Traffic interface {
	Traffic(device string) (netlink.Traffic, error)
}

// Metrics are what a gateway tells of its tunnel. Nil tells nothing. Names and labels that Liqo v1 has are those of v1.
type Metrics struct {
	kernel Traffic
	state  atomic.Pointer[tunnelState]

	received, sent, latency, connected, handshake, mtu *prometheus.Desc
}

// tunnelState is how the tunnel is.
type tunnelState struct {
	connected bool
	latency   time.Duration
	mtu       int
}

// NewMetrics makes the metrics of the tunnel to a peer.
func NewMetrics(kernel Traffic, peer string) *Metrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, nil, prometheus.Labels{"cluster_id": peer, "driver": driver})
	}
	return &Metrics{
		kernel:    kernel,
		received:  desc("liqo_peer_receive_bytes_total", "Bytes that came through the tunnel from the peer."),
		sent:      desc("liqo_peer_transmit_bytes_total", "Bytes that went through the tunnel to the peer."),
		latency:   desc("liqo_peer_latency_us", "Time that a packet takes to the peer's gateway and back, in microseconds."),
		connected: desc("liqo_peer_is_connected", "Whether the peer's gateway answers through the tunnel (1) or not (0)."),
		handshake: desc("liqo_peer_handshake_timestamp_seconds", "When the two ends of the tunnel last agreed on keys."),
		mtu:       desc("liqo_peer_mtu_bytes", "Size of the largest packet that gets through the tunnel."),
	}
}

func (m *Metrics) tell(s tunnelState) {
	if m != nil {
		m.state.Store(&s)
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.received, m.sent, m.latency, m.connected, m.handshake, m.mtu} {
		to <- d
	}
}

// Collect implements prometheus.Collector. What is not known yet is left out.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	if s := m.state.Load(); s != nil {
		connected := 0.0
		if s.connected {
			connected = 1
		}
		gauge(m.connected, connected)
		if s.latency > 0 {
			gauge(m.latency, float64(s.latency.Microseconds()))
		}
		if s.mtu > 0 {
			gauge(m.mtu, float64(s.mtu))
		}
	}
	traffic, err := m.kernel.Traffic(dataplane.TunnelDevice)
	if err != nil {
		return // There is no tunnel yet.
	}
	to <- prometheus.MustNewConstMetric(m.received, prometheus.CounterValue, float64(traffic.Received))
	to <- prometheus.MustNewConstMetric(m.sent, prometheus.CounterValue, float64(traffic.Sent))
	if !traffic.Handshake.IsZero() {
		gauge(m.handshake, float64(traffic.Handshake.Unix()))
	}
}
