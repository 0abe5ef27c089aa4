package restarts

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
	"liqo.io/liqo/test/monitoring"
)

// readerOf makes a ServiceAccount at rome, bound to the chart's role for readers of metrics if it may read them, and returns a token.
func readerOf(t *testing.T, allowed bool) string {
	t.Helper()
	if allowed {
		return env.TokenOf(t, "liqo-metrics-reader")
	}
	return env.TokenOf(t, "")
}

// served scrapes until all metrics are shown that are awaited, and returns all.
func served(t *testing.T, process, url, token string, awaited ...string) map[string]*dto.MetricFamily {
	t.Helper()
	var families map[string]*dto.MetricFamily
	fixture.Await(t, 2*fixture.Patience, "the metrics of the "+process, func(ctx context.Context) (bool, string) {
		status, body, err := world.Scrape(ctx, url, token)
		if err != nil || status != http.StatusOK {
			return false, fmt.Sprintf("status %d, error %v, %.200s", status, err, body)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		if families, err = parser.TextToMetricFamilies(strings.NewReader(body)); err != nil {
			t.Fatalf("what the %s serves is not Prometheus' format: %v", process, err)
		}
		for _, name := range awaited {
			if families[name] == nil {
				return false, fmt.Sprintf("%s is not shown; shown are %v", name, slices.Sorted(maps.Keys(families)))
			}
		}
		return true, ""
	})
	return families
}

// documented holds what a process serves against docs/metrics.md: each metric of ours is on the page, with its type.
func documented(t *testing.T, process string, families map[string]*dto.MetricFamily) {
	t.Helper()
	page, types := monitoring.Page(t, "../../.."), map[string]string{}
	for _, section := range []string{monitoring.Both, process, monitoring.Libraries} {
		for _, m := range page[section] {
			types[m.Name] = m.Type
		}
	}
	for name, family := range families {
		want, known := types[name]
		if strings.HasPrefix(name, "liqo_") && !known {
			t.Errorf("%s: docs/metrics.md does not have %s", process, name)
		}
		if got := strings.ToLower(family.GetType().String()); known && got != want {
			t.Errorf("%s: %s is a %s, and a %s on the page", process, name, got, want)
		}
	}
}

func valueOf(family *dto.MetricFamily, labels map[string]string) (float64, bool) {
	for _, m := range family.GetMetric() {
		matching := 0
		for _, pair := range m.GetLabel() {
			if want, asked := labels[pair.GetName()]; asked && want == pair.GetValue() {
				matching++
			}
		}
		if matching == len(labels) {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount()), true
		}
	}
	return 0, false
}

// shows fails unless a metric with some labels has at least a value.
func shows(t *testing.T, families map[string]*dto.MetricFamily, name string, least float64, labels map[string]string) {
	t.Helper()
	if got, shown := valueOf(families[name], labels); !shown || got < least {
		t.Errorf("%s%v is %v (shown: %v), want at least %v", name, labels, got, shown, least)
	}
}

// refusals asks without a token, with a wrong one and with one of an account that may not read metrics.
func refusals(t *testing.T, process, url string) {
	t.Helper()
	for caller, c := range map[string]struct {
		token string
		want  int
	}{
		"nobody": {"", http.StatusUnauthorized}, "a stranger": {"made-up", http.StatusUnauthorized}, "an account without the right": {readerOf(t, false), http.StatusForbidden},
	} {
		status, body, err := world.Scrape(t.Context(), url, c.token)
		if err != nil || status != c.want || strings.Contains(body, "liqo_") {
			t.Errorf("%s answers %s with %d (%v) %.80q, want %d", process, caller, status, err, body, c.want)
		}
	}
}

// withMetrics runs rome's controller manager and the virtual kubelet with metrics, until restore is called.
func withMetrics(t *testing.T, w *world.Peering) (controller, kubelet string, restore func()) {
	t.Helper()
	on := map[string]any{"metrics": map[string]any{"enabled": true}}
	controllerPort, kubeletPort := fixture.FreePort(t), fixture.FreePort(t)
	w.Rome.Arguments = []string{fmt.Sprintf("--metrics-port=%d", controllerPort)}
	w.Rome.Reconfigure(t, nil, on)
	serves(t, w, true)
	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	before := w.Kubelet.Args
	w.Kubelet.Args = append(slices.Clone(before), "--metrics-enabled", fmt.Sprintf("--metrics-address=127.0.0.1:%d", kubeletPort))
	w.Kubelet.Start(t)
	restore = func() {
		w.Rome.Arguments = nil
		w.Rome.Reconfigure(t, on, nil)
		serves(t, w, false)
		fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
		w.Kubelet.Args = before
		w.Kubelet.Start(t)
	}
	return fmt.Sprintf("https://127.0.0.1:%d/metrics", controllerPort), fmt.Sprintf("https://127.0.0.1:%d/metrics", kubeletPort), restore
}

// serves returns when the Deployment of the virtual kubelet says whether metrics are served, as the controller manager's settings do.
func serves(t *testing.T, w *world.Peering, want bool) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "the Deployment of the virtual kubelet to follow the settings", func(ctx context.Context) (bool, string) {
		d := &appsv1.Deployment{}
		if err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: w.Node}, d); err != nil {
			return false, err.Error()
		}
		arguments := d.Spec.Template.Spec.Containers[0].Args
		return slices.Contains(arguments, "--metrics-enabled=true") == want, fmt.Sprint(arguments)
	})
}

// Both processes answer who may read metrics, refuse all others, and show nothing that docs/metrics.md does not explain.
func TestMetrics(t *testing.T) {
	w := env.Peered(t)
	controller, kubelet, restore := withMetrics(t, w)
	defer restore()
	namespace := env.Offloaded(t)
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "measured")))
	world.AwaitPods(t, env.Rome, namespace, 1)
	refusals(t, "the controller manager", controller)
	refusals(t, "the virtual kubelet", kubelet)

	token := readerOf(t, true)
	milan, node := map[string]string{"cluster_id": "milan"}, map[string]string{"cluster_id": "milan", "node_name": w.Node}
	with := func(key, value string) map[string]string {
		labels := maps.Clone(node)
		labels[key] = value
		return labels
	}
	shown := served(t, "virtual kubelet", kubelet, token, "liqo_peer_up", "liqo_virtual_kubelet_pod_ready_duration_seconds",
		"liqo_peer_probe_duration_seconds", "workqueue_depth", "workqueue_queue_duration_seconds", "workqueue_retries_total", "rest_client_requests_total")
	documented(t, monitoring.VirtualKubelets, shown)
	shows(t, shown, "liqo_peer_up", 1, node)
	shows(t, shown, "liqo_virtual_kubelet_pods", 1, with("phase", "Running"))
	shows(t, shown, "liqo_virtual_kubelet_requested_resources", 1, with("resource", "pods"))
	shows(t, shown, "liqo_virtual_kubelet_granted_resources", 500, with("resource", "pods"))
	shows(t, shown, "liqo_virtual_kubelet_pod_ready_duration_seconds", 1, node)
	for _, queue := range []string{"pods", "events", "configmaps", "secrets", "services", "endpointslices"} {
		shows(t, shown, "workqueue_depth", 0, map[string]string{"name": queue})
	}
	for _, use := range []string{"peer", "node-client", "kubelet-serving"} {
		shows(t, shown, "liqo_certificate_expiration_timestamp_seconds", float64(time.Now().Unix()), with("certificate", use))
	}

	shown = served(t, "controller manager", controller, token, "liqo_peer_up", "liqo_virtual_node_ready", "liqo_offloaded_namespaces",
		"workqueue_depth", "controller_runtime_reconcile_errors_total")
	documented(t, monitoring.ControllerManager, shown)
	shows(t, shown, "liqo_peer_up", 1, milan)
	shows(t, shown, "liqo_virtual_node_ready", 1, node)
	shows(t, shown, "workqueue_depth", 0, map[string]string{"name": "replication-milan"})
	shows(t, shown, "liqo_offloaded_namespaces", 1, map[string]string{"ready": "true"})
	shows(t, shown, "liqo_certificate_expiration_timestamp_seconds", float64(time.Now().Unix()), map[string]string{"certificate": "webhook"})
}

// Of several virtual kubelets of one node each serves metrics, also one that stands by, which counts neither pods nor peers. It answers the
// same callers, and says that another one works.
func TestMetricsOfAVirtualKubeletThatStandsBy(t *testing.T) {
	w := env.Peered(t)
	_, active, restore := withMetrics(t, w)
	defer restore()
	port := fixture.FreePort(t)
	second := secondKubelet(t, w, fmt.Sprintf("--metrics-address=127.0.0.1:%d", port))
	defer scaleKubelet(t, w, 1)
	defer func() { fixture.Must(t, "stopping the second virtual kubelet", second.Stop()) }()
	waits := fmt.Sprintf("https://127.0.0.1:%d/metrics", port)
	token := readerOf(t, true)
	for url, want := range map[string]float64{active: 1, waits: 0} {
		shown := served(t, "virtual kubelet", url, token, "leader_election_master_status")
		if got, known := valueOf(shown["leader_election_master_status"], map[string]string{"name": w.Node}); !known || got != want {
			t.Errorf("leader_election_master_status at %s is %v (shown: %v), want %v", url, got, known, want)
		}
		if _, counts := shown["liqo_virtual_kubelet_pods"]; counts != (want == 1) {
			t.Errorf("pods are counted at %s: %v", url, counts)
		}
	}
	refusals(t, "a virtual kubelet that stands by", waits)
}
