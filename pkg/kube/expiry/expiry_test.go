package expiry_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"liqo.io/liqo/pkg/kube/expiry"
)

func TestCertificatesOfSeveralUsesAreOneMetric(t *testing.T) {
	valid := func(at int64) func() *tls.Certificate {
		return func() *tls.Certificate { return &tls.Certificate{Leaf: &x509.Certificate{NotAfter: time.Unix(at, 0)}} }
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(
		expiry.Of(expiry.Webhook, "", valid(1000)),
		expiry.Of(expiry.KubeletServing, "milan", valid(2000)),
		expiry.Of(expiry.NodeClient, "milan", func() *tls.Certificate { return nil }),
		expiry.Of(expiry.Peer, "milan", func() *tls.Certificate { return &tls.Certificate{} }),
	)
	want := `
# HELP liqo_certificate_expiration_timestamp_seconds When the certificate that is in use expires, in seconds since 1970, by what it is used for.
# TYPE liqo_certificate_expiration_timestamp_seconds gauge
liqo_certificate_expiration_timestamp_seconds{certificate="kubelet-serving",cluster_id="milan"} 2000
liqo_certificate_expiration_timestamp_seconds{certificate="webhook",cluster_id=""} 1000
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestTextThatIsNoCertificateHasNoExpiry(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no PEM": "x", "no certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if got := expiry.OfPEM([]byte(text)); !got.IsZero() {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
