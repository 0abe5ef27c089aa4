package usage

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/utils/ptr"
)

// ServeHTTP answers /metrics/resource, /metrics/cadvisor, /metrics/probes and /stats/summary as a kubelet does.
func (r *Reader) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var show func(*reading, chan<- prometheus.Metric)
	switch strings.TrimSuffix(request.URL.Path, "/") {
	case "/metrics/resource":
		show = (*reading).resources
	case "/metrics/cadvisor":
		show = (*reading).cadvisor
	case "/metrics/probes":
		expose(func(chan<- prometheus.Metric) {}).ServeHTTP(w, request)
		return
	case "/stats/summary":
	default:
		http.NotFound(w, request)
		return
	}
	used, err := r.now(request.Context())
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	case show == nil:
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(used.summary(r.options.Node, r.start)); err != nil {
			klog.FromContext(request.Context()).V(2).Info("The reader of the summary went away", "reason", err.Error())
		}
	default:
		expose(func(to chan<- prometheus.Metric) { show(used, to) }).ServeHTTP(w, request)
	}
}

// expose writes metrics in the format that the reader asks for.
func expose(collect collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collect) // It declares nothing that could be there already.
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// collector is a prometheus.Collector that declares nothing beforehand.
type collector func(chan<- prometheus.Metric)

// Describe implements prometheus.Collector.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) { c(to) }

// Names, texts and labels are those of a kubelet of Kubernetes 1.36.
var (
	ofContainer = []string{"container", "namespace", "pod"}
	ofPod       = []string{"namespace", "pod"}

	nodeCPU        = prometheus.NewDesc("node_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the node in core-seconds", nil, nil)
	nodeMemory     = prometheus.NewDesc("node_memory_working_set_bytes", "[STABLE] Current working set of the node in bytes", nil, nil)
	containerCPU   = prometheus.NewDesc(cpuName, "[STABLE] Cumulative cpu time consumed by the container in core-seconds", ofContainer, nil)
	containerBytes = prometheus.NewDesc(memoryName, "[STABLE] Current working set of the container in bytes", ofContainer, nil)
	containerStart = prometheus.NewDesc(startName, "[STABLE] Start time of the container since unix epoch in seconds", ofContainer, nil)
	podCPU         = prometheus.NewDesc("pod_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the pod in core-seconds", ofPod, nil)
	podMemory      = prometheus.NewDesc("pod_memory_working_set_bytes", "[STABLE] Current working set of the pod in bytes", ofPod, nil)
	scrapeError    = prometheus.NewDesc("resource_scrape_error", "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise", nil, nil)

	ofCgroup     = []string{"container", "id", "image", "name", "namespace", "pod"}
	cgroupCPU    = prometheus.NewDesc(cpuName, "Cumulative cpu time consumed in seconds.", append([]string{"cpu"}, ofCgroup...), nil)
	cgroupMemory = prometheus.NewDesc(memoryName, "Current working set in bytes.", ofCgroup, nil)
	cgroupStart  = prometheus.NewDesc(startName, "Start time of the container since unix epoch in seconds.", ofCgroup, nil)
)

const (
	cpuName    = "container_cpu_usage_seconds_total"
	memoryName = "container_memory_working_set_bytes"
	startName  = "container_start_time_seconds"
)

func counter(at time.Time, desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.NewMetricWithTimestamp(at, prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, labels...))
}

func gauge(at time.Time, desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.NewMetricWithTimestamp(at, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...))
}

// resources are what /metrics/resource shows.
func (r *reading) resources(to chan<- prometheus.Metric) {
	to <- counter(r.node.at, nodeCPU, r.node.seconds)
	to <- gauge(r.node.at, nodeMemory, r.node.memory)
	failed := 0.0
	if r.incomplete {
		failed = 1
	}
	to <- prometheus.MustNewConstMetric(scrapeError, prometheus.GaugeValue, failed)
	for _, p := range r.pods {
		for name, c := range p.containers {
			to <- counter(c.at, containerCPU, c.seconds, name, p.namespace, p.name)
			to <- gauge(c.at, containerBytes, c.memory, name, p.namespace, p.name)
			to <- prometheus.MustNewConstMetric(containerStart, prometheus.GaugeValue, unix(c.started), name, p.namespace, p.name)
		}
		sum := p.sum()
		to <- counter(sum.at, podCPU, sum.seconds, p.namespace, p.name)
		to <- gauge(sum.at, podMemory, sum.memory, p.namespace, p.name)
	}
}

// cadvisor is what /metrics/cadvisor shows of containers.
func (r *reading) cadvisor(to chan<- prometheus.Metric) {
	for _, p := range r.pods {
		for name, c := range p.containers {
			_, id, _ := strings.Cut(c.id, "://")
			labels := []string{name, "/kubepods/pod" + string(p.uid) + "/" + id, c.image, id, p.namespace, p.name}
			to <- counter(c.at, cgroupCPU, c.seconds, append([]string{"total"}, labels...)...)
			to <- gauge(c.at, cgroupMemory, c.memory, labels...)
			to <- prometheus.MustNewConstMetric(cgroupStart, prometheus.GaugeValue, unix(c.started), labels...)
		}
	}
}

// sum is what a pod uses. Its time is that of its oldest figure.
func (p *pod) sum() rate {
	sum := rate{}
	for _, c := range p.containers {
		if sum.at.IsZero() || c.at.Before(sum.at) {
			sum.at = c.at
		}
		sum.cores += c.cores
		sum.seconds += c.seconds
		sum.memory += c.memory
	}
	return sum
}

// summary is what /stats/summary shows.
func (r *reading) summary(node string, start time.Time) *stats.Summary {
	cpu, memory := r.node.stats()
	summary := &stats.Summary{
		Node: stats.NodeStats{NodeName: node, StartTime: metav1.NewTime(start), CPU: cpu, Memory: memory},
		Pods: make([]stats.PodStats, 0, len(r.pods)),
	}
	for _, p := range r.pods {
		cpu, memory := p.sum().stats()
		shown := stats.PodStats{
			PodRef:    stats.PodReference{Namespace: p.namespace, Name: p.name, UID: string(p.uid)},
			StartTime: metav1.NewTime(p.started), CPU: cpu, Memory: memory,
		}
		for name, c := range p.containers {
			cpu, memory := c.stats()
			shown.Containers = append(shown.Containers, stats.ContainerStats{Name: name, StartTime: metav1.NewTime(c.started), CPU: cpu, Memory: memory})
		}
		summary.Pods = append(summary.Pods, shown)
	}
	return summary
}

func (r rate) stats() (*stats.CPUStats, *stats.MemoryStats) {
	return &stats.CPUStats{
			Time: metav1.NewTime(r.at), UsageNanoCores: ptr.To(uint64(r.cores * 1e9)), UsageCoreNanoSeconds: ptr.To(uint64(r.seconds * 1e9)),
		}, &stats.MemoryStats{
			Time: metav1.NewTime(r.at), WorkingSetBytes: ptr.To(uint64(r.memory)),
		}
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }
