package gateway

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

type cidrs = []networkingv1beta1.CIDR

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func same(a, b []netip.Prefix) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func TestAnnouncements(t *testing.T) {
	var many []netip.Prefix
	for i := range 40 {
		many = append(many, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i)}), 16))
	}
	for name, tc := range map[string]struct{ told, heard []netip.Prefix }{
		"nobody": {}, "some": {prefixes("10.61.0.0/16", "192.0.2.4/32"), prefixes("10.61.0.0/16", "192.0.2.4/32")},
		"one of IPv6": {prefixes("fd00::/64", "10.61.0.0/16"), prefixes("10.61.0.0/16")}, "too many": {many, many[:32]},
	} {
		if heard, ok := announcement(announce(tc.told)); !ok || !same(heard, tc.heard) {
			t.Errorf("%s: %s is heard as %s, %t", name, tc.told, heard, ok)
		}
	}
	good := announce(prefixes("10.61.0.0/16"))
	for name, raw := range map[string][]byte{
		"nothing": nil, "less": good[:len(good)-1], "more": append(good[:len(good):len(good)], 0), "another version": append([]byte("lqe\x02"), good[4:]...),
		"a question": message{question, 7, 9}.bytes(), "a length that none has": append(good[:len(good)-1:len(good)-1], 33),
		"too many": append(announce(many), good[5:]...),
	} {
		if ranges, ok := announcement(raw); ok {
			t.Errorf("%s is read as %s", name, ranges)
		}
	}
	if heard, ok := announcement(append(good[:5:5], 10, 61, 7, 7, 16)); !ok || !same(heard, prefixes("10.61.0.0/16")) {
		t.Errorf("an address with bits behind its range is heard as %s, %t", heard, ok)
	}
}

func TestAnnouncementOf(t *testing.T) {
	c := &networkingv1beta1.Configuration{}
	c.Spec.Transit = true
	if got := announcementOf(c); got != nil {
		t.Errorf("without own ranges: %s", got)
	}
	c.Spec.Local = &networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: cidrs{"10.244.0.0/16"}, External: cidrs{"10.70.0.0/16", "10.61.0.0/16"}}}
	if got := announcementOf(c); !same(got, prefixes("10.61.0.0/16")) {
		t.Errorf("announced are %s", got)
	}
	c.Spec.Transit = false
	if got := announcementOf(c); got != nil {
		t.Errorf("without transit: %s", got)
	}
}

func TestWhatIsHeardOfOtherClusters(t *testing.T) {
	noon := time.Unix(1e9, 0)
	before := &networkingv1beta1.ConnectionTransit{CIDRs: cidrs{"10.60.0.0/16"}}
	var heard transit
	is := func(what string, want *networkingv1beta1.ConnectionTransit) {
		t.Helper()
		if diff := cmp.Diff(want, heard.status(before)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	is("as long as nothing was heard", before)
	heard.hear(nil, noon)
	is("nobody", &networkingv1beta1.ConnectionTransit{})
	heard.hear(prefixes("10.61.0.0/16"), noon.Add(announcedEvery-time.Second))
	is("what comes too soon", &networkingv1beta1.ConnectionTransit{})
	heard.hear(prefixes("10.61.0.0/16"), noon.Add(announcedEvery))
	is("what is repeated", &networkingv1beta1.ConnectionTransit{CIDRs: cidrs{"10.61.0.0/16"}})
	heard.hear(prefixes("10.61.0.0/16"), noon.Add(2*announcedEvery))
	heard.hear(prefixes("10.62.0.0/16"), noon.Add(2*announcedEvery+time.Second))
	is("a repetition is no news, and does not put off what is", &networkingv1beta1.ConnectionTransit{CIDRs: cidrs{"10.62.0.0/16"}})
	heard.unwanted = true
	is("nobody wants to know", nil)
}

// A hub tells a leaf of another one, through the tunnel, and has the way to it. The leaf writes that down; it has nobody to tell of.
func TestAHubAnnouncesALeaf(t *testing.T) {
	hub, leaf := newEnd(t, true), newEnd(t, false)
	within(t, hub.space, fmt.Sprintf("ip link add name eth0 type veth peer name eth0 netns %s; ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up", leaf.space))
	within(t, leaf.space, "ip addr add 192.0.2.2/24 dev eth0; ip link set eth0 up")
	for _, e := range []*end{hub, leaf} {
		e.trust(t)
		c := &networkingv1beta1.Configuration{}
		e.api.Get(t, here+"configurations/milan-net", c)
		c.Spec.Transit = true
		if e == hub {
			c.Spec.Local.CIDR.External = append(c.Spec.Local.CIDR.External, "10.63.0.0/16")
		}
		e.api.Put(t, here+"configurations/milan-net", c)
		e.start(t)
	}
	turin := &networkingv1beta1.InternalFabric{TypeMeta: metav1.TypeMeta{Kind: "InternalFabric"}, ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-turin", Name: "turin"}}
	turin.Spec.GatewayIP, turin.Spec.RemoteCIDRs, turin.Spec.MTU = "192.0.2.99", cidrs{"10.63.0.0/16"}, 1440
	hub.api.Put(t, group+"namespaces/liqo-tenant-turin/internalfabrics/turin", turin)
	await := func(e *end, want cidrs) {
		t.Helper()
		eventually(t, func() string {
			c := networkingv1beta1.Connection{}
			e.api.Get(t, here+"connections/milan", &c)
			if told := c.Status.Transit; told != nil && cmp.Equal(told.CIDRs, want) {
				return ""
			}
			return fmt.Sprintf("the Connection of the server (%t) does not tell of %v: %+v", e.server, want, c.Status)
		})
	}
	await(leaf, cidrs{"10.63.0.0/16"})
	await(hub, nil)
	eventually(t, func() string {
		if routes := within(t, hub.space, "ip route show table 101"); !strings.Contains(routes, "10.63.0.0/16 via 192.0.2.99 dev liqo") {
			return "the way to the other gateway is not among " + routes
		}
		return ""
	})
}
