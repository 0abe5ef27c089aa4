package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	clocktesting "k8s.io/utils/clock/testing"

	"liqo.io/liqo/pkg/virtualkubelet/api"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// node is a Reader with what surrounds it. Twins are in namespace twin-<namespace> and have the names of their pods.
type node struct {
	*Reader
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	pods  []*corev1.Pod
	// answer is what the provider answers, asked how often it was asked.
	answer http.HandlerFunc
	asked  atomic.Int32
	// lost is why the twins are not known.
	lost error
}

func newNode(t *testing.T, pods ...*corev1.Pod) *node {
	t.Helper()
	n := &node{t: t, clock: clocktesting.NewFakePassiveClock(noon), pods: pods}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		n.answer(w, r)
	}))
	t.Cleanup(server.Close)
	provider, err := rest.RESTClientFor(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{
		GroupVersion: &schema.GroupVersion{Version: "v1"}, NegotiatedSerializer: scheme.Codecs,
	}})
	if err != nil {
		t.Fatal(err)
	}
	n.Reader = New(Options{
		Node: "milan", Pods: func() []*corev1.Pod { return n.pods }, Twins: n, Clock: n.clock,
		Provider: func() (rest.Interface, error) { return provider, nil },
	})
	return n
}

func (n *node) Twin(_ context.Context, namespace, name, _ string) (api.Target, error) {
	return api.Target{Namespace: "twin-" + namespace, Pod: name}, n.lost
}

// get returns the status and the answer, without comments.
func (n *node) get(path string) (int, string) {
	n.t.Helper()
	recorder := httptest.NewRecorder()
	n.ServeHTTP(recorder, httptest.NewRequestWithContext(n.t.Context(), http.MethodGet, path, nil))
	var lines []string
	for line := range strings.Lines(recorder.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return recorder.Code, strings.Join(lines, "")
}

func (n *node) wait(d time.Duration) { n.clock.SetTime(n.clock.Now().Add(d)) }

// says has the provider tell the use of containers, "pod/container=cpu,memory" each.
func (n *node) says(used ...string) {
	n.answer = func(w http.ResponseWriter, r *http.Request) {
		items := map[string]string{}
		for _, u := range used {
			name, figures, _ := strings.Cut(u, "=")
			pod, container, _ := strings.Cut(name, "/")
			cpu, memory, _ := strings.Cut(figures, ",")
			items[pod] += fmt.Sprintf(`,{"name":%q,"usage":{"cpu":%q,"memory":%q}}`, container, cpu, memory)
		}
		var list []string
		for pod, containers := range items {
			list = append(list, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"other"},"containers":[%s]}`, pod, containers[1:]))
		}
		if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/namespaces/twin-shop/pods" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, `{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[%s]}`, strings.Join(list, ","))
	}
}

func (n *node) answers(status int, body string) {
	n.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func local(name string, age time.Duration, containers ...string) *corev1.Pod {
	began := metav1.NewTime(noon.Add(-age))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name + "-uid")},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &began},
	}
	for _, c := range containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c, Image: "busybox", ContainerID: "containerd://" + c + "-id", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}},
		})
	}
	return p
}

func expect(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+got, "\n"+line+"\n") {
			t.Errorf("%q is not in:\n%s", line, got)
		}
	}
}

func TestWhatPodsUseIsShownAsByAKubelet(t *testing.T) {
	web := local("web", time.Hour, "server", "proxy")
	done := local("done", time.Hour, "job")
	done.Status.Phase = corev1.PodSucceeded
	n := newNode(t, web, done)
	n.says("web/server=500m,64Mi", "web/proxy=250m,16Mi", "web/nobody=9,9Gi", "stranger/server=9,9Gi", "done/job=9,9Gi")
	n.get("/metrics/resource")
	n.wait(20 * time.Second)
	status, got := n.get("/metrics/resource")
	// Ten seconds of the first thirty are counted before the first reading: 30 s, and then 20 s more, of half a processor.
	at := fmt.Sprint(noon.Add(20 * time.Second).UnixMilli())
	expect(t, got,
		`container_cpu_usage_seconds_total{container="server",namespace="shop",pod="web"} 25.000000953674316 `+at,
		`container_cpu_usage_seconds_total{container="proxy",namespace="shop",pod="web"} 12.500000953674316 `+at,
		`container_memory_working_set_bytes{container="server",namespace="shop",pod="web"} 6.7108864e+07 `+at,
		`container_start_time_seconds{container="server",namespace="shop",pod="web"} 1.7672652e+09`,
		`pod_cpu_usage_seconds_total{namespace="shop",pod="web"} 37.50000190734863 `+at,
		`pod_memory_working_set_bytes{namespace="shop",pod="web"} 8.388608e+07 `+at,
		`node_cpu_usage_seconds_total 15.000000953674316 `+at,
		`node_memory_working_set_bytes 8.388608e+07 `+at,
		`resource_scrape_error 0`)
	if lines := strings.Count(got, "\n"); status != http.StatusOK || lines != 11 {
		t.Errorf("status %d and %d lines, want 200 and 11, of the pod that runs alone:\n%s", status, lines, got)
	}
	_, got = n.get("/metrics/cadvisor")
	labels := `id="/kubepods/podweb-uid/server-id",image="busybox",name="server-id",namespace="shop",pod="web"} `
	expect(t, got,
		`container_cpu_usage_seconds_total{container="server",cpu="total",`+labels+"25.000000953674316 "+at,
		`container_memory_working_set_bytes{container="server",`+labels+"6.7108864e+07 "+at)
	if status, got := n.get("/metrics/probes"); status != http.StatusOK || got != "" {
		t.Errorf("probes: %d %q, want 200 and nothing", status, got)
	}
	if status, _ := n.get("/metrics/other"); status != http.StatusNotFound {
		t.Errorf("another path: %d, want 404", status)
	}
	_, got = n.get("/stats/summary")
	summary := stats.Summary{}
	if err := json.Unmarshal([]byte(got), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.Node.NodeName != "milan" || *summary.Node.CPU.UsageNanoCores != 75e7 || len(summary.Pods) != 1 ||
		summary.Pods[0].PodRef != (stats.PodReference{Name: "web", Namespace: "shop", UID: "web-uid"}) ||
		*summary.Pods[0].Memory.WorkingSetBytes != 80<<20 || len(summary.Pods[0].Containers) != 2 {
		t.Errorf("the summary says %s", got)
	}
	if asked := n.asked.Load(); asked != 2 {
		t.Errorf("the provider was asked %d times, want 2: what was read within 10 s is not read again", asked)
	}
}

func TestANodeWithoutPodsUsesNothing(t *testing.T) {
	n := newNode(t)
	_, got := n.get("/metrics/resource")
	at := fmt.Sprint(noon.UnixMilli())
	// metrics-server takes 0 for a figure that is missing.
	expect(t, got, "node_cpu_usage_seconds_total 9.5367431640625e-07 "+at, "node_memory_working_set_bytes 1 "+at, "resource_scrape_error 0")
	if asked := n.asked.Load(); asked != 0 {
		t.Errorf("the provider was asked %d times about no pod", asked)
	}
}

func TestCountersBeginAnewWithAContainer(t *testing.T) {
	n := newNode(t, local("web", 12*time.Second, "server"))
	n.says("web/server=1,1Mi")
	_, got := n.get("/metrics/resource")
	const series = `container_cpu_usage_seconds_total{container="server",namespace="shop",pod="web"} `
	expect(t, got, series+"12.000000953674316 "+fmt.Sprint(noon.UnixMilli()))
	n.wait(time.Minute)
	began := metav1.NewTime(n.clock.Now().Add(5 * time.Second)) // by a clock that is ahead
	n.pods = []*corev1.Pod{local("web", 0, "server")}
	n.pods[0].Status.ContainerStatuses[0].State.Running.StartedAt = began
	_, got = n.get("/metrics/resource")
	now := n.clock.Now()
	expect(t, got, series+"9.5367431640625e-07 "+fmt.Sprint(now.UnixMilli()),
		fmt.Sprintf(`container_start_time_seconds{container="server",namespace="shop",pod="web"} %v`, float64(now.Unix())))
	n.wait(20 * time.Second)
	_, got = n.get("/metrics/resource")
	expect(t, got, series+"20.000000953674316 "+fmt.Sprint(n.clock.Now().UnixMilli()))
}

// What cannot be read, or cannot be, leaves the last figure in place.
func TestWhatProvidersSayIsNotBelieved(t *testing.T) {
	for name, spoil := range map[string]func(n *node){
		"negative processors":   func(n *node) { n.says("web/server=-1,64Mi") },
		"negative memory":       func(n *node) { n.says("web/server=1,-64Mi") },
		"no memory":             func(n *node) { n.says("web/server=1,0") },
		"too many processors":   func(n *node) { n.says("web/server=10M,64Mi") },
		"too much memory":       func(n *node) { n.says("web/server=1,2Ei") },
		"not a number":          func(n *node) { n.says("web/server=NaN,64Mi") },
		"infinite":              func(n *node) { n.says("web/server=+Inf,64Mi") },
		"no quantity":           func(n *node) { n.says("web/server=,64Mi") },
		"another container":     func(n *node) { n.says("web/other=1,64Mi") },
		"another pod":           func(n *node) { n.says("shop/server=1,64Mi") },
		"no pod":                func(n *node) { n.says() },
		"no list":               func(n *node) { n.answers(http.StatusOK, `[]`) },
		"no JSON":               func(n *node) { n.answers(http.StatusOK, `<html>`) },
		"items of another kind": func(n *node) { n.answers(http.StatusOK, `{"items":{"a":1}}`) },
		"no containers":         func(n *node) { n.answers(http.StatusOK, `{"items":[{"metadata":{"name":"web"}}]}`) },
		"no usage": func(n *node) {
			n.answers(http.StatusOK, `{"items":[{"metadata":{"name":"web"},"containers":[{"name":"server"}]}]}`)
		},
		"no metrics API":      func(n *node) { n.answers(http.StatusNotFound, "") },
		"metrics API is down": func(n *node) { n.answers(http.StatusServiceUnavailable, "") },
		"forbidden":           func(n *node) { n.answers(http.StatusForbidden, "") },
		"an error":            func(n *node) { n.answers(http.StatusInternalServerError, "") },
		"not connected":       func(n *node) { n.lost = api.ErrNotConnected },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, local("web", time.Hour, "server"))
			n.says("web/server=500m,64Mi")
			n.get("/metrics/resource")
			n.wait(time.Minute)
			spoil(n)
			_, got := n.get("/metrics/resource")
			const series = `container_memory_working_set_bytes{container="server",namespace="shop",pod="web"}`
			expect(t, got, series+" 6.7108864e+07 "+fmt.Sprint(noon.UnixMilli()), "resource_scrape_error 1")
			n.wait(time.Minute + time.Second)
			if _, got := n.get("/metrics/resource"); strings.Contains(got, series) {
				t.Errorf("a figure of two minutes ago is shown:\n%s", got)
			}
			n.lost = nil
			n.wait(20 * time.Second)
			n.says("web/server=500m,32Mi")
			_, got = n.get("/metrics/resource")
			expect(t, got, series+" 3.3554432e+07 "+fmt.Sprint(n.clock.Now().UnixMilli()), "resource_scrape_error 0")
		})
	}
}

func TestWhyThereAreNoFiguresIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(n *node)
		want  string
	}{
		"no metrics API": {func(n *node) { n.answers(http.StatusNotFound, "") }, "it serves no metrics API (metrics.k8s.io)"},
		"no right":       {func(n *node) { n.answers(http.StatusForbidden, "") }, "it does not let us read its metrics API (metrics.k8s.io)"},
		"not connected":  {func(n *node) { n.lost = api.ErrNotConnected }, api.ErrNotConnected.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, local("web", time.Hour, "server"))
			c.spoil(n)
			status, got := n.get("/metrics/resource")
			if status != http.StatusBadGateway || !strings.Contains(got, c.want) {
				t.Errorf("%d %s, want 502 and %q", status, got, c.want)
			}
		})
	}
}

func TestOneNamespaceThatFailsSpoilsNoOther(t *testing.T) {
	other := local("web", time.Hour, "server")
	other.Namespace, other.UID = "office", "other-uid"
	n := newNode(t, local("web", time.Hour, "server"), other)
	n.says("web/server=1,64Mi") // in namespace shop only
	_, got := n.get("/metrics/resource")
	at := fmt.Sprint(noon.UnixMilli())
	expect(t, got, `container_memory_working_set_bytes{container="server",namespace="shop",pod="web"} 6.7108864e+07 `+at, "resource_scrape_error 1")
	if strings.Contains(got, "office") {
		t.Errorf("figures of one namespace are shown of another:\n%s", got)
	}
	if err := n.err; !errors.Is(err, ErrNoFigures) {
		t.Errorf("the error is %v, want %v", err, ErrNoFigures)
	}
}
