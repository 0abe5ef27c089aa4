package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/fabric/gateway"
	"liqo.io/liqo/pkg/fabric/node"
	"liqo.io/liqo/pkg/netlink"
	"liqo.io/liqo/test/monitoring"
)

// kernel counts.
type kernel struct{}

func (kernel) Counted() (map[string]uint64, error) {
	return map[string]uint64{"foreign": 2, "spoofed": 1}, nil
}

func (kernel) Traffic(string) (netlink.Traffic, error) {
	return netlink.Traffic{Received: 3, Sent: 4, Handshake: time.Unix(5, 0)}, nil
}

// docs/metrics.md says what gateways and the agents of nodes register, with its labels, no more and no less: both have the same but for those of
// the tunnel, and that of silent gateways. Before anything is known, only what the kernel counts is told.
func TestThePageHasTheMetricsOfGateways(t *testing.T) {
	registry := monitoring.NewRegistry()
	work, tunnel := agent.NewMetrics(kernel{}), gateway.NewMetrics(kernel{}, "milan")
	for _, c := range []prometheus.Collector{work, tunnel, node.NewSilent()} {
		if err := registry.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{}
	for _, m := range monitoring.Page(t, "../..")[monitoring.NetworkAgents] {
		want[m.Name] = append([]string{}, slices.Sorted(slices.Values(m.Labels))...)
	}
	if diff := cmp.Diff(want, registry.Registered()); diff != "" {
		t.Errorf("-docs/metrics.md +registered:\n%s", diff)
	}
	noon := time.Unix(1, 0)
	work.Want(noon)
	work.Want(noon.Add(time.Second))
	work.See(netlink.Report{Changes: []string{"a"}}, noon.Add(2*time.Second))
	work.See(netlink.Report{Changes: []string{"a"}, Repair: true}, noon.Add(time.Hour))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
		}
	}
	told := map[string]float64{
		"liqo_network_dropped_packets_total foreign": 2, "liqo_network_dropped_packets_total spoofed": 1, "liqo_network_repairs_total": 1,
		"liqo_network_programming_duration_seconds": 2, "liqo_network_programmed": 1, "liqo_network_silent_gateways": 0,
		"liqo_peer_receive_bytes_total milan wireguard": 3, "liqo_peer_transmit_bytes_total milan wireguard": 4, "liqo_peer_handshake_timestamp_seconds milan wireguard": 5,
	}
	if diff := cmp.Diff(told, got); diff != "" {
		t.Errorf("-want +told:\n%s", diff)
	}
}
