package configuration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// seenAs is the Configuration of a peer with transit, which is that old and seen under some ranges.
func seenAs(peer string, age time.Duration, pod, external cidrs) networkingv1beta1.Configuration {
	c := networkingv1beta1.Configuration{}
	c.Name, c.Namespace, c.Labels = peer, "liqo-tenant-"+peer, map[string]string{corev1beta1.RemoteClusterIDLabel: peer}
	c.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0).Add(-age))
	c.Spec.Transit = true
	c.Spec.Local = &networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: cidrs{"10.244.0.0/16"}, External: cidrs{"10.70.0.0/16"}}}
	c.Spec.Remote.CIDR = networkingv1beta1.ClusterConfigCIDR{Pod: cidrs{"10.244.0.0/16"}, External: cidrs{"10.70.0.0/16"}}
	c.Status.Remote = &networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: pod, External: external}}
	return c
}

func milan() networkingv1beta1.Configuration {
	return seenAs("milan", time.Hour, cidrs{"10.61.0.0/16"}, cidrs{"10.71.0.0/16"})
}

func TestCarry(t *testing.T) {
	naples := func(change func(*networkingv1beta1.Configuration)) networkingv1beta1.Configuration {
		c := seenAs("naples", time.Minute, cidrs{"10.62.0.0/16"}, cidrs{"10.72.0.0/16", "10.99.0.0/16"})
		if change != nil {
			change(&c)
		}
		return c
	}
	second := seenAs("naples", time.Second, cidrs{"10.64.0.0/16"}, cidrs{"10.74.0.0/16"})
	second.Name = "a-second"
	many := cidrs{}
	for i := range 28 {
		many = append(many, networkingv1beta1.CIDR(fmt.Sprintf("10.%d.0.0/16", 100+i)))
	}
	own, naplesToo := cidrs{"10.70.0.0/16"}, cidrs{"10.70.0.0/16", "10.62.0.0/16", "10.72.0.0/16"}
	for name, tc := range map[string]struct {
		change func(*networkingv1beta1.Configuration)
		others []networkingv1beta1.Configuration
		want   cidrs
		note   string
	}{
		"no other peer": {want: own},
		"another peer: its own ranges, not those that it carries": {others: []networkingv1beta1.Configuration{naples(nil)}, want: naplesToo},
		"without transit": {
			change: func(c *networkingv1beta1.Configuration) { c.Spec.Transit = false }, others: []networkingv1beta1.Configuration{naples(nil)}, want: own,
		},
		"what was announced and is not any more": {
			change: func(c *networkingv1beta1.Configuration) {
				c.Spec.Local.CIDR.External = append(c.Spec.Local.CIDR.External, "10.63.0.0/16")
			}, want: own,
		},
		"the other one is without transit": {
			others: []networkingv1beta1.Configuration{naples(func(c *networkingv1beta1.Configuration) { c.Spec.Transit = false })}, want: own,
		},
		"the other one is not seen yet": {
			others: []networkingv1beta1.Configuration{naples(func(c *networkingv1beta1.Configuration) { c.Status.Remote = nil })}, want: own,
		},
		"the other one goes": {
			others: []networkingv1beta1.Configuration{naples(func(c *networkingv1beta1.Configuration) { c.DeletionTimestamp = new(metav1.Now()) })}, want: own,
		},
		"the other one is nobody": {
			others: []networkingv1beta1.Configuration{naples(func(c *networkingv1beta1.Configuration) { c.Labels = nil })}, want: own,
		},
		"two of the other one: the oldest counts": {others: []networkingv1beta1.Configuration{second, naples(nil)}, want: naplesToo},
		"the oldest is without transit": {
			others: []networkingv1beta1.Configuration{second, naples(func(c *networkingv1beta1.Configuration) { c.Spec.Transit = false })}, want: own,
		},
		"not the one in another namespace": {
			others: []networkingv1beta1.Configuration{second, naples(func(c *networkingv1beta1.Configuration) { c.Namespace = "default" })},
			want:   cidrs{"10.70.0.0/16", "10.64.0.0/16", "10.74.0.0/16"},
		},
		"another Configuration of the same peer": {
			others: []networkingv1beta1.Configuration{seenAs("milan", time.Minute, cidrs{"10.64.0.0/16"}, nil)}, want: own,
		},
		"too many: the elder ones stay": {
			others: []networkingv1beta1.Configuration{
				seenAs("bari", time.Second, cidrs{"10.65.0.0/16", "10.66.0.0/16"}, nil), naples(nil), seenAs("turin", 2*time.Hour, many, nil)},
			want: slices.Concat(own, many, cidrs{"10.62.0.0/16", "10.72.0.0/16"}),
			note: "not announced to it, because a cluster has at most 32 ranges: bari",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := milan()
			if tc.change != nil {
				tc.change(&c)
			}
			note := carry(&c, append(tc.others, milan()))
			if diff := cmp.Diff(tc.want, c.Spec.Local.CIDR.External); diff != "" || note != tc.note {
				t.Errorf("said %q, %s", note, diff)
			}
			before := c.DeepCopy()
			if carry(&c, append(tc.others, milan())); !cmp.Equal(before, &c) {
				t.Error("again, it changes something")
			}
		})
	}
}

func TestHeed(t *testing.T) {
	said := func(ranges ...networkingv1beta1.CIDR) []networkingv1beta1.Connection {
		return []networkingv1beta1.Connection{{Status: networkingv1beta1.ConnectionStatus{Transit: &networkingv1beta1.ConnectionTransit{CIDRs: ranges}}}}
	}
	many := cidrs{}
	for i := range 31 {
		many = append(many, networkingv1beta1.CIDR(fmt.Sprintf("10.%d.0.0/16", i)))
	}
	own, before := cidrs{"10.70.0.0/16"}, cidrs{"10.70.0.0/16", "10.80.0.0/16"}
	for name, tc := range map[string]struct {
		without     bool
		connections []networkingv1beta1.Connection
		want        cidrs
		note        string
	}{
		"nothing is known":                 {want: before},
		"nothing was said":                 {connections: make([]networkingv1beta1.Connection, 1), want: before},
		"nobody":                           {connections: said(), want: own},
		"others":                           {connections: said("10.81.0.0/16", "10.82.0.0/24"), want: cidrs{"10.70.0.0/16", "10.81.0.0/16", "10.82.0.0/24"}},
		"without transit":                  {without: true, connections: said("10.81.0.0/16"), want: own},
		"all addresses":                    {connections: said("0.0.0.0/0"), want: before, note: "wider than /8"},
		"this host":                        {connections: said("10.81.0.0/16", "127.0.0.0/8"), want: before, note: "no cluster's"},
		"where clouds have their metadata": {connections: said("169.254.169.0/24"), want: before, note: "no cluster's"},
		"its own pods":                     {connections: said("10.244.7.0/24"), want: before, note: "overlap"},
		"one twice":                        {connections: said("10.81.0.0/16", "10.81.0.0/16"), want: before, note: "twice"},
		"too many":                         {connections: said(many...), want: before, note: "more than 32"},
		"too large together":               {connections: said("10.0.0.0/12", "11.0.0.0/12", "12.0.0.0/24"), want: before, note: "more than 2097152"},
		"of another family":                {connections: said("fd00::/64"), want: before, note: "IPv4"},
		"no range":                         {connections: said("x"), want: before, note: "no prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			c := milan()
			c.Spec.Transit, c.Spec.Remote.CIDR.External = !tc.without, slices.Clone(before)
			note := heed(&c, tc.connections)
			if diff := cmp.Diff(tc.want, c.Spec.Remote.CIDR.External); diff != "" || !strings.Contains(note, tc.note) || tc.note == "" && note != "" {
				t.Errorf("said %q, %s", note, diff)
			}
		})
	}
}
