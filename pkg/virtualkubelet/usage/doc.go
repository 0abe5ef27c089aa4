// Package usage serves what the pods of a virtual node use of processors and memory, by the paths of a kubelet: /metrics/resource, which
// metrics-server reads (`kubectl top`, HorizontalPodAutoscalers), /metrics/cadvisor, /stats/summary and /metrics/probes.
//
// The figures come from the provider's metrics API (metrics.k8s.io) and are read when somebody asks, for this node's running pods only, at
// most once in 10 s. While nobody asks, nothing is read.
//
// The provider may say what it likes. Nothing of its answers counts but the figures of containers that run here, bounded in size by the
// connection and in value by what a machine can have; the time of a figure is ours. What cannot be had, or cannot be true, leaves the last
// figure in place, with its time, for two minutes, and resource_scrape_error at 1.
//
// The metrics API tells rates, kubelets tell counters: a counter here is the sum of rates over the time between readings. It begins anew,
// near 0, with a virtual kubelet that takes over, as after the restart of a container. Of probes the metrics API knows nothing:
// /metrics/probes is empty.
package usage
