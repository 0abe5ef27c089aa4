package peer

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"liqo.io/liqo/pkg/identity"
)

// identified is a kubeconfig whose client certificate expires at a time.
func identified(t *testing.T, s *server, notAfter time.Time) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "liqo.io:tenant:rome"}, NotAfter: notAfter}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s.kubeconfig(t, func(_ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) {
		user.Token = ""
		user.ClientCertificateData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		user.ClientKeyData = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	})
}

func TestMeterFollowsAPeer(t *testing.T) {
	s := newServer(t)
	meter := NewMeter()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(meter)
	p, err := New(Options{
		ClusterID: "milan", Kubeconfig: StaticSource(identified(t, s, time.Unix(4_000_000_000, 0))),
		Endpoints: identity.EndpointPolicy{AllowLoopback: true}, Meter: meter,
		ProbeInterval: 20 * time.Millisecond, ProbeTimeout: time.Minute, RequestTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	states := make(chan State, 1000)
	p.Subscribe(func(s State) { states <- s })
	show := func(when, want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
			"liqo_peer_up", "liqo_certificate_expiration_timestamp_seconds"); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	expires := `
# HELP liqo_certificate_expiration_timestamp_seconds When the certificate that is in use expires, in seconds since 1970, by what it is used for.
# TYPE liqo_certificate_expiration_timestamp_seconds gauge
liqo_certificate_expiration_timestamp_seconds{certificate="peer",cluster_id="milan"} 4e+09
`
	up := `
# HELP liqo_peer_up Whether the peer's API server answers, accepts our certificate and leaves us our rights: 1 or 0; no value before the first answer or failure.
# TYPE liqo_peer_up gauge
liqo_peer_up{cluster_id="milan"} `
	show("before it runs", "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	await(t, states, "connected", connected)
	show("connected", expires+up+"1\n")
	if got := testutil.CollectAndCount(meter, "liqo_peer_probe_duration_seconds"); got != 1 {
		t.Errorf("%d series of durations, want that of the answers", got)
	}
	p.Tell("the rights were taken back")
	await(t, states, "revoked", State.Revoked)
	if got := upOf(t, registry); got != 0 {
		t.Errorf("a peer that took our rights back is shown as %v", got)
	}
	s.answer(http.StatusInternalServerError)
	await(t, states, "lost", State.Lost)
	show("lost", expires+up+"0\n")
	if got := testutil.ToFloat64(meter.failures.WithLabelValues("milan")); got < failuresToLose {
		t.Errorf("%v failures were counted, and it takes %d to lose a peer", got, failuresToLose)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := testutil.CollectAndCount(meter); got != 0 {
		t.Errorf("%d series are left of a peer that does not run any more", got)
	}
}

func upOf(t *testing.T, registry *prometheus.Registry) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "liqo_peer_up" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("liqo_peer_up is not shown")
	return 0
}

func TestNothingIsSaidOfAPeerOfWhichNothingIsKnown(t *testing.T) {
	meter := NewMeter()
	p, err := New(Options{ClusterID: "milan", Kubeconfig: make(channelSource), Meter: meter})
	if err != nil {
		t.Fatal(err)
	}
	defer meter.follow(p)()
	if got := testutil.CollectAndCount(meter); got != 0 {
		t.Errorf("%d series without an answer", got)
	}
}

// A connection to a peer is followed by another one, with other credentials; for a moment there are two.
func TestTwoConnectionsToAPeerAreOneSeries(t *testing.T) {
	meter := NewMeter()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(meter)
	connection := func() *Peer {
		p, err := New(Options{ClusterID: "milan", Kubeconfig: make(channelSource), Meter: meter})
		if err != nil {
			t.Fatal(err)
		}
		p.change(func(s *State) { s.Connected, s.Reason = true, ReasonConnected })
		return p
	}
	endOld := meter.follow(connection())
	endNew := meter.follow(connection())
	meter.probed(t.Context(), "milan", time.Second, nil)
	if got, err := testutil.GatherAndCount(registry); err != nil || got != 2 {
		t.Errorf("%d series (%v), want one of being up and one of durations", got, err)
	}
	endOld()
	if got := testutil.CollectAndCount(meter); got != 2 {
		t.Errorf("%d series, want those of the connection that goes on", got)
	}
	endNew()
	if got := testutil.CollectAndCount(meter); got != 0 {
		t.Errorf("%d series are left", got)
	}
}
