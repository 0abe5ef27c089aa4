package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/api"
	"liqo.io/liqo/pkg/virtualkubelet/credential"
	"liqo.io/liqo/pkg/virtualkubelet/event"
	"liqo.io/liqo/pkg/virtualkubelet/flags"
	"liqo.io/liqo/pkg/virtualkubelet/network"
	"liqo.io/liqo/pkg/virtualkubelet/podcache"
	"liqo.io/liqo/pkg/virtualkubelet/removal"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
	"liqo.io/liqo/test/monitoring"
)

// papers are the credentials of a node that has a client certificate and waits for the one of its endpoint.
type papers struct{ credential.Identity }

func (papers) ClientCertificate() *tls.Certificate {
	return &tls.Certificate{Leaf: &x509.Certificate{NotAfter: time.Unix(2_000_000_000, 0)}}
}

func (papers) ServingCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return nil, errors.New("the request was not approved")
}

// putTogether registers all that a virtual kubelet registers.
func putTogether(t *testing.T, registry *monitoring.Registry) {
	t.Helper()
	f := &flags.Flags{Home: "rome", Provider: flags.Provider{ID: "milan", PingInterval: time.Second}, Node: "milan-1", TenantNamespace: "liqo-tenant-milan",
		NodeLease: time.Minute, Port: 10250, CreateNode: true, Tokens: flags.Tokens{Enabled: true, Host: "api", MaxLifetime: time.Hour}}
	meter, err := NewMeter(registry, "milan-1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := peer.New(peer.Options{ClusterID: "milan", Kubeconfig: peer.StaticSource(nil), Meter: meter})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mirror.NewErrorCounter(registry, "milan", "milan-1"); err != nil {
		t.Fatal(err)
	}
	account, local := fake.NewClientset(), fake.NewClientset()
	events, err := event.New(event.Options{Home: "rome", Remote: "milan", NodeName: "milan-1", Events: account.CoreV1(), Peer: p,
		Locals: struct{ event.Locals }{}, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	k := New(Options{Flags: f, Identity: papers{}, Account: account, Peer: p, Network: network.New(network.Options{}).View,
		Settings: latest.New(settings.View{Settings: f.Reflectors.Settings(nil, nil)}),
		Removals: removal.New(removal.Options{}), Metrics: registry,
		Recorder: func(context.Context, kubernetes.Interface) record.EventRecorder { return record.NewFakeRecorder(1) }})
	made, err := k.build(t.Context(), local, Beside{UsesChanged: func(_, _, _ string) {}, Crossed: events.Crossed})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.measure(); err != nil {
		t.Fatal(err)
	}
	if _, err := api.New(api.Options{Remote: made.pods, LocalClient: local, NodeName: "milan-1", Registerer: registry,
		GetCertificate: papers{}.ServingCertificate}); err != nil {
		t.Fatal(err)
	}
}

// docs/metrics.md says what there is, with its labels, no more and no less.
func TestThePageHasTheMetricsOfAVirtualKubelet(t *testing.T) {
	registry := monitoring.NewRegistry()
	putTogether(t, registry)
	if diff := cmp.Diff(monitoring.Of(t, "../../..", monitoring.VirtualKubelets), registry.Registered()); diff != "" {
		t.Errorf("-docs/metrics.md +registered:\n%s", diff)
	}
	problems, err := testutil.GatherAndLint(registry, "liqo_peer_up", "liqo_certificate_expiration_timestamp_seconds",
		"liqo_virtual_kubelet_pods", "liqo_virtual_kubelet_requested_resources")
	if err != nil || len(problems) > 0 {
		t.Errorf("Prometheus' linter says %v, error %v", problems, err)
	}
}

func TestANodeThatIsNotFilledYetShowsWhatIsKnown(t *testing.T) {
	registry := monitoring.NewRegistry()
	putTogether(t, registry)
	want := `
# HELP liqo_certificate_expiration_timestamp_seconds When the certificate that is in use expires, in seconds since 1970, by what it is used for.
# TYPE liqo_certificate_expiration_timestamp_seconds gauge
liqo_certificate_expiration_timestamp_seconds{certificate="node-client",cluster_id="milan",node_name="milan-1"} 2e+09
`
	err := testutil.GatherAndCompare(registry, strings.NewReader(want), "liqo_certificate_expiration_timestamp_seconds", "liqo_virtual_kubelet_granted_resources")
	if err != nil {
		t.Error(err)
	}
}

func TestCensusOfANode(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCensus("milan", func() (podcache.Census, corev1.ResourceList) {
		return podcache.Census{Phases: map[corev1.PodPhase]int{corev1.PodRunning: 2}, Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")}},
			corev1.ResourceList{"cpu": resource.MustParse("4"), "example.com/gpu": resource.MustParse("1")}
	}))
	want := `
# HELP liqo_virtual_kubelet_granted_resources What the provider granted to the virtual node: cores, bytes or pods, by resource.
# TYPE liqo_virtual_kubelet_granted_resources gauge
liqo_virtual_kubelet_granted_resources{cluster_id="milan",resource="cpu"} 4
# HELP liqo_virtual_kubelet_pods Pods on the virtual node, by phase.
# TYPE liqo_virtual_kubelet_pods gauge
liqo_virtual_kubelet_pods{cluster_id="milan",phase="Failed"} 0
liqo_virtual_kubelet_pods{cluster_id="milan",phase="Pending"} 0
liqo_virtual_kubelet_pods{cluster_id="milan",phase="Running"} 2
liqo_virtual_kubelet_pods{cluster_id="milan",phase="Succeeded"} 0
liqo_virtual_kubelet_pods{cluster_id="milan",phase="Unknown"} 0
# HELP liqo_virtual_kubelet_requested_resources What the pods on the virtual node that have not ended request: cores, bytes or pods, by resource.
# TYPE liqo_virtual_kubelet_requested_resources gauge
liqo_virtual_kubelet_requested_resources{cluster_id="milan",resource="cpu"} 0.5
liqo_virtual_kubelet_requested_resources{cluster_id="milan",resource="ephemeral-storage"} 0
liqo_virtual_kubelet_requested_resources{cluster_id="milan",resource="memory"} 0
liqo_virtual_kubelet_requested_resources{cluster_id="milan",resource="pods"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
