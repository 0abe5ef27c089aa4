package netlink

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// diff compares States; the order of rules matters, that of what has none in the kernel does not.
func diff(want, got dataplane.State) string {
	unordered := func(s dataplane.State) dataplane.State {
		s.Neighbors, s.Routes, s.Rules = slices.Clone(s.Neighbors), slices.Clone(s.Routes), slices.Clone(s.Rules)
		slices.SortFunc(s.Neighbors, func(a, b dataplane.Neighbor) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		slices.SortFunc(s.Routes, func(a, b dataplane.Route) int { return strings.Compare(a.String(), b.String()) })
		slices.SortFunc(s.Rules, func(a, b dataplane.Rule) int { return strings.Compare(a.String(), b.String()) })
		return s
	}
	return cmp.Diff(unordered(want), unordered(got), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }))
}

// variants are States of a node and of a gateway in what can differ.
func variants(t *testing.T) map[string]dataplane.State {
	t.Helper()
	return map[string]dataplane.State{
		"node":                    nodeState(t, nil),
		"node without pods":       nodeState(t, func(i *dataplane.NodeInput) { i.Self.Pods = nil }),
		"node without gateways":   nodeState(t, func(i *dataplane.NodeInput) { i.Fabrics = nil }),
		"node with one gateway":   nodeState(t, func(i *dataplane.NodeInput) { i.Fabrics = i.Fabrics[1:] }),
		"node with another port":  nodeState(t, func(i *dataplane.NodeInput) { i.Port, i.MTU = 6092, 9000 }),
		"node with other address": nodeState(t, func(i *dataplane.NodeInput) { i.Self.VTEP, i.Self.External = nodeOne.VTEP, nodeOne.External }),
		"node with many pods": nodeState(t, func(i *dataplane.NodeInput) {
			i.Self.Pods = nil
			for n := range 1000 {
				i.Self.Pods = append(i.Self.Pods, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(n >> 7), byte(n << 1)}), 32))
			}
		}),
		"gateway": gatewayState(t, nil),
		"gateway without overlap": gatewayState(t, func(i *dataplane.GatewayInput) {
			i.Peer = []dataplane.Range{{Own: netip.MustParsePrefix("10.61.0.0/16"), Seen: netip.MustParsePrefix("10.61.0.0/16")}}
		}),
		"gateway of a hub":                 gatewayState(t, func(i *dataplane.GatewayInput) { i.Transit, i.Server = fabrics[1:], false }),
		"gateway of a narrow way":          gatewayState(t, func(i *dataplane.GatewayInput) { i.PathMTU = 1340 }),
		"gateway with one node and no IPs": gatewayState(t, func(i *dataplane.GatewayInput) { i.Nodes, i.IPs, i.TunnelMTU = i.Nodes[:1], nil, 1300 }),
	}
}

// What was applied is what is read, and to apply it again changes nothing: whatever was there before. So each goes over into each.
func TestAStateIsReadAsItWasApplied(t *testing.T) {
	all := variants(t)
	for before, first := range all {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			space := namespace(t)
			foreign(t, space, withTunnel)
			k := opened(t, space)
			for after, second := range all {
				apply(t, k, first)
				apply(t, k, second)
				read, err := k.Read(second)
				if err != nil {
					t.Fatal(err)
				}
				if d := diff(second, read); d != "" {
					t.Fatalf("after %s, %s is read as (-want +got):\n%s", before, after, d)
				}
				if changes := apply(t, k, second); changes != nil {
					t.Fatalf("after %s, %s is changed when it is there: %q", before, after, changes)
				}
			}
		})
	}
}

// listeners are sockets that hear of all that happens in a namespace: by rtnetlink, and by nftables.
func listeners(t *testing.T, k *Kernel) (sockets []*nl.NetlinkSocket) {
	t.Helper()
	for _, about := range []struct {
		protocol int
		groups   []uint
	}{{unix.NETLINK_ROUTE, routeGroups}, {unix.NETLINK_NETFILTER, []uint{unix.NFNLGRP_NFTABLES}}} {
		socket, err := nl.SubscribeAt(k.namespace, netns.None(), about.protocol, about.groups...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(socket.Close)
		sockets = append(sockets, socket)
	}
	return sockets
}

// A second application tells the kernel nothing: nobody who listens hears of it.
func TestNothingIsWrittenTwice(t *testing.T) {
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			apply(t, p.kernel, p.state)
			sockets := listeners(t, p.kernel)
			apply(t, p.kernel, p.state)
			// What somebody else does now is the first that is heard.
			foreign(t, p.namespace, "ip rule add pref 4242 lookup 4242; nft add table ip foreign")
			for _, socket := range sockets {
				messages, _, err := socket.Receive()
				if err != nil {
					t.Fatal(err)
				}
				m := messages[0]
				rule := m.Header.Type == unix.RTM_NEWRULE && nl.DeserializeRtMsg(m.Data).Protocol != dataplane.Protocol
				if !rule && attribute(m.Data, 4, nftTable) != "foreign\x00" {
					t.Errorf("the first that is heard is %d: % x", m.Header.Type, m.Data)
				}
			}
		})
	}
}

var errKilled = errors.New("killed")

// killed has the next pass end before its n-th change.
func (k *Kernel) killed(n int) {
	k.stop = func(string) error {
		n--
		if n < 0 {
			return errKilled
		}
		return nil
	}
}

// Whenever a pass ends early, be it one that puts things there, that changes much, or that removes all: the next one completes it.
func TestAPassThatEndedEarlyIsCompleted(t *testing.T) {
	other := map[string]dataplane.State{
		"node": nodeState(t, func(i *dataplane.NodeInput) {
			i.Fabrics, i.Port, i.Self.Pods, i.IPs = i.Fabrics[1:], 6092, i.Self.Pods[:1], nil
		}),
		"gateway": gatewayState(t, func(i *dataplane.GatewayInput) {
			i.Nodes, i.IPs, i.Peer, i.TunnelMTU = i.Nodes[:1], nil, i.Peer[:1], 1300
		}),
	}
	for name, p := range places(t) {
		t.Run(name, func(t *testing.T) {
			if name == "gateway" {
				foreign(t, p.namespace, "ip link set mtu 1440 up dev "+dataplane.TunnelDevice)
			}
			before := foreign(t, p.namespace, everything)
			for step, change := range map[string]struct{ from, to dataplane.State }{
				"install": {dataplane.State{}, p.state},
				"change":  {p.state, other[name]},
				"remove":  {p.state, dataplane.State{}},
			} {
				for n, done := 0, false; !done; n++ {
					p.kernel.stop = nil
					apply(t, p.kernel, change.from)
					p.kernel.killed(n)
					_, err := p.kernel.Apply(change.to)
					if done = err == nil; !done && !errors.Is(err, errKilled) {
						t.Fatalf("%s, %d changes: %v", step, n, err)
					}
					again := opened(t, p.namespace)
					p.kernel = again
					p.state = change.to
					apply(t, again, change.to)
					if d := p.differs(t); d != "" {
						t.Fatalf("%s, killed after %d changes (-want +got):\n%s", step, n, d)
					}
					if changes := apply(t, again, change.to); changes != nil {
						t.Fatalf("%s, killed after %d changes: it takes another pass for %q", step, n, changes)
					}
					if done && n < 5 {
						t.Fatalf("%s is only %d changes", step, n)
					}
				}
				p.state = change.from
			}
			apply(t, p.kernel, dataplane.State{})
			if after := foreign(t, p.namespace, everything); after != before {
				t.Errorf("what is left behind:\n%s", cmp.Diff(before, after))
			}
		})
	}
}

// everything shows what agents could have left in a namespace.
const everything = `ip -o link show type vxlan; ip -4 addr; ip rule; ip -4 route show table all; ip -4 neigh; bridge fdb; nft list ruleset`

// Whoever looks at a host with nft, kube-proxy among them, sees what is ours: nft 1.0.6 crashes at code that it would not write itself.
func TestNftListsWhatIsOurs(t *testing.T) {
	for name, p := range places(t) {
		apply(t, p.kernel, p.state)
		for _, table := range p.state.Firewall {
			listed := foreign(t, p.namespace, "nft list table "+table.Family+" "+table.Name)
			for _, chain := range table.Chains {
				if !strings.Contains(listed, "chain "+chain.Name+" {") {
					t.Errorf("%s: chain %s is not listed:\n%s", name, chain.Name, listed)
				}
			}
		}
	}
}
