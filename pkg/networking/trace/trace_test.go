package trace

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

var update = flag.Bool("update", false, "write the golden files")

// ranges are a cluster's own, pods first; seen are those under which the other sees it.
func config(pod, external string) networkingv1beta1.ClusterConfig {
	return networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
		Pod: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(pod)}, External: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(external)},
	}}
}

// twin is one of two clusters with the same ranges: rome, which sees the other as 10.61 and 10.71, or milan, which sees it as 10.62 and 10.72.
func twin(id, peer string, number int, server bool) Cluster {
	c := Cluster{ID: id}
	for i := 1; i <= 2; i++ {
		node := networkingv1beta1.InternalNode{}
		node.Name = fmt.Sprintf("%s-%d", id, i)
		node.Spec.Interface.Node.IP = networkingv1beta1.IP(fmt.Sprintf("10.70.255.%d", 250+i))
		address := networkingv1beta1.IP(fmt.Sprintf("172.31.%d.%d", number, i))
		node.Status.NodeIP.Remote, node.Status.Addresses = &address, []networkingv1beta1.IP{address}
		node.Status.PodRanges = []networkingv1beta1.CIDR{networkingv1beta1.CIDR(fmt.Sprintf("10.244.%d.0/24", i))}
		c.Nodes = append(c.Nodes, node)
	}
	c.IPs = []ipamv1alpha1.IP{{
		Spec: ipamv1alpha1.IPSpec{IP: "10.96.0.1", Masquerade: ptr.To(true)}, Status: ipamv1alpha1.IPStatus{IP: "10.70.0.2", CIDR: "10.70.0.0/16"},
	}}
	own, seen := config("10.244.0.0/16", "10.70.0.0/16"), config(fmt.Sprintf("10.6%d.0.0/16", number), fmt.Sprintf("10.7%d.0.0/16", number))
	p := Peering{Peer: peer, Node: id + "-1", Server: server}
	p.Configuration.Name = peer
	p.Configuration.Spec.Local, p.Configuration.Spec.Remote, p.Configuration.Status.Remote = &own, own, &seen
	p.Configuration.Status.Isolation = "open"
	p.Fabric.Name = peer
	p.Fabric.Spec.GatewayIP, p.Fabric.Spec.MTU = "10.244.1.200", 1440
	p.Fabric.Spec.Interface.Gateway.IP = "10.70.255.200"
	p.Fabric.Spec.RemoteCIDRs = append(append([]networkingv1beta1.CIDR{}, seen.CIDR.Pod...), seen.CIDR.External...)
	c.Peerings = []Peering{p}
	return c
}

func TestTrace(t *testing.T) {
	rome, milan := twin("rome", "milan", 1, false), twin("milan", "rome", 2, true)
	both := []Cluster{rome, milan}
	for name, tc := range map[string]struct {
		clusters []Cluster
		question Question
	}{
		"pod-to-pod":      {both, Question{From: "rome", Source: "10.244.2.2", Destination: netip.MustParseAddr("10.61.2.2"), Protocol: dataplane.TCP, Port: 80, Size: 60}},
		"node-to-pod":     {both, Question{From: "milan", Source: "milan-2", Destination: netip.MustParseAddr("10.62.1.7"), Protocol: dataplane.ICMP, Size: 84}},
		"pod-to-ip":       {both, Question{From: "milan", Source: "10.244.1.9", Destination: netip.MustParseAddr("10.72.0.2"), Protocol: dataplane.TCP, Port: 443, Size: 60}},
		"too-long":        {both, Question{From: "rome", Source: "10.244.2.2", Destination: netip.MustParseAddr("10.61.2.2"), Protocol: dataplane.UDP, Port: 80, Size: 1441}},
		"not-reachable":   {both, Question{From: "rome", Source: "10.244.2.2", Destination: netip.MustParseAddr("10.71.255.252"), Protocol: dataplane.TCP, Port: 22, Size: 60}},
		"unknown-cluster": {both[:1], Question{From: "rome", Source: "10.244.2.2", Destination: netip.MustParseAddr("10.61.2.2"), Protocol: dataplane.TCP, Port: 80, Size: 60}},
	} {
		t.Run(name, func(t *testing.T) {
			trip, err := Trace(tc.clusters, tc.question)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(trip.String()), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), trip.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestQuestionsThatMakeNoSense(t *testing.T) {
	both := []Cluster{twin("rome", "milan", 1, false), twin("milan", "rome", 2, true)}
	for name, tc := range map[string]struct {
		question Question
		want     string
	}{
		"of an unknown cluster": {Question{From: "turin"}, "nothing is known of cluster turin"},
		"of no pod":             {Question{From: "rome", Source: "10.244.9.9"}, "10.244.9.9 is no pod of cluster rome"},
		"of no node":            {Question{From: "rome", Source: "rome-9"}, `"rome-9" is neither an address nor a node`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Trace(both, tc.question); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
