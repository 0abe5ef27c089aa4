package expiry

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label certificate: what a certificate is used for.
const (
	// Peer is the client certificate by which a peer's API server knows this cluster.
	Peer = "peer"
	// Webhook is the serving certificate of the admission webhooks and of the controller manager's metrics.
	Webhook = "webhook"
	// NodeClient is the client certificate by which a virtual kubelet is a node for its own cluster.
	NodeClient = "node-client"
	// KubeletServing is the serving certificate of a virtual kubelet's endpoint and of its metrics.
	KubeletServing = "kubelet-serving"
)

// Desc describes the metric for certificates of one use. Its variable label is the ID of the cluster that the certificate has to do
// with, empty if that is only this one.
func Desc(use string) *prometheus.Desc {
	return prometheus.NewDesc("liqo_certificate_expiration_timestamp_seconds",
		"When the certificate that is in use expires, in seconds since 1970, by what it is used for.",
		[]string{"cluster_id"}, prometheus.Labels{"certificate": use})
}

// certificate shows one certificate.
type certificate struct {
	desc    *prometheus.Desc
	cluster string
	current func() *tls.Certificate
}

// Of shows the certificate that current returns; as long as that is nil, or was not parsed, there is nothing to show. It is asked at
// each scrape and must not block.
func Of(use, cluster string, current func() *tls.Certificate) prometheus.Collector {
	return &certificate{desc: Desc(use), cluster: cluster, current: current}
}

// Describe implements prometheus.Collector.
func (c *certificate) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector.
func (c *certificate) Collect(metrics chan<- prometheus.Metric) {
	if now := c.current(); now != nil && now.Leaf != nil {
		metrics <- Metric(c.desc, now.Leaf.NotAfter, c.cluster)
	}
}

// Metric is one value of the metric.
func Metric(desc *prometheus.Desc, notAfter time.Time, cluster string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(notAfter.Unix()), cluster)
}

// OfPEM tells until when the first certificate of a PEM text is valid; the zero time stands for a text without one.
func OfPEM(text []byte) time.Time {
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return parsed.NotAfter
}
