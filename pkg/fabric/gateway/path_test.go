package gateway

import (
	"fmt"
	"strings"
	"testing"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// router is a namespace between two gateways that drops what is longer than its devices take, and tells nobody.
type router struct{ space string }

func newRouter(t *testing.T, server, client *end) router {
	t.Helper()
	r := router{space(t)}
	within(t, r.space, "ip link add name lan type bridge; ip link set dev lan up")
	for port, e := range map[string]*end{"a": server, "b": client} {
		within(t, r.space, "ip link add name "+port+" type veth peer name eth0 netns "+e.space+"; ip link set dev "+port+" master lan up")
	}
	within(t, server.space, "ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up")
	within(t, client.space, "ip addr add 192.0.2.2/24 dev eth0; ip link set eth0 up")
	return r
}

// carry sets how long packets may be that it lets through to the client.
func (r router) carry(t *testing.T, mtu string) {
	t.Helper()
	within(t, r.space, "ip link set dev b mtu "+mtu)
}

// carries waits until the Connection's MTU is in a range, and its way to the peer takes no more.
func (e *end) carries(t *testing.T, from, to networkingv1beta1.MTU) networkingv1beta1.Connection {
	t.Helper()
	var c networkingv1beta1.Connection
	eventually(t, func() string {
		c = networkingv1beta1.Connection{}
		e.api.Get(t, here+"connections/milan", &c)
		way := within(t, e.space, "ip route show table 102 2>&1 || true")
		placed := to == 1440 || strings.Contains(way, fmt.Sprintf("mtu %d", c.Status.MTU))
		if c.Status.Value == networkingv1beta1.Connected && c.Status.MTU >= from && c.Status.MTU <= to && placed {
			return ""
		}
		return fmt.Sprintf("the Connection of the server (%t) is %+v, want an MTU from %d to %d; its way is %s", e.server, c.Status, from, to, way)
	})
	return c
}

// A way that silently drops long packets is measured, followed when it changes, and told of when it drops too much.
func TestTheMTUOfTheWayIsMeasured(t *testing.T) {
	server, client := newEnd(t, true), newEnd(t, false)
	r := newRouter(t, server, client)
	r.carry(t, "1400")
	for _, e := range []*end{server, client} {
		e.trust(t)
		e.start(t)
	}
	for _, e := range []*end{server, client} {
		// WireGuard fills packets up to a multiple of 16 bytes.
		c := e.carries(t, 1340-slack-dataplane.Padding, 1340)
		if message := c.Status.Conditions[0].Message; c.Status.Conditions[0].Status != "True" || !strings.Contains(message, "carries no larger ones") {
			t.Errorf("it says %+v", c.Status.Conditions[0])
		}
	}
	before := client.api.Applied(here + "connections/milan")
	r.carry(t, "1000")
	for _, e := range []*end{server, client} {
		c := e.comesTo(t, networkingv1beta1.Connected, networkingv1beta1.ReasonMTUTooSmall)
		if c.Status.MTU != leastMTU || c.Status.Conditions[0].Status != "False" {
			t.Errorf("when too much is dropped: %+v", c.Status)
		}
	}
	r.carry(t, "1500")
	for _, e := range []*end{server, client} {
		e.carries(t, 1440, 1440)
		e.comesTo(t, networkingv1beta1.Connected, networkingv1beta1.ReasonConnected, networkingv1beta1.ReasonWireGuardUnavailable)
	}
	if writes := client.api.Applied(here+"connections/milan") - before; writes > 8 {
		t.Errorf("two changes were written %d times", writes)
	}
}
